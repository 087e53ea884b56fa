"""One real rank of a trial, as torchrun starts it: `python -m dslint.smoke.rank FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dslint.smoke.children import attempt, redirect_output, show_stack_on_signal
from dslint.smoke.reporting import Reporter, output_file
from dslint.smoke.trial import Trial


def main() -> None:
    """Run the trial in `FOLDER/trial.json` as the rank that the environment names."""
    folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    reporter = Reporter(folder, rank)
    reporter.tell(pid=os.getpid())
    redirect_output(output_file(folder, rank))
    show_stack_on_signal(folder, rank)
    trial = Trial.from_data(json.loads((folder / "trial.json").read_text()))

    def work(reporter: Reporter) -> None:
        from dslint.smoke.ops import use_own_folder

        use_own_folder()
        from dslint.smoke.rank.training import train_as_rank

        train_as_rank(trial, reporter)

    ended_well = attempt(work, reporter)
    os._exit(0 if ended_well else 1)  # nothing that a library does at its exit may hang or fail the run


if __name__ == "__main__":
    main()
