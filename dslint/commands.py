"""What the commands do.

Each imports what it needs when it runs, so that `--help` and `--version` cost next to nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dslint.confirmed import Confirmed
    from dslint.fixing import Fixed
    from dslint.job import Job
    from dslint.lint import Report
    from dslint.rulebook.rule import Rule
    from dslint.rulebook.rule_text import RuleText
    from dslint.runs.gpus import Gpu
    from dslint.runs.releases import Release
    from dslint.runs.run import Options
    from dslint.settings.settings import Settings
    from dslint.smoke.planning import SmokeOptions

FINE, FOUND, FAILED = 0, 1, 2
"""Exit codes: nothing to complain about; findings; the job could not be done."""


class UsageError(Exception):
    """An option that can't be used; the message says why."""


def check_files(options: argparse.Namespace) -> int:
    """`dslint check`."""
    if options.gpu == "list":
        return _list_gpus()
    from dslint.lint import check

    _must_go_together(options)
    job = _job(options)
    if options.smoke:
        from dslint.confirm_commands import confirm_files

        return confirm_files(options, job)
    if options.fix or options.diff:
        from dslint.fix_commands import fix_files

        return fix_files(options, job)
    report = check(options.paths, job.options, job.rules, job.settings)
    print_report(report, options.format)
    return exit_code(report, options, job.settings)


def _must_go_together(options: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    is_fixing = options.fix or options.diff
    if options.unsafe_fixes and not is_fixing:
        raise UsageError("--unsafe-fixes says what to apply: it goes with --fix or --diff")
    if options.choose and not is_fixing and not options.smoke:
        raise UsageError("--choose says what to apply, or to try: it goes with --fix, --diff or --smoke")
    if options.smoke_timeout is not None and not options.smoke:
        raise UsageError("--smoke-timeout goes with --smoke")


def _job(options: argparse.Namespace) -> Job:
    from dslint.job import Job
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
    return Job(run_options, rules, settings)


def exit_code(report: Report, options: argparse.Namespace, settings: Settings | None) -> int:
    """What a report is worth to a shell."""
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


def show_runs(options: argparse.Namespace) -> int:
    """`dslint runs`."""
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
        deepspeed=release(options.deepspeed),
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


def release(text: str | None, option: str = "--deepspeed") -> Release | None:
    """A release that an option names.

    Raises:
        UsageError: the text is no version.
    """
    if text is None:
        return None
    from dslint.runs.releases import parse_release

    try:
        return parse_release(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def print_report(
    report: Report, form: str, fixed: Fixed | None = None, confirmed: Confirmed | None = None
) -> None:
    """Shows a report, what was mended before it, and what real DeepSpeed said to it."""
    if form == "json":
        from dslint.reports.json_report import json_report

        print(json_report(report, fixed, confirmed))
    elif form == "github":
        from dslint.reports.github_report import github_report

        print(github_report(report, fixed, confirmed))
        return  # it names the files that could not be checked too, in a form that no file name breaks out of
    else:
        from dslint.reports.style import style_for
        from dslint.reports.text_report import text_report

        print(text_report(report, style_for(sys.stdout), fixed, confirmed))
    for trouble in report.troubles:
        print(f"dslint: {trouble.path}: {trouble.message}", file=sys.stderr)


def _is_bad_enough(report: Report, fail_on: str) -> bool:
    from dslint.rulebook.rule import SEVERITIES

    if fail_on == "never":
        return False
    least = SEVERITIES.index(fail_on)
    return any(SEVERITIES.index(finding.severity) >= least for finding in report.findings)


def explain_rule(options: argparse.Namespace) -> int:
    """`dslint explain`."""
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


def list_rules(options: argparse.Namespace) -> int:
    """`dslint rules`."""
    from dslint.reports.rule_list import rule_list_as_json, rule_list_as_text
    from dslint.reports.style import style_for

    rules = _rule_texts()
    if options.format == "json":
        print(rule_list_as_json(rules))
    else:
        print(rule_list_as_text(rules, style_for(sys.stdout)))
    return FINE


def print_schema(options: argparse.Namespace) -> int:
    """`dslint schema`."""
    import json

    from dslint.runs.releases import NEWEST
    from dslint.runs.schema import schema_for

    wanted = release(options.deepspeed) or NEWEST
    if wanted.key > NEWEST.key:
        print(f"dslint: {wanted.text} is newer than what dslint knows; this is {NEWEST.text}", file=sys.stderr)
    print(json.dumps(schema_for(wanted.key), indent=2, ensure_ascii=False))
    return FINE


def train_on_real_deepspeed(options: argparse.Namespace) -> int:
    """`dslint smoke`."""
    from dslint.smoke.environment import SmokeError

    end_in_order_when_terminated()
    _must_make_sense(options)
    try:
        return _smoke_all(options)
    except SmokeError as error:
        raise UsageError(str(error)) from None


def end_in_order_when_terminated() -> None:
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
    if options.share_gpus and (options.mode != "real" or options.script is not None):
        raise UsageError("--share-gpus goes with --real and configs: it lets their ranks share the GPUs here")


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
        share_gpus=options.share_gpus,
    )


def modernise_files(options: argparse.Namespace) -> int:
    """`dslint modernise`."""
    from dslint.fix_commands import modernise

    target = release(options.target_deepspeed, "--target-deepspeed")
    return modernise(options, target, release(options.written_for, "--written-for"))


def look_at_this_machine(options: argparse.Namespace) -> int:
    """`dslint doctor`."""
    from dslint.doctor.examination import CannotExamineError, examine
    from dslint.reports.doctor_report import doctor_json, doctor_text
    from dslint.reports.style import style_for

    try:
        diagnosis = examine(options.configs, options.python)
    except CannotExamineError as error:
        raise UsageError(str(error)) from None
    print(doctor_json(diagnosis) if options.format == "json" else doctor_text(diagnosis, style_for(sys.stdout)))
    return FOUND if diagnosis.has_errors else FINE
