"""The command line: its options, and the way out where something goes wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from dslint import __version__, commands

EXIT_CODES = """\
exit codes:
  0  nothing at or above --fail-on
  1  findings at or above --fail-on
  2  the job could not be done: a bad option, a file that can't be read, an internal error
"""


MODERNISE_EXIT_CODES = """\
exit codes:
  0  all of it is written in the words of that release; with --diff: nothing would change
  1  something is left for a person to decide; with --diff: something would change
  2  the job could not be done: a bad option, a file that can't be read or written
"""


SMOKE_EXIT_CODES = """\
exit codes:
  0  everything trains, saves and loads
  1  something does not
  2  the job could not be done: a bad option, no DeepSpeed, a file that is no config
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    _never_fail_to_print()
    parser = _parser()
    own, script_arguments = _without_script_arguments(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own)
    if script_arguments:
        options.script_arguments = script_arguments
    if options.command is None:
        parser.print_help()
        return commands.FAILED
    try:
        return int(options.run(options))
    except commands.UsageError as error:
        print(f"dslint: {error}", file=sys.stderr)
        return commands.FAILED
    except BrokenPipeError:
        # The reader went away (`dslint … | head`); there is nobody left to tell.
        sys.stdout = None
        return commands.FAILED
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # the last resort: a traceback helps nobody who lints a config
        return _internal_error(error)


def _without_script_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command line of smoke up to --, and what follows, which belongs to the user's script."""
    given = list(arguments)
    if given[:1] != ["smoke"] or "--" not in given:
        return given, []
    cut = given.index("--")
    return given[:cut], given[cut + 1 :]


