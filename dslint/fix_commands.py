"""What the commands do that change files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence

from dslint.commands import FAILED, FINE, FOUND, UsageError, exit_code, print_report
from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.fixes.policy import Policy
from dslint.fixes.writing import CannotWriteError, write
from dslint.fixing import Fixed, fix
from dslint.inputs import Reading, read
from dslint.job import Job
from dslint.linked import is_surely_a_config
from dslint.reports.diff import unified_diff
from dslint.reports.style import style_for
from dslint.rulebook.rule import Rule
from dslint.runs.releases import NEWEST, Release


def fix_files(options: argparse.Namespace, job: Job) -> int:
    """`dslint check --fix`, and with --diff what it would do."""
    policy = policy_of(options, job)
    reading = read(options.paths, job.settings.excludes if job.settings else None)
    fixed = fix(reading, job.options, job.rules, job.settings, policy)
    if options.diff:
        return show_diff(fixed)
    is_written = write_all(fixed.files)
    print_report(fixed.report, options.format, fixed)
    return exit_code(fixed.report, options, job.settings) if is_written else FAILED


def policy_of(options: argparse.Namespace, job: Job) -> Policy:
    """Which fixes the command line allows.

    Raises:
        UsageError: a choice that can't be made, or standard input that can't be written to.
    """
    if "-" in options.paths and options.fix and not options.diff:
        raise UsageError("--fix can't write to standard input; --diff shows what it would change")
    return Policy(options.unsafe_fixes, _choices(options.choose, job))


def modernise(options: argparse.Namespace, target: Release | None, written_for: Release | None) -> int:
    """`dslint modernise`, and with --diff what it would do."""
    from dslint.fixes.modernising import modernised
    from dslint.reports.modernise_report import json_modernise, text_modernise

    if "-" in options.paths and not options.diff:
        raise UsageError("standard input can't be rewritten; --diff shows what would change")
    reading = read(options.paths)
    sources = [*reading.configs, *(document.source for document in reading.accelerate)]
    results = [modernised(source, target or NEWEST, written_for) for source in sources if _is_one(source, reading)]
    changed = [(one.before, one.source) for one in results if one.is_changed]
    is_done = not reading.troubles
    if options.diff:
        sys.stdout.write(unified_diff(changed, style_for(sys.stdout)))
        print(text_modernise(results, style_for(sys.stderr)), file=sys.stderr)
    else:
        is_done = write_all(changed) and is_done
        print(
            json_modernise(results) if options.format == "json" else text_modernise(results, style_for(sys.stdout))
        )
    for trouble in reading.troubles:
        print(f"dslint: {trouble.path}: {trouble.message}", file=sys.stderr)
    if not is_done:
        return FAILED
    is_open = bool(changed) if options.diff else any(step.kind == "left" for one in results for step in one.steps)
    return FOUND if is_open else FINE


def _is_one(source: Source, reading: Reading) -> bool:
    """Whether a file is meant: one that was named, or surely a config where it was found in a folder."""
    return source.path not in reading.found or is_surely_a_config(read_config(source))


def show_diff(fixed: Fixed) -> int:
    """The diff of what would be fixed to standard output, everything else to standard error."""
    from dslint.reports.fix_report import not_applied_lines, would_fix

    sys.stdout.write(unified_diff(fixed.files, style_for(sys.stdout)))
    sys.stdout.flush()
    for line in (*not_applied_lines(fixed, style_for(sys.stderr)), would_fix(fixed)):
        print(line, file=sys.stderr)
    for trouble in fixed.report.troubles:
        print(f"dslint: {trouble.path}: {trouble.message}", file=sys.stderr)
    if fixed.report.troubles:
        return FAILED
    return FOUND if fixed.files else FINE


def write_all(files: Iterable[tuple[Source, Source]]) -> bool:
    """Whether every changed file could be written."""
    is_written = True
    for before, after in files:
        try:
            write(before, after)
        except CannotWriteError as error:
            print(f"dslint: {before.path}: {error}", file=sys.stderr)
            is_written = False
    return is_written


def _choices(texts: Sequence[str], job: Job) -> Mapping[str, int]:
    """Which of several ways to take, by code.

    Raises:
        UsageError: a choice that can't be made.
    """
    rules = [rule for rule in job.rules if isinstance(rule, Rule)]
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    return dict(_choice(part, rules) for part in parts)


def _choice(text: str, rules: Sequence[Rule]) -> tuple[str, int]:
    label, _, number = (part.strip() for part in text.partition("="))
    rule = next((rule for rule in rules if label.upper() == rule.code or label == rule.name), None)
    if rule is None:
        raise UsageError(f"--choose {text}: there is no rule '{label}' among those that are selected")
    ways = [str(count) for count, fix in enumerate(rule.fixes, 1) if fix.is_applicable]
    if number not in ways:
        offer = f"its ways are {', '.join(ways)}" if ways else "it has no fix that can be applied"
        raise UsageError(f"--choose {text}: write {rule.code}=N; {offer} (dslint explain {rule.code})")
    return rule.code, int(number)
