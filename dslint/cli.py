"""The command line.

Each command imports what it needs when it runs, so that `--help` and `--version` cost next to nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from dslint import __version__

if TYPE_CHECKING:
    from dslint.lint import Report
    from dslint.rulebook.rule import Rule
    from dslint.rulebook.rule_text import RuleText
    from dslint.runs.gpus import Gpu
    from dslint.runs.run import Options
    from dslint.settings.settings import Settings
    from dslint.smoke.planning import SmokeOptions

FINE, FOUND, FAILED = 0, 1, 2
"""Exit codes: nothing to complain about; findings; the job could not be done."""

EXIT_CODES = """\
exit codes:
  0  nothing at or above --fail-on
  1  findings at or above --fail-on
  2  the job could not be done: a bad option, a file that can't be read, an internal error
"""


SMOKE_EXIT_CODES = """\
exit codes:
  0  everything trains, saves and loads
  1  something does not
  2  the job could not be done: a bad option, no DeepSpeed, a file that is no config
"""


class UsageError(Exception):
    """An option that can't be used; the message says why."""


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
        return FAILED
    try:
        return int(options.run(options))
    except UsageError as error:
        print(f"dslint: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # The reader went away (`dslint … | head`); there is nobody left to tell.
        sys.stdout = None
        return FAILED
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
        return FAILED
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
    return FAILED


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit code and the tone of the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(FAILED, f"dslint: {message}\nTry '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dslint",
        description="Finds mistakes in DeepSpeed training runs before they cost GPU hours.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dslint {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_check(commands)
    _add_runs(commands)
    _add_smoke(commands)
    explain = commands.add_parser("explain", help="what a rule says, and why")
    explain.add_argument("code", metavar="CODE", help="code or name of a rule: DS201, batch-size-mismatch")
    explain.set_defaults(run=_explain)
    rules = commands.add_parser("rules", help="list all rules")
    rules.add_argument("--format", choices=["text", "json"], default="text")
    rules.set_defaults(run=_rules)
    schema = commands.add_parser("schema", help="print the JSON Schema of the DeepSpeed config")
    schema.add_argument("--deepspeed", metavar="VERSION", help="the DeepSpeed release (default: the newest known)")
    schema.set_defaults(run=_schema)
    doctor = commands.add_parser("doctor", help="check this machine and its Python for DeepSpeed's traps")
    doctor.add_argument("configs", nargs="*", metavar="CONFIG", help="look only at what these configs need")
    doctor.add_argument("--python", metavar="PATH", help="the Python that will train (default: dslint's own)")
    doctor.add_argument("--format", choices=["text", "json"], default="text")
    doctor.set_defaults(run=_doctor)
    return parser


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    check = commands.add_parser(
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
    output.add_argument("--format", choices=["text", "json"], default="text")
    _add_settings_options(check)
    check.set_defaults(run=_check)


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


def _add_runs(commands: argparse._SubParsersAction[_Parser]) -> None:
    runs = commands.add_parser(
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
    runs.set_defaults(run=_runs)


def _add_smoke(commands: argparse._SubParsersAction[_Parser]) -> None:
    smoke = commands.add_parser(
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
    smoke.set_defaults(run=_smoke, script_arguments=[])


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


def _check(options: argparse.Namespace) -> int:
    if options.gpu == "list":
        return _list_gpus()
    from dslint.lint import check
    from dslint.rulebook.cache import shipped_rules
    from dslint.rulebook.own_rules import OWN_RULES
    from dslint.rulebook.selection import NoSuchRuleError, select

    run_options = _run_options(options)
    known: list[Rule | RuleText] = [*shipped_rules(), *OWN_RULES]
    settings = _settings(options, known)
    try:
        rules = select(known, *_labels(options, settings))
    except NoSuchRuleError as error:
        raise UsageError(str(error)) from None
    report = check(options.paths, run_options, rules, settings)
    _print_report(report, options.format)
    if report.troubles:
        return FAILED
    fail_on = options.fail_on or (settings.fail_on if settings else None) or "error"
    return FOUND if _is_bad_enough(report, fail_on) else FINE


def _settings(options: argparse.Namespace, rules: Sequence[Rule | RuleText]) -> Settings | None:
    if options.isolated:
        return None
    from dslint.settings.loading import SettingsError, load_settings

    try:
        return load_settings(options.paths, rules, options.settings)
    except SettingsError as error:
        raise UsageError(str(error)) from None


def _labels(options: argparse.Namespace, settings: Settings | None) -> tuple[str | None, str | None]:
    """What to select and to ignore: --select stands instead of the settings, --ignore adds to them."""
    if settings is None or options.select is not None:
        return options.select, options.ignore
    select = None if settings.select is None else ",".join(settings.select)
    return select, ",".join([*settings.ignore, options.ignore or ""])


def _runs(options: argparse.Namespace) -> int:
    if options.gpu == "list":
        return _list_gpus()
    from dslint.linked import find_runs
    from dslint.reports.run_report import json_runs, text_runs
    from dslint.reports.style import style_for
    from dslint.rulebook.cache import shipped_rules
    from dslint.rulebook.own_rules import OWN_RULES

    settings = _settings(options, [*shipped_rules(), *OWN_RULES])
    runs, troubles = find_runs(options.paths, _run_options(options), settings)
    if options.format == "json":
        print(json_runs(runs, everything=options.all))
    else:
        print(text_runs(runs, style_for(sys.stdout), everything=options.all))
    for trouble in troubles:
        print(f"dslint: {trouble.path}: {trouble.message}", file=sys.stderr)
    return FAILED if troubles else FINE


def _run_options(options: argparse.Namespace) -> Options:
    from dslint.runs.run import Options

    return Options(
        gpus=options.gpus,
        nodes=options.nodes,
        gpu=_gpu(options.gpu),
        deepspeed=_release(options.deepspeed),
        loader=options.loader,
    )


def _list_gpus() -> int:
    from dslint.runs.gpus import gpu_names

    print("\n".join(gpu_names()))
    return FINE


def _gpu(name: str | None) -> Gpu | None:
    if name is None:
        return None
    from dslint.runs.gpus import NoGpuFound, UnknownGpu, find_gpu, local_gpus

    try:
        return local_gpus()[0] if name == "auto" else find_gpu(name)
    except (UnknownGpu, NoGpuFound) as error:
        raise UsageError(f"--gpu {name}: {error}") from None


def _release(text: str | None):  # type: ignore[no-untyped-def]  # the type would cost an import
    if text is None:
        return None
    from dslint.runs.releases import parse_release

    try:
        return parse_release(text)
    except ValueError as error:
        raise UsageError(f"--deepspeed {text}: {error}") from None


def _print_report(report: Report, form: str) -> None:
    if form == "json":
        from dslint.reports.json_report import json_report

        print(json_report(report))
    else:
        from dslint.reports.style import style_for
        from dslint.reports.text_report import text_report

        print(text_report(report, style_for(sys.stdout)))
    for trouble in report.troubles:
        print(f"dslint: {trouble.path}: {trouble.message}", file=sys.stderr)


def _is_bad_enough(report: Report, fail_on: str) -> bool:
    from dslint.rulebook.rule import SEVERITIES

    if fail_on == "never":
        return False
    least = SEVERITIES.index(fail_on)
    return any(SEVERITIES.index(finding.severity) >= least for finding in report.findings)


def _explain(options: argparse.Namespace) -> int:
    from dslint.reports.explanation import explanation
    from dslint.reports.style import style_for

    rule = _find_rule(options.code)
    print(explanation(rule, style_for(sys.stdout)))
    return FINE


def _find_rule(label: str) -> RuleText:
    from dslint.rulebook.cache import shipped_rule_text

    shipped = shipped_rule_text(label)
    if shipped is not None:
        return shipped
    rules = _rule_texts()
    for one in rules:
        if label.upper() == one.code or label == one.name:
            return one
    from difflib import get_close_matches

    labels = {
        **{one.code.lower(): one.code for one in rules},
        **{one.name: one.name for one in rules},
    }
    near = get_close_matches(label.lower(), labels, n=1)
    hint = f": did you mean {labels[near[0]]}?" if near else " (dslint rules lists them)"
    raise UsageError(f"there is no rule '{label}'{hint}")


def _rule_texts() -> list[RuleText]:
    from dslint.rulebook.cache import shipped_rule_texts
    from dslint.rulebook.own_rules import OWN_RULES

    return sorted([*shipped_rule_texts(), *OWN_RULES], key=lambda rule: rule.code)


def _rules(options: argparse.Namespace) -> int:
    from dslint.reports.rule_list import rule_list_as_json, rule_list_as_text
    from dslint.reports.style import style_for

    rules = _rule_texts()
    if options.format == "json":
        print(rule_list_as_json(rules))
    else:
        print(rule_list_as_text(rules, style_for(sys.stdout)))
    return FINE


def _schema(options: argparse.Namespace) -> int:
    import json

    from dslint.runs.releases import NEWEST
    from dslint.runs.schema import schema_for

    release = _release(options.deepspeed) or NEWEST
    if release.key > NEWEST.key:
        print(f"dslint: {release.text} is newer than what dslint knows; this is {NEWEST.text}", file=sys.stderr)
    print(json.dumps(schema_for(release.key), indent=2, ensure_ascii=False))
    return FINE


def _smoke(options: argparse.Namespace) -> int:
    from dslint.smoke.environment import SmokeError

    _end_in_order_when_terminated()
    _must_make_sense(options)
    try:
        return _smoke_all(options)
    except SmokeError as error:
        raise UsageError(str(error)) from None


def _end_in_order_when_terminated() -> None:
    """Leave by an exception when asked to end, so that processes and temporary files go too."""
    import signal

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def _must_make_sense(options: argparse.Namespace) -> None:
    if options.script is None and options.script_arguments:
        raise UsageError("arguments after -- belong to a script: name it with --script")
    if options.script is None and not options.paths:
        raise UsageError("name a DeepSpeed config to try, or a script with --script")
    if options.script is not None and options.paths:
        raise UsageError("a config or --script, not both; the script's own arguments follow after --")
    if options.script is not None and (options.mode == "simulated" or options.gpu or options.nodes):
        raise UsageError("--script runs where and as you would run it: no --simulate, --gpu or --nodes")


def _smoke_all(options: argparse.Namespace) -> int:
    from dslint.reports.smoke_progress import ProgressLine
    from dslint.reports.smoke_report import smoke_json, smoke_summary, smoke_text
    from dslint.reports.style import style_for
    from dslint.smoke.smoking import smoke, smoke_script

    results = []
    style = style_for(sys.stdout)
    with ProgressLine(sys.stderr) as progress:
        if options.script is not None:
            print(f"dslint: executing {options.script} for {options.steps} optimizer steps", file=sys.stderr)
            found = iter(
                [smoke_script(options.script, options.script_arguments, _smoke_options(options), progress.begin)]
            )
        else:
            found = smoke(options.paths, _smoke_options(options), progress.begin)
        try:
            for one in found:
                results.append(one)
                if options.format == "text":
                    progress.clear()
                    print(smoke_text(one, style), flush=True)
        finally:  # what was found before something went wrong is kept
            if options.format == "json" and results:
                print(smoke_json(results))
    if options.format == "text":
        print(smoke_summary(results, style))
    return FINE if all(one.verdict.passed for one in results) else FOUND


def _smoke_options(options: argparse.Namespace) -> SmokeOptions:
    from dslint.smoke.planning import SmokeOptions

    return SmokeOptions(
        gpus=options.gpus,
        nodes=options.nodes,
        gpu=_gpu(options.gpu),
        mode=options.mode,
        device=options.device,
        loader=options.loader,
        steps=options.steps,
        timeout=options.timeout or (600.0 if options.script else 120.0),
        python=options.python,
    )


def _doctor(options: argparse.Namespace) -> int:
    from dslint.doctor.examination import CannotExamineError, examine
    from dslint.reports.doctor_report import doctor_json, doctor_text
    from dslint.reports.style import style_for

    try:
        diagnosis = examine(options.configs, options.python)
    except CannotExamineError as error:
        raise UsageError(str(error)) from None
    print(doctor_json(diagnosis) if options.format == "json" else doctor_text(diagnosis, style_for(sys.stdout)))
    return FOUND if diagnosis.has_errors else FINE
