"""Mixed precision through NVIDIA's Apex, which DeepSpeed took out."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.fixes.modernise.removed_features import is_off, without_effect
from dslint.fixes.modernise.subject import ZERO, Plan, Subject, truth

REFUSED_SINCE = "0.19.8"


def apex_amp(subject: Subject) -> Iterator[Plan]:
    """`amp` becomes `torch_autocast` where Apex cast automatically; what it did otherwise is left.

    Refused since 0.19.8 (deepspeed/runtime/config.py, _reject_removed_config_keys). Apex's O1, its default, ran
    listed operations in fp16 and scaled the loss; PyTorch's autocast took its place, and at stage 0 DeepSpeed
    scales the loss for it as well (runtime/engine.py, torch_autocast_z0_gradscaler). amp went neither with ZeRO
    nor with fp16 or bf16 (_do_optimizer_sanity_check of 0.19.7). O2 and O3 cast the model itself, as the section
    fp16 does with other rules.
    """
    if not subject.is_from(REFUSED_SINCE) or not subject.has("amp"):
        return
    if is_off(subject, ("amp",)):
        yield without_effect(subject, ("amp",), REFUSED_SINCE)
    elif _casts_automatically(subject):
        section = {"enabled": True, "dtype": "fp16"}
        made = (subject.rename("amp", to="torch_autocast"), subject.set("torch_autocast", to=section))
        text = "is now `torch_autocast` in fp16, which took the place of Apex's O1; roundings may differ"
        yield Plan("carried over", ("amp",), text, made)
    else:
        text = (
            f"DeepSpeed {REFUSED_SINCE} refuses it, since Apex was taken out: choose fp16 (near to Apex's O2), "
            "bf16 or torch_autocast (near to O1)"
        )
        yield Plan("left", ("amp",), text)


def _casts_automatically(subject: Subject) -> bool:
    section = subject.section("amp")
    is_plain = set(section) <= {"enabled", "opt_level"} and truth(section.get("enabled")) is True
    return is_plain and section.get("opt_level", "O1") == "O1" and _is_alone(subject)


def _is_alone(subject: Subject) -> bool:
    """Whether nothing stands beside `amp` that it did not go with."""
    precision = any(
        truth(subject.at(name, "enabled")) is not False for name in ("fp16", "bf16") if subject.has(name)
    )
    zero = truth(subject.at(ZERO)) or subject.at(ZERO, "stage") not in (None, 0)
    return not precision and not zero and not subject.has("torch_autocast")
