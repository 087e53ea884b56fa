"""What `dslint check --smoke` does."""

from __future__ import annotations

import argparse
import sys

from dslint.commands import FAILED, FOUND, UsageError, end_in_order_when_terminated, exit_code, print_report
from dslint.confirmed import Confirmed, confirm, obstacle_to
from dslint.fix_commands import policy_of, show_diff, write_all
from dslint.fixes.policy import Policy
from dslint.fixing import AllRules, Fixed, fix
from dslint.inputs import Reading, read
from dslint.job import Job
from dslint.lint import check_reading
from dslint.reports.smoke_progress import ProgressLine
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.own_rules import OWN_RULES
from dslint.smoke.confirming import Confirmer
from dslint.smoke.environment import SmokeError
from dslint.smoke.planning import SmokeOptions

TIMEOUT = 120.0
"""Seconds that a trial may take where nobody says."""


def confirm_files(options: argparse.Namespace, job: Job) -> int:
    """`dslint check --smoke`, also with --fix or --diff."""
    policy = policy_of(options, job)
    end_in_order_when_terminated()
    reading = read(options.paths, job.settings.excludes if job.settings else None)
    try:
        with (
            ProgressLine(sys.stderr) as progress,
            Confirmer(_smoke_options(options, job), progress.begin) as confirmer,
        ):
            confirmed, fixed = _tried(options, job, reading, policy, confirmer)
    except SmokeError as error:
        raise UsageError(f"--smoke: {error}") from None
    return _shown(options, job, reading, confirmed, fixed)


def _tried(
    options: argparse.Namespace, job: Job, reading: Reading, policy: Policy, confirmer: Confirmer
) -> tuple[Confirmed, Fixed | None]:
    """What DeepSpeed says to the findings, and the fixes whose runs pass."""
    all_rules = AllRules(job.options, job.settings, (*shipped_rules(), *OWN_RULES))
    report = check_reading(reading, job.options, job.rules, job.settings)
    confirmed = confirm(reading, report.findings, all_rules, confirmer, policy, every_run=options.smoke == "all")
    if not options.fix and not options.diff:
        return confirmed, None
    fixed = fix(
        reading,
        job.options,
        job.rules,
        job.settings,
        policy,
        lambda mended: obstacle_to(mended, all_rules, confirmer, confirmed),
    )
    return confirmed, fixed


def _shown(
    options: argparse.Namespace, job: Job, reading: Reading, confirmed: Confirmed, fixed: Fixed | None
) -> int:
    """Writes what is to be written, prints the report and gives the exit code."""
    if options.diff and fixed is not None:
        return show_diff(fixed)
    is_written = fixed is None or write_all(fixed.files)
    report = check_reading(reading, job.options, job.rules, job.settings) if fixed is None else fixed.report
    print_report(report, options.format, fixed, confirmed)
    if not is_written:
        return FAILED
    code = exit_code(report, options, job.settings)
    return FOUND if confirmed.failed and code != FAILED else code


def _smoke_options(options: argparse.Namespace, job: Job) -> SmokeOptions:
    run = job.settings.options(job.options) if job.settings else job.options
    return SmokeOptions(
        gpus=run.gpus,
        nodes=run.nodes,
        gpu=run.gpu,
        mode=None,
        device="auto",
        loader=run.loader,
        steps=2,
        timeout=options.smoke_timeout or TIMEOUT,
        python=options.smoke_python,
        deepspeed=run.deepspeed,
    )
