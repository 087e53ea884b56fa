"""Optimizers that are gone, and parameters that moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dslint.fixes.modernise.subject import Plan, Subject

_TYPE, _PARAMS = ("optimizer", "type"), ("optimizer", "params")
_LIMIT, _CLIPPING, _BIAS = "max_grad_norm", "gradient_clipping", "bias_correction"


def clipping_of_the_engine(subject: Subject) -> Iterator[Plan]:
    """`max_grad_norm` among the optimizer's parameters becomes `gradient_clipping`.

    Every release from 0.3.1 on refuses it there with a ValueError that says so (deepspeed/runtime/engine.py,
    DeepSpeedEngine._configure_basic_optimizer).
    """
    path = (*_PARAMS, _LIMIT)
    if not subject.has(*path):
        return
    value, given = subject.at(*path), subject.at(_CLIPPING)
    if given is None:
        empty = (subject.delete(_CLIPPING),) if subject.has(_CLIPPING) else ()
        text = (
            f"is now `{_CLIPPING}` at the top level, where DeepSpeed takes it; a script that brings its own "
            "optimizer did not clip before"
        )
        yield Plan("carried over", path, text, (*empty, subject.move(path, (_CLIPPING,))))
    elif given == value and not isinstance(given, bool):
        yield Plan("carried over", path, f"taken out: `{_CLIPPING}` says the same", (subject.delete(*path),))
    else:
        yield Plan(
            "left", path, f"DeepSpeed refuses it here, and `{_CLIPPING}` says something else: decide on one"
        )


def fused_by_apex(subject: Subject) -> Iterator[Plan]:
    """`legacy_fusion` goes.

    It chose a way to call Apex's FusedAdam, the last time in 0.18.5 (deepspeed/runtime/engine.py,
    DeepSpeedEngine._configure_fp16_optimizer); from 0.18.6 on nothing asks for it.
    """
    path = ("optimizer", "legacy_fusion")
    if subject.is_from("0.18.6") and subject.has(*path):
        text = (
            "taken out: DeepSpeed has no code for Apex's FusedAdam since 0.18.6, and doesn't look at this any more"
        )
        yield Plan("dropped", path, text, (subject.delete(*path),))


@dataclass(frozen=True)
class Uncompressed:
    """The optimizer that does what a 1-bit optimizer did, without the compression."""

    name: str
    type: str


ONE_BIT = {
    "onebitadam": Uncompressed("1-bit Adam", "AdamW"),
    "zerooneadam": Uncompressed("0/1 Adam", "AdamW"),
    "onebitlamb": Uncompressed("1-bit Lamb", "Lamb"),
}
ONE_BIT_REFUSED_SINCE = "0.19.7"
_COMPRESSION = frozenset(
    {
        *("freeze_step", "cuda_aware", "cuda-aware", "comm_backend_name", "eps_inside_sqrt"),
        *("coeff_beta", "factor_max", "factor_min", "factor_threshold"),
        *("var_freeze_step", "var_update_scaler", "local_step_scaler", "local_step_clipper"),
    }
)
"""Parameters about compression, and one that the 1-bit optimizers took without using it."""


def one_bit_optimizers(subject: Subject) -> Iterator[Plan]:
    """OneBitAdam, ZeroOneAdam and OneBitLamb become the optimizers that they were without compression.

    They were taken out in 0.19.7 (DEEPSPEED_OPTIMIZERS in deepspeed/runtime/config.py). Before they compressed,
    they divided by the second moment without correcting the bias, whatever `bias_correction` said, and added the
    weight decay to the update as AdamW does (runtime/fp16/onebit/*.py of 0.19.6: step).
    """
    written = subject.at("optimizer", "type")
    known = ONE_BIT.get(written.lower()) if isinstance(written, str) else None
    if known is None or not subject.is_from(ONE_BIT_REFUSED_SINCE):
        return
    params = subject.section(*_PARAMS)
    for name in sorted(_COMPRESSION & set(params)):
        text = f"taken out: a parameter of {known.name}, which DeepSpeed {ONE_BIT_REFUSED_SINCE} took out"
        yield Plan("dropped", (*_PARAMS, name), text, (subject.delete(*_PARAMS, name),))
    no_bias = subject.set(*_PARAMS, _BIAS, to=False)
    if params.get(_BIAS) not in (None, False):
        text = f"is now false: {known.name} did not correct the bias, whatever this said"
        yield Plan("dropped", (*_PARAMS, _BIAS), text, (no_bias,))
    text = (
        f'"{written}" is now "{known.type}" without bias correction, which is {known.name} before it compressed: '
        f"DeepSpeed {ONE_BIT_REFUSED_SINCE} took the compressed communication out, so steps need more bandwidth"
    )
    yield Plan("dropped", _TYPE, text, (subject.set(*_TYPE, to=known.type), no_bias))
