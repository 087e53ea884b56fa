"""How far dslint agrees with real DeepSpeed on a folder of configs, and on seeded mutants of those that train.

    python benchmarks/agreement.py FOLDER                           # run every *.json of FOLDER, print the table
    python benchmarks/agreement.py FOLDER --mutants 2000            # also this many mutants
    python benchmarks/agreement.py FOLDER --mutants 2000 --readme   # also write the table into README.md
    python benchmarks/agreement.py FOLDER --list                    # also list the disagreements

Each config is trained for two steps as rank 0 of 8 simulated ranks, by Hugging Face's Trainer where it holds an
"auto" that the Trainer fills: about half a second each. Trials that run out of time or memory are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from readme import write_table

from dslint.smoke.client import SmokeServer
from dslint.smoke.ops import SERVED
from tests.realworld.differential import RANKS, Comparison, Subject, compare, subjects_in
from tests.realworld.mutations import Breeder

FIRST_SEED = 200_000
"""The tests have lower seeds, and dslint was improved by them; the figure comes from others."""


def compare_all(folder: Path, mutants: int) -> dict[str, list[Comparison]]:
    """The comparisons of the folder's configs and of their mutants, by the head of their column."""
    with SmokeServer(device="cpu", ops=SERVED) as server:
        subjects = list(subjects_in(folder))
        columns = {"public configs": list(followed(compare(server, subjects)))}
        if mutants:
            trained = {one.subject.name for one in columns["public configs"] if one.trains}
            hurt = mutants_of(subjects, trained, mutants)
            columns["mutants of those that train"] = list(followed(compare(server, hurt)))
    return columns


def mutants_of(subjects: Sequence[Subject], bases: set[str], count: int) -> Iterator[Subject]:
    """Seeded mutants of some of the subjects."""
    breeder = Breeder({subject.name: subject.text for subject in subjects}, bases)
    return (Subject(mutant.name, mutant.text, mutant.mistakes) for mutant in breeder.mutants(count, FIRST_SEED))


def followed(comparisons: Iterator[Comparison]) -> Iterator[Comparison]:
    """The same, with a count for whoever waits."""
    for number, comparison in enumerate(comparisons, 1):
        if number % 50 == 0:
            print(f"{number} …", file=sys.stderr, flush=True)
        yield comparison


def table(columns: dict[str, list[Comparison]]) -> str:
    """The numbers as a Markdown table."""
    figures = [figures_of(comparisons) for comparisons in columns.values()]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(column[name] for column in figures)} |" for name in figures[0]]
    return "\n".join(lines)


def figures_of(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """One column of the table, by the head of the row."""
    finished = [one for one in comparisons if not one.unfinished]
    refused = [one for one in finished if one.refused]
    alarmed = [one for one in finished if one.errors]
    right = [one for one in refused if one.errors]
    reported = [one for one in refused if one.findings]
    return {
        "configs": str(len(finished)),
        f"refused by DeepSpeed {version('deepspeed')} on {RANKS} ranks": str(len(refused)),
        "said to be refused, by an error": str(len(alarmed)),
        "**precision**: of these, refused": share(len(right), len(alarmed)),
        "**recall**: of the refused, those with such an error": share(len(right), len(refused)),
        "of the refused, those with any finding": share(len(reported), len(refused)),
    }


def share(part: int, whole: int) -> str:
    """A part as a percentage, rounded down so that 100 % means all."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else ""


def disagreements(comparisons: Sequence[Comparison]) -> list[str]:
    """A line for each disagreement, the worst kind first."""
    return [
        *(f"false alarm: {one.told()}" for one in comparisons if one.is_false_alarm),
        *(f"missed: {one.told()}" for one in comparisons if one.is_missed),
        *(f"without error: {one.told()}" for one in comparisons if one.is_only_warned_of),
        *(f"left out: {one.told()}" for one in comparisons if one.unfinished),
    ]


def main() -> int:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutants", type=int, default=0, metavar="N", help="how many mutants to try")
    parser.add_argument("--list", action="store_true", help="list the disagreements")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    columns = compare_all(options.folder, options.mutants)
    text = table(columns)
    print(text)
    if options.list:
        print("\n".join(line for comparisons in columns.values() for line in disagreements(comparisons)))
    if options.readme:
        write_table("agreement", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
