"""A smoke from the first file to the last verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding
from dslint.runs.run import Options
from dslint.smoke.client import SmokeServer
from dslint.smoke.environment import SmokeError
from dslint.smoke.launch import run_real
from dslint.smoke.listening import Progress
from dslint.smoke.planning import Plan, SmokeOptions, plan, script_of
from dslint.smoke.script.running import run_script
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge

Begin = Callable[[str], Progress]
"""Called with the path of what is tried next; what it returns hears of the progress."""


@dataclass(frozen=True)
class Smoked:
    """What a file came to.

    Attributes:
        path: the config, or the script.
        verdict: what DeepSpeed did.
        ranks_from: where the number of ranks comes from, in words.
        simulated_gpu: what the CPU answered like, in words; empty if a device spoke for itself.
        findings: the errors that `dslint check` finds in a file that failed.
    """

    path: str
    verdict: Verdict
    ranks_from: str
    simulated_gpu: str
    findings: tuple[Finding, ...] = ()


def smoke(paths: Sequence[str], options: SmokeOptions, begin: Begin) -> Iterator[Smoked]:
    """Try one config after the other; torch and DeepSpeed are imported once, in another process.

    Raises:
        SmokeError: if the job can't be done here.
    """
    plans = [plan(path, options) for path in paths]
    with SmokeServer(python=options.python, device=options.device, progress=begin("")) as server:
        here = int(server.hello["count"])
        if options.device == "cuda" and not here:
            raise SmokeError("--device cuda: torch sees no GPU here")
        for each in plans:
            if each.loader == "hf" and not server.hello["transformers"]:
                raise SmokeError(
                    f'{each.path}: holds "auto", which only Transformers fills in, and it is not installed for '
                    f"{options.python}: pip install transformers accelerate, or write the values out"
                )
            yield _smoke_one(each, options, server, here, begin(each.path))


def _smoke_one(each: Plan, options: SmokeOptions, server: SmokeServer, here: int, progress: Progress) -> Smoked:
    on_cpu = here == 0
    trial = each.trial(options, here, answers_like_a_gpu=on_cpu)
    simulated_gpu = options.gpu.name if options.gpu else "a GPU with fp16 and bf16" if on_cpu else ""
    verdict = try_config(trial, options, server, here, progress)
    ranks_from = each.ranks_from or ("the default" if on_cpu else "the GPUs here")
    findings = () if verdict.passed else _errors(each, trial, options)
    return Smoked(each.path, verdict, ranks_from, simulated_gpu, findings)


def try_config(
    trial: Trial, options: SmokeOptions, server: SmokeServer, here: int, progress: Progress | None = None
) -> Verdict:
    """Train on real ranks where that is wanted or there are GPUs enough, else as one simulated rank.

    Raises:
        SmokeError: if real ranks are asked for and can't be had.
    """
    if is_real(trial, options, here):
        heard = run_real(trial, python=options.python, device=options.device, progress=progress)
        return judge(heard, mode="real", world=trial.ranks)
    return judge([server.run(trial, progress)], mode="simulated", world=trial.ranks)


def _errors(each: Plan, trial: Trial, options: SmokeOptions) -> tuple[Finding, ...]:
    """What the rules say about a file that failed, on as many ranks."""
    if each.path == "-":
        return ()
    known = Options(trial.gpus, trial.nodes, options.gpu, None, trial.loader)
    report = check([each.path], known, shipped_rules())
    return tuple(finding for finding in report.findings if finding.severity == "error")


def is_real(trial: Trial, options: SmokeOptions, here: int) -> bool:
    """Whether to train with one process a rank.

    Raises:
        SmokeError: if that is asked for and can't be done.
    """
    if options.mode == "simulated":
        return False
    if options.mode is None:
        return options.gpu is None and trial.nodes == 1 and trial.ranks <= here
    if trial.nodes > 1:
        raise SmokeError("--real trains on this machine alone; --nodes needs --simulate")
    if options.gpu is not None:
        raise SmokeError("--real trains on what is here; --gpu needs --simulate")
    if options.device != "cpu" and here == 0:
        raise SmokeError(
            "--real: torch sees no GPU here; --real --device cpu trains real ranks on the CPU (gloo), "
            "--simulate one rank of as many as you like"
        )
    if options.device != "cpu" and trial.ranks > here and not options.share_gpus:
        raise SmokeError(
            f"--real: {trial.ranks} ranks, but {here} GPU{'s' if here > 1 else ''} here; "
            "lower --gpus, use --simulate, or let ranks share a GPU with --share-gpus"
        )
    return True


def smoke_script(script: str, arguments: Sequence[str], options: SmokeOptions, begin: Begin) -> Smoked:
    """Run the user's own script under the launcher for a few steps.

    Raises:
        SmokeError: if there is no such script, or it never calls DeepSpeed.
    """
    ranks = options.gpus or 1
    heard = run_script(
        script_of(script),
        arguments,
        ranks=ranks,
        steps=options.steps,
        timeout=options.timeout,
        python=options.python,
        progress=begin(script),
    )
    verdict = judge(heard, mode="real", world=ranks, same_batch=False)
    return Smoked(script, verdict, "--gpus" if options.gpus else "the default", "")
