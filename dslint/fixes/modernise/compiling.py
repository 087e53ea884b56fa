"""Compiling the model, which the config asked for once and the script asks for today."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.fixes.modernise.subject import Plan, Subject, truth

_BY_SCRIPT_SINCE, _REFUSED_SINCE = "0.14.4", "0.16.6"
_OLD_KEYS = ("backend", "kwargs", "disable", "enabled")  # the switch last: the others go by what it says


def compile_switches(subject: Subject) -> Iterator[Plan]:
    """The keys of `compile` that had DeepSpeed call torch.compile go.

    From 0.13.2 to 0.14.3 these were `enabled`, `backend` and `kwargs` (deepspeed/runtime/compiler.py,
    CompileConfig); `disable` was never read. Then the section was ignored, and from 0.16.6 on it has other keys
    and refuses these (deepspeed/compile/config.py).
    """
    section = subject.section("compile")
    for name in _OLD_KEYS:
        if name in section and subject.is_from(_BY_SCRIPT_SINCE):
            yield _taken_out(subject, name)


def _taken_out(subject: Subject, name: str) -> Plan:
    section = subject.section("compile")
    changes = (subject.delete("compile") if len(section) == 1 else subject.delete("compile", name),)
    if truth(section.get("enabled")) or "disable" in section:
        text = (
            f"taken out: from DeepSpeed {_BY_SCRIPT_SINCE} on the model is compiled only where the script calls "
            "engine.compile(backend=…, compile_kwargs=…)"
        )
        return Plan("dropped", ("compile", name), text, changes)
    text = f"taken out: nothing was compiled, and DeepSpeed {_REFUSED_SINCE} refuses the key even so"
    return Plan("carried over", ("compile", name), text, changes)
