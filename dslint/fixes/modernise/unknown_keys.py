"""Unknown keys in sections that once ignored them and refuse them today."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.documents.document import NodePath
from dslint.fixes.modernise.subject import ZERO, Plan, Subject, dotted
from dslint.runs.keys import KeyTable, NamePath
from dslint.runs.near_names import near_name
from dslint.runs.schema import load_schema

STRICT_SINCE = {
    # deepspeed/runtime/zero/config.py and offload_config.py: models with extra="forbid" from 0.7.0 on, look-ups by
    # name before (DeepSpeedZeroConfig._initialize)
    (ZERO,): "0.7.0",
    (ZERO, "offload_optimizer"): "0.7.0",
    (ZERO, "offload_param"): "0.7.0",
    # deepspeed/runtime/precision_config.py from 0.17.1 on; get_fp16_enabled and the like in runtime/config.py
    ("fp16",): "0.17.1",
    ("bf16",): "0.17.1",
    # deepspeed/monitor/config.py from 0.7.0 on; get_tensorboard_enabled and the like in runtime/config.py before
    ("tensorboard",): "0.7.0",
}
_LOSS_SCALING = frozenset(
    {
        *("auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis"),
        *("consecutive_hysteresis", "min_loss_scale"),
    }
)


def unknown_keys(subject: Subject) -> Iterator[Plan]:
    """Keys that such a section never had go; one that may be meant for something is left.

    "auto" is dropped by DeepSpeed itself (deepspeed/runtime/config_utils.py, DeepSpeedConfigModel.__init__).
    """
    for path, since in STRICT_SINCE.items():
        if not subject.is_from(since):
            continue
        for name, value in subject.section(*path).items():
            if value != "auto" and not _is_known((*path, name)):
                yield _judged(subject, path, name, since)


def _is_known(path: NamePath) -> bool:
    """Whether any release has, or had, the key: one that came after the target is no unknown key."""
    return KeyTable(load_schema()).node(path) is not None


def _judged(subject: Subject, section: NamePath, name: str, since: str) -> Plan:
    path: NodePath = (*section, name)
    meant = None if section == ("bf16",) and name in _LOSS_SCALING else _meant(subject, section, name)
    if meant is not None:
        text = f"DeepSpeed {since} refuses this unknown key, which it ignored before: {meant}"
        return Plan("left", path, text)
    what = "bf16 has no loss scaling" if name in _LOSS_SCALING else "no release knows it"
    text = f"taken out: {what}; it was ignored before DeepSpeed {since}, and is refused since"
    return Plan("dropped", path, text, (subject.delete(*section, name),))


def _meant(subject: Subject, section: NamePath, name: str) -> str | None:
    """What a person may have meant by a key, as advice; None where nothing comes near."""
    keys = subject.keys
    known = keys.section(keys.node(section) or {}).get("properties", {})
    near = near_name(name, known)
    if near is not None:
        return f"is `{near.key}` meant?"
    homes = [home for home in keys.sections_by_key.get(name, ()) if home != section]
    if not homes:
        return None
    return f"it belongs into `{dotted(homes[0])}`" if homes[0] else "it belongs at the top level"