def _never_fail_to_print() -> None:
    """Shows what the output's encoding lacks, such as half of a surrogate pair, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _internal_error(error: Exception) -> int:
    from dslint.rulebook.loader import RuleError

    if isinstance(error, RuleError):
        print(f"dslint: {error}", file=sys.stderr)
        return commands.FAILED
    import os
    import traceback

    print(f"dslint: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    if os.environ.get("DSLINT_DEBUG"):
        traceback.print_exc()
    else:
        print(
            "This is a bug of dslint. Set DSLINT_DEBUG=1 for the traceback and please report it.",
            file=sys.stderr,
        )
    return commands.FAILED


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit code and the tone of the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(commands.FAILED, f"dslint: {message}\nTry '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dslint",
        description="Finds mistakes in DeepSpeed training runs before they cost GPU hours.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dslint {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_check(subparsers)
    _add_runs(subparsers)
    _add_smoke(subparsers)
    explain = subparsers.add_parser("explain", help="what a rule says, and why")
    explain.add_argument("code", metavar="CODE", help="code or name of a rule: DS201, batch-size-mismatch")
    explain.set_defaults(run=commands.explain_rule)
    rules = subparsers.add_parser("rules", help="list all rules")
    rules.add_argument("--format", choices=["text", "json"], default="text")
    rules.set_defaults(run=commands.list_rules)
    schema = subparsers.add_parser("schema", help="print the JSON Schema of the DeepSpeed config")
    schema.add_argument("--deepspeed", metavar="VERSION", help="the DeepSpeed release (default: the newest known)")
    schema.set_defaults(run=commands.print_schema)
    _add_modernise(subparsers)
    doctor = subparsers.add_parser("doctor", help="check this machine and its Python for DeepSpeed's traps")
    doctor.add_argument("configs", nargs="*", metavar="CONFIG", help="look only at what these configs need")
    doctor.add_argument("--python", metavar="PATH", help="the Python that will train (default: dslint's own)")
    doctor.add_argument("--format", choices=["text", "json"], default="text")
    doctor.set_defaults(run=commands.look_at_this_machine)
    return parser


def _add_check(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    check = subparsers.add_parser(
        "check",
        help="check files and folders",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="files or folders (default: this folder; - is stdin)",
    )
    _add_run_options(check)
    output = check.add_argument_group("what to report")
    output.add_argument("--select", metavar="CODES", help="only these rules: DS201, DS2, batch-size-mismatch, ...")
    output.add_argument("--ignore", metavar="CODES", help="not these rules")
    output.add_argument(
        "--fail-on",
        choices=["hint", "warning", "error", "never"],
        help="the mildest severity that gives exit code 1 (default: error)",
    )
    output.add_argument("--format", choices=["text", "json", "github"], default="text")
    _add_fix_options(check)
    _add_confirm_options(check)
    _add_settings_options(check)
    check.set_defaults(run=commands.check_files)


def _add_fix_options(check: argparse.ArgumentParser) -> None:
    fixes = check.add_argument_group("what to mend")
    fixes.add_argument("--fix", action="store_true", help="apply safe fixes, and keep those that help")
    fixes.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    fixes.add_argument("--unsafe-fixes", action="store_true", help="also apply fixes that change what is trained")
    fixes.add_argument(
        "--choose",
        action="append",
        default=[],
        metavar="CODE=N",
        help="of several ways to mend a finding, the Nth: DS101=2",
    )


def _add_confirm_options(check: argparse.ArgumentParser) -> None:
    smoke = check.add_argument_group("let real DeepSpeed confirm it (EXECUTES scripts whose findings need it)")
    smoke.add_argument(
        "--smoke",
        nargs="?",
        const="findings",
        choices=["findings", "all"],
        help="try each finding, and its fix, by a short training; =all: runs without findings too",
    )
    smoke.add_argument(
        "--smoke-timeout", type=_seconds, metavar="S", help="seconds that a trial may take (default: 120)"
    )
    smoke.add_argument(
        "--smoke-python",
        metavar="PATH",
        default=sys.executable,
        help="the Python that has torch and DeepSpeed (default: dslint's own)",
    )


def _add_settings_options(command: argparse.ArgumentParser) -> None:
    settings = command.add_argument_group("settings").add_mutually_exclusive_group()
    settings.add_argument(
        "--settings",
        metavar="FILE",
        help="instead of the nearest dslint.toml or pyproject.toml with [tool.dslint]",
    )
    settings.add_argument("--isolated", action="store_true", help="no settings file at all")


def _add_run_options(command: argparse.ArgumentParser) -> None:
    run = command.add_argument_group("what the files can't say")
    run.add_argument("--gpus", type=_count, metavar="N", help="GPUs a node, one rank each")
    run.add_argument("--nodes", type=_count, metavar="N", help="number of nodes")
    run.add_argument(
        "--gpu",
        metavar="NAME",
        help="type of GPU: h100, a100-80g, v100, p3.2xlarge, ...; auto asks nvidia-smi",
    )
    run.add_argument("--deepspeed", metavar="VERSION", help="the DeepSpeed release that will train")
    run.add_argument(
        "--loader",
        choices=["hf", "deepspeed"],
        help='who reads the config: Hugging Face (fills "auto", strict JSON) or DeepSpeed itself',
    )


def _add_runs(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    runs = subparsers.add_parser(
        "runs",
        help="show which files form which run, and every fact with its origin",
        description="Shows which files form which training run, and the facts that rules are judged by, each with "
        "the place it was read at. Nothing is judged, and nothing is executed.",
    )
    runs.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="files or folders (default: this folder; - is stdin)",
    )
    _add_run_options(runs)
    _add_settings_options(runs)
    runs.add_argument("--all", action="store_true", help="show defaults, lists and further facts too")
    runs.add_argument("--format", choices=["text", "json"], default="text")
    runs.set_defaults(run=commands.show_runs)


def _add_smoke(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    smoke = subparsers.add_parser(
        "smoke",
        help="train a few steps on real DeepSpeed",
        description="Trains a tiny model under each config on real DeepSpeed: a few steps, a save, a load, one "
        "more step. With --script it EXECUTES your own script for a few steps instead.",
        epilog=SMOKE_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    smoke.add_argument(
        "paths", nargs="*", metavar="CONFIG", help="DeepSpeed configs, or Accelerate files that use DeepSpeed"
    )
    where = smoke.add_argument_group("where to train")
    where.add_argument(
        "--gpus",
        type=_count,
        metavar="N",
        help="ranks a node (default: what the batch sizes say, or the GPUs here)",
    )
    where.add_argument("--nodes", type=_count, metavar="M", help="number of nodes (default: 1)")
    mode = where.add_mutually_exclusive_group()
    mode.add_argument(
        "--simulate",
        dest="mode",
        action="store_const",
        const="simulated",
        help="one process that is rank 0 of all ranks (default where there are fewer GPUs than ranks)",
    )
    mode.add_argument(
        "--real",
        dest="mode",
        action="store_const",
        const="real",
        help="one process a rank, through torchrun: NCCL on GPUs, gloo with --device cpu",
    )
    where.add_argument(
        "--share-gpus",
        action="store_true",
        help="with --real: let ranks share the GPUs here, through gloo, which NCCL can't",
    )
    where.add_argument("--gpu", metavar="NAME", help="simulate the abilities of this GPU: h100, v100, ...")
    where.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    where.add_argument(
        "--python", metavar="PATH", default=sys.executable, help="the Python that has torch and DeepSpeed"
    )
    how = smoke.add_argument_group("what to do")
    how.add_argument("--loader", choices=["hf", "deepspeed"], help="who reads the config")
    how.add_argument(
        "--steps", type=_count, metavar="K", default=2, help="optimizer steps before the save (default: 2)"
    )
    how.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        default=None,
        help="seconds a trial may take, builds of ops left out (default: 120; with --script: 600)",
    )
    how.add_argument(
        "--script", metavar="FILE", help="execute this training script; its arguments follow after --"
    )
    how.add_argument("--format", choices=["text", "json"], default="text")
    smoke.set_defaults(run=commands.train_on_real_deepspeed, script_arguments=[])


def _add_modernise(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    modernise = subparsers.add_parser(
        "modernise",
        help="rewrite configs of any age to the keys of one DeepSpeed release",
        description="Rewrites DeepSpeed configs to the keys of one release, touching nothing else, and says what "
        "was carried over, what was dropped since its meaning is gone, and what a person must decide.",
        epilog=MODERNISE_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modernise.add_argument("paths", nargs="+", metavar="PATH", help="configs (JSON, Hjson), or folders with some")
    modernise.add_argument(
        "--target-deepspeed", metavar="VERSION", help="the release to write for (default: the newest known)"
    )
    modernise.add_argument(
        "--written-for",
        metavar="VERSION",
        help="the release that they were written for: defaults that changed since are then written out",
    )
    modernise.add_argument("--diff", action="store_true", help="show what would change, and change nothing")
    modernise.add_argument("--format", choices=["text", "json"], default="text")
    modernise.set_defaults(run=commands.modernise_files)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e7:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return number


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number
