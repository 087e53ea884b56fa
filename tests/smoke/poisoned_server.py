"""The fork server, but each trial first runs the code that its arguments bring: `python -m poisoned_server`."""

from __future__ import annotations

from dslint.smoke import server
from dslint.smoke.rank import training
from dslint.smoke.reporting import Reporter
from dslint.smoke.trial import Trial


def main() -> None:
    simulate = training.simulate

    def poisoned(trial: Trial, reporter: Reporter) -> None:
        exec(trial.arguments.get("poison", ""))
        simulate(trial, reporter)

    training.simulate = poisoned
    server.main()


if __name__ == "__main__":
    main()
