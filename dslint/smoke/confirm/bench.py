"""Where trials are run, each once only: a server that starts with the first of them."""

from __future__ import annotations

import dataclasses
import json
from contextlib import ExitStack
from functools import cached_property

from dslint.runs.linking import Pairing
from dslint.smoke.client import SmokeServer
from dslint.smoke.confirm.places import with_shown_path
from dslint.smoke.environment import SmokeError
from dslint.smoke.planning import CannotPlanError, SmokeOptions
from dslint.smoke.script_outcome import Outcome, outcome
from dslint.smoke.script_trial import ScriptTrial
from dslint.smoke.smoking import Begin, try_config
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict

EXECUTING = "executing"
"""The name under which the progress hears of a script of the user's that is about to be executed."""


class Bench:
    """Runs trials and remembers what they came to.

    Attributes:
        options: how to train.
    """

    def __init__(self, options: SmokeOptions, begin: Begin) -> None:
        self.options = options
        self._begin = begin
        self._stack = ExitStack()
        self._verdicts: dict[str, Verdict] = {}
        self._outcomes: dict[str, Outcome] = {}

    def close(self) -> None:
        """End the server, if it was started."""
        self._stack.close()

    @cached_property
    def _server(self) -> SmokeServer:
        server = SmokeServer(python=self.options.python, device=self.options.device, progress=self._begin(""))
        self._stack.enter_context(server)
        if self.options.device == "cuda" and not server.hello["count"]:
            raise SmokeError("--device cuda: torch sees no GPU here")
        return server

    @property
    def gpus(self) -> int:
        """GPUs of this machine."""
        return int(self._server.hello["count"])

    @property
    def installed(self) -> str:
        """The release of DeepSpeed that trains here."""
        return str(self._server.hello["deepspeed"])

    def verdict(self, trial: Trial, pairing: Pairing) -> Verdict:
        """What DeepSpeed does with the config of a run.

        Raises:
            CannotPlanError: if Hugging Face has to fill it in and isn't there.
            SmokeError: if nothing can be tried here.
        """
        needs_transformers = trial.loader == "hf" or trial.accelerate is not None
        if needs_transformers and not self._server.hello["transformers"]:
            raise CannotPlanError(
                f"Transformers fills the config in, and it is not installed for {self.options.python}"
            )
        key = json.dumps(trial.as_data(), sort_keys=True, default=str)
        if key not in self._verdicts:
            options = self.options.for_pairing(pairing)
            if trial.ranks == 1 and options.mode is None:  # one simulated rank is as good, and starts at once
                options = dataclasses.replace(options, mode="simulated")
            progress = self._begin(pairing.path)
            self._verdicts[key] = try_config(trial, options, self._server, self.gpus, progress)
        return self._verdicts[key]

    def outcome(self, trial: ScriptTrial, pairing: Pairing, *, again: bool = False) -> Outcome:
        """What comes of running a script, or of starting it.

        Args:
            trial: what to run.
            pairing: the run that it is made of.
            again: whether to run it although it has been.

        Raises:
            SmokeError: if nothing can be tried here.
        """
        key = json.dumps([trial.as_data(), again], sort_keys=True)
        if key not in self._outcomes:
            progress = self._begin(pairing.path)
            if trial.script is not None and pairing.script is not None:
                progress({EXECUTING: pairing.script.script.source.path, "ranks": trial.ranks})
            found = outcome(self._server.run_script(trial, progress))
            self._outcomes[key] = dataclasses.replace(found, where=with_shown_path(found.where, pairing))
        return self._outcomes[key]
