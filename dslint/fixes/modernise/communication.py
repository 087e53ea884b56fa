"""The data type in which gradients are sent."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.fixes.modernise.subject import Plan, Subject, truth

_OLD, _NEW = "fp32_allreduce", "communication_data_type"
_NEW_SINCE = "0.5.8"
_BF16_SINCE = "0.14.1"


def type_for_switch(subject: Subject) -> Iterator[Plan]:
    """`fp32_allreduce: true` becomes `communication_data_type: "fp32"`.

    deepspeed/runtime/constants.py: FP32_ALLREDUCE until 0.5.7, COMMUNICATION_DATA_TYPE from 0.5.8. The old key has
    been ignored since, so that gradients are reduced in the model's own type.
    """
    if not subject.is_from(_NEW_SINCE) or not subject.has(_OLD):
        return
    is_on = truth(subject.at(_OLD))
    given = subject.at(_NEW)
    if is_on is None or (is_on and given is not None):
        yield Plan(
            "left", (_OLD,), f"say in `{_NEW}` what is meant: this key is ignored from DeepSpeed {_NEW_SINCE} on"
        )
    elif is_on:
        empty = (subject.delete(_NEW),) if subject.has(_NEW) else ()
        made = (*empty, subject.rename(_OLD, to=_NEW), subject.set(_NEW, to="fp32"))
        yield Plan(
            "carried over", (_OLD,), f'is now `{_NEW}: "fp32"`, its name since DeepSpeed {_NEW_SINCE}', made
        )
    else:
        yield Plan("carried over", (_OLD,), f"taken out: off is the default of `{_NEW}`", (subject.delete(_OLD),))


def switch_for_type(subject: Subject) -> Iterator[Plan]:
    """The way back, for releases before 0.5.8, which could only choose fp32."""
    if not subject.is_from(_NEW_SINCE) and subject.at(_NEW) == "fp32" and not subject.has(_OLD):
        made = (subject.rename(_NEW, to=_OLD), subject.set(_OLD, to=True))
        yield Plan(
            "carried over", (_NEW,), f"is now `{_OLD}`, the way to say it before DeepSpeed {_NEW_SINCE}", made
        )


def name_of_bf16(subject: Subject) -> Iterator[Plan]:
    """bfloat16 is called bf16 here since 0.14.1, and was called bfp16 before.

    deepspeed/runtime/config.py, get_communication_data_type: any other word is a ValueError.
    """
    value = subject.at(_NEW)
    word = value.lower() if isinstance(value, str) else ""
    is_new = subject.is_from(_BF16_SINCE)
    old, new = ("bfp16", "bf16") if is_new else ("bf16", "bfp16")
    if word == old and subject.is_from(_NEW_SINCE):
        when = "since" if is_new else "before"
        text = f'"{value}" is now "{new}", the word {when} DeepSpeed {_BF16_SINCE}'
        yield Plan("carried over", (_NEW,), text, (subject.set(_NEW, to=new),))
