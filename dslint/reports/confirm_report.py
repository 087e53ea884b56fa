"""What real DeepSpeed said to the findings, in lines for people and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dslint.confirmed import Confirmed, passed
from dslint.reports.fix_report import numbered
from dslint.reports.style import Style
from dslint.rulebook.finding import Finding
from dslint.smoke.confirm.sight import CONFIRMED, NOT_REPRODUCED, NOT_RUN, SEEN
from dslint.smoke.confirming import RunSmoked

VERDICTS = (CONFIRMED, SEEN, NOT_REPRODUCED, NOT_RUN)


def run_lines(confirmed: Confirmed, style: Style) -> Iterator[str]:
    """A line for each run that was tried as a whole."""
    for run in confirmed.runs:
        yield f"{style.bold('smoke')} {run.path}: {_state(run)}: {run.told}"


def _state(run: RunSmoked) -> str:
    if run.verdict is None:
        return NOT_RUN
    return "passes" if passed(run) else "fails"


def smoke_summary(confirmed: Confirmed) -> str:
    """One closing line that counts the verdicts."""
    counts = Counter(one.verdict for one in confirmed.verdicts.values())
    told = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    states = Counter(map(_state, confirmed.runs))
    told += [f"{numbered(states[state], 'run')} {state}" for state in ("passes", "fails") if states[state]]
    return f"Smoke: {', '.join(told)}." if told else "Smoke: nothing to try."


def finding_as_data(confirmed: Confirmed, finding: Finding) -> dict[str, str] | None:
    """What came of a finding, as plain data; None where it was not asked."""
    confirmation = confirmed.of(finding)
    return None if confirmation is None else {"verdict": confirmation.verdict, "told": confirmation.told}


def runs_as_data(confirmed: Confirmed) -> list[dict[str, Any]]:
    """The runs that were tried as a whole, as plain data."""
    return [
        {"path": run.path, "passed": None if run.verdict is None else passed(run), "told": run.told}
        for run in confirmed.runs
    ]
