"""What fixes are worth on a folder of configs, and on seeded mutants of those that train.

    python benchmarks/fixes.py FOLDER                           # mend every *.json of FOLDER, print the table
    python benchmarks/fixes.py FOLDER --mutants 1000            # also this many mutants
    python benchmarks/fixes.py FOLDER --mutants 1000 --readme   # also write the table into README.md
    python benchmarks/fixes.py FOLDER --list                    # also list what a fix did not mend

Every fix is applied, the unsafe ones too, and of several ways the first one. Each config that changes is trained
for two steps as rank 0 of 8 simulated ranks, before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agreement import mutants_of, share
from readme import write_table

from dslint.smoke.client import SmokeServer
from dslint.smoke.ops import SERVED
from tests.realworld.differential import EXCUSES, RANKS, Comparison, Subject, claims_refusal, compare, subjects_in
from tests.realworld.mending import MendedSubject, mend_subject

TEMPLATE = "DS003"
"""The rule that finds values which another program fills in."""


@dataclass(frozen=True)
class Tried:
    """A config that fixes changed, on real DeepSpeed before and after."""

    mended: MendedSubject
    before: Comparison
    after: Comparison

    @property
    def finished(self) -> bool:
        """Whether neither trial ran out of time or memory."""
        return not self.before.unfinished and not self.after.unfinished

    @property
    def should_train(self) -> bool:
        """Whether the fixes left no error, no template to fill in, and nothing that this machine lacks."""
        is_template = any(finding.code == TEMPLATE for finding in self.mended.after)
        is_excused = any(excuse.holds_for(self.after) for excuse in EXCUSES)
        return not is_template and not is_excused and not any(map(claims_refusal, self.mended.after))


@dataclass(frozen=True)
class Column:
    """What came of one set of configs."""

    all: Sequence[MendedSubject]
    tried: Sequence[Tried]


def columns_of(folder: Path, mutants: int) -> dict[str, Column]:
    """The configs of the folder, and mutants of those that train."""
    with SmokeServer(device="cpu", ops=SERVED) as server:
        subjects = list(subjects_in(folder))
        columns = {"public configs": column_of(server, subjects)}
        if mutants:
            refused = {one.mended.subject.name for one in columns["public configs"].tried if not one.before.trains}
            bases = {subject.name for subject in subjects} - refused
            columns["mutants"] = column_of(server, mutants_of(subjects, bases, mutants))
    return columns


def column_of(server: SmokeServer, subjects: Iterable[Subject]) -> Column:
    """Mend all, and train those that changed."""
    mended = [mend_subject(subject) for subject in subjects]
    changed = [one for one in mended if one.changed]
    return Column(mended, list(followed(tried(server, changed))))


def tried(server: SmokeServer, changed: Sequence[MendedSubject]) -> Iterator[Tried]:
    """The trials of configs that changed."""
    for one in changed:
        before, after = compare(server, [one.subject, one.now])
        yield Tried(one, before, after)


def followed(trials: Iterator[Tried]) -> Iterator[Tried]:
    """The same, with a count for whoever waits."""
    for number, one in enumerate(trials, 1):
        if number % 50 == 0:
            print(f"{number} …", file=sys.stderr, flush=True)
        yield one


def figures_of(column: Column) -> dict[str, str]:
    """One column of the table, by the head of the row."""
    findings = [finding for one in column.all for finding in one.before]
    with_fix = [one for one in findings if any(way.is_applicable for way in one.fixes)]
    kept = sum(len(one.mended.applied) for one in column.all)
    given_up = sum(len(one.mended.not_applied) for one in column.all)
    finished = [one for one in column.tried if one.finished]
    clean = [one for one in finished if one.should_train]
    return {
        "configs": str(len(column.all)),
        "findings": str(len(findings)),
        "of these, with a fix": share(len(with_fix), len(findings)),
        "fixes tried": str(kept + given_up),
        "of these, kept: the finding went and no error came": share(kept, kept + given_up),
        "configs that fixes changed, and that were trained": str(len(finished)),
        f"of these, trained by DeepSpeed {version('deepspeed')} on {RANKS} ranks before": share(
            sum(one.before.trains for one in finished), len(finished)
        ),
        "the same after the fixes": share(sum(one.after.trains for one in finished), len(finished)),
        "the same where no error and no template is left, and the CPU has the op": share(
            sum(one.after.trains for one in clean), len(clean)
        ),
        "bytes changed outside of what a fix is about": str(sum(one.bytes_outside() for one in column.all)),
    }


def table(columns: dict[str, Column]) -> str:
    """The numbers as a Markdown table."""
    figures = [figures_of(column) for column in columns.values()]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(column[name] for column in figures)} |" for name in figures[0]]
    return "\n".join(lines)


def unmended(column: Column) -> Iterator[str]:
    """Lines about everything that is not as one would have it."""
    for one in column.all:
        for left in one.mended.not_applied:
            yield f"not kept: {one.subject.name}: {left.finding.code} {left.fix.title}: {left.reason}"
        if one.bytes_outside():
            yield f"bytes outside: {one.subject.name}"
    for trial in column.tried:
        if trial.before.trains and not trial.after.trains:
            yield f"broken: {trial.after.told()}"
        elif not trial.after.trains:
            kind = "not mended" if trial.should_train else "left"
            yield f"{kind}: {trial.after.told()}"
    counts = Counter(
        finding.code
        for one in column.all
        for finding in one.before
        if finding.severity == "error" and not any(way.is_applicable for way in finding.fixes)
    )
    yield f"errors without a fix: {counts.most_common()}"


def main() -> int:
    """Mends, trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutants", type=int, default=0, metavar="N", help="how many mutants to try")
    parser.add_argument("--list", action="store_true", help="list what was not mended")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    columns = columns_of(options.folder, options.mutants)
    text = table(columns)
    print(text)
    if options.list:
        print("\n".join(line for column in columns.values() for line in unmended(column)))
    if options.readme:
        write_table("fixes", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
