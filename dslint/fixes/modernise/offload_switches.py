"""Offloading: switches for optimizer and parameters at first, sections with a device since DeepSpeed 0.3.15."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dslint.fixes.modernise.subject import ZERO, KeyChange, Plan, Subject, truth

SECTIONS_SINCE = "0.3.15"
_OPTIMIZER, _PARAM = "offload_optimizer", "offload_param"
_SWITCHES = {"cpu_offload": _OPTIMIZER, "cpu_offload_param": _PARAM, "cpu_offload_params": _PARAM}
_OLD_SWITCH = {_OPTIMIZER: ("cpu_offload", "0.3.1"), _PARAM: ("cpu_offload_params", "0.3.12")}
_PINNING = "cpu_offload_use_pin_memory"
_PINNING_SINCE = "0.3.12"
_MISSPELT_PINNING = "cpu_offload_pin_memory"


def sections_for_switches(subject: Subject) -> Iterator[Plan]:
    """`cpu_offload` becomes `offload_optimizer`, `cpu_offload_param(s)` becomes `offload_param`.

    The sections came with 0.3.15 (deepspeed/runtime/zero/offload_config.py). `cpu_offload_params` was read from
    0.3.12 to 0.6.7 and is refused since 0.7.0, which has `cpu_offload_param` instead. From 0.7.0 on `cpu_offload`
    and `cpu_offload_param` are deprecated fields of DeepSpeedZeroConfig (runtime/zero/config.py): true stands for
    the device cpu, false for no section, and both together with the section end in an AssertionError
    (runtime/config_utils.py, DeepSpeedConfigModel._process_deprecated_field).
    """
    if not subject.is_from(SECTIONS_SINCE):
        return
    for old, new in _SWITCHES.items():
        if subject.has(ZERO, old) and subject.at(ZERO, old) != "auto":
            yield _section_for(subject, old, new)


def _section_for(subject: Subject, old: str, new: str) -> Plan:
    path = (ZERO, old)
    is_on = truth(subject.at(*path))
    section = subject.at(ZERO, new)
    device = _device(section)
    if is_on is None or (device is not None and is_on != (device == "cpu")):
        return Plan(
            "left", path, f"say in `{ZERO}.{new}.device` what shall be offloaded, and take this switch out"
        )
    if not is_on:
        text = f"taken out: without `{new}` nothing is offloaded, as it was with this switch off"
        return Plan("carried over", path, text, (subject.delete(*path),))
    if device is not None:
        return Plan("carried over", path, f"taken out: `{new}` says the same", (subject.delete(*path),))
    empty = (subject.delete(ZERO, new),) if subject.has(ZERO, new) else ()
    made: tuple[KeyChange, ...] = (subject.rename(*path, to=new), subject.set(ZERO, new, to={"device": "cpu"}))
    text = f'is now `{new}` with the device "cpu", the way to say it since DeepSpeed {SECTIONS_SINCE}'
    return Plan("carried over", path, text, (*empty, *made))


def _device(section: Any) -> Any:
    """The device of an offload section; None where there is no section."""
    if section is None:
        return None
    return section.get("device", "none") if isinstance(section, dict) else "unknown"


def pinned_memory(subject: Subject) -> Iterator[Plan]:
    """`cpu_offload_use_pin_memory` becomes `pin_memory` in the offload sections.

    Read from 0.3.12 on (deepspeed/runtime/zero/constants.py); since 0.7.0 the key is deprecated and no longer
    hands its value on (runtime/zero/config.py, `set_new_param: False`). Without it pin_memory is true since 0.19.5
    and was false before. `cpu_offload_pin_memory` is a misspelling that no release read, and is refused since
    0.7.0; pinning is about speed only, so it may have what it asks for.
    """
    if not subject.is_from(SECTIONS_SINCE):
        return
    for old in (_PINNING, _MISSPELT_PINNING):
        if subject.has(ZERO, old) and subject.at(ZERO, old) != "auto":
            yield _pinned(subject, old)


def _pinned(subject: Subject, old: str) -> Plan:
    path = (ZERO, old)
    pin = truth(subject.at(*path))
    offloaded = [name for name in (_OPTIMIZER, _PARAM) if _device(subject.at(ZERO, name)) in ("cpu", "nvme")]
    open_ones = [name for name in offloaded if "pin_memory" not in subject.section(ZERO, name)]
    if pin is None and open_ones:
        return Plan(
            "left", path, "neither true nor false: say in `pin_memory` of the offload sections what is meant"
        )
    if not open_ones:
        why = "the offload sections have `pin_memory` themselves" if offloaded else "nothing is offloaded"
        return Plan("dropped", path, f"taken out: {why}", (subject.delete(*path),))
    made = [subject.set(ZERO, name, "pin_memory", to=pin) for name in open_ones]
    text = f"is now `pin_memory` in {' and '.join(f'`{name}`' for name in open_ones)}"
    return Plan("carried over", path, text, (*made, subject.delete(*path)))


def switches_for_sections(subject: Subject) -> Iterator[Plan]:
    """The way back, for releases before 0.3.15: a section that says no more than the switch could becomes one."""
    if subject.is_from(SECTIONS_SINCE):
        return
    for name, (old, first) in _OLD_SWITCH.items():
        if subject.has(ZERO, name):
            yield _switch_for(subject, name, old, first)


def _switch_for(subject: Subject, name: str, old: str, first: str) -> Plan:
    path = (ZERO, name)
    section = subject.section(*path)
    device = _device(subject.at(*path))
    if device in (None, "none"):
        return Plan("carried over", path, "taken out: it offloads nothing", (subject.delete(*path),))
    pin = section.get("pin_memory")
    can_be_said = device == "cpu" and set(section) <= {"device", "pin_memory"} and subject.is_from(first)
    if not can_be_said or (pin is not None and not subject.is_from(_PINNING_SINCE)) or subject.has(ZERO, old):
        return Plan("left", path, f"DeepSpeed has this section from {SECTIONS_SINCE} on only")
    pinning = () if pin is None else (subject.set(ZERO, _PINNING, to=pin),)
    made = (subject.rename(*path, to=old), subject.set(ZERO, old, to=True), *pinning)
    text = f"is now `{old}`, the way to say it before DeepSpeed {SECTIONS_SINCE}"
    return Plan("carried over", path, text, made)
