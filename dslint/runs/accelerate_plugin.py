"""The config that Accelerate makes where nobody writes one: of a plugin's arguments and the launcher's options.

Source: accelerate/utils/dataclasses.py, DeepSpeedPlugin.__post_init__ and set_mixed_precision.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dslint.documents.document import Document, NodePath, Placeholder
from dslint.documents.source import Source, Span
from dslint.runs import accelerate
from dslint.runs.accelerate_settings import launched_setting
from dslint.runs.script.events import Call
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, is_known

if TYPE_CHECKING:
    from dslint.runs.launch.launch import Launch

POSITIONS = {
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 2,
    "zero_stage": 3,
    "offload_optimizer_device": 5,
    "offload_param_device": 6,
    "offload_optimizer_nvme_path": 7,
    "offload_param_nvme_path": 8,
    "zero3_save_16bit_model": 10,
}
"""The plugin's arguments that become keys of the config."""


def plugin_config(deeds: Deeds, started_by: Document | None, launch: Launch | None) -> Document | None:
    """The config of a script whose Accelerator trains with DeepSpeed and is given no config.

    Its values stand where the script, or else the launch command, writes them. None where there is a config after
    all, where nobody can follow the plugin, and where the Accelerate file alone says what there is to say.
    """
    accelerators = [call for call in deeds.calls if _makes(call, "accelerator")]
    plugins = [call for call in deeds.calls if _makes(call, "deepspeed_plugin")]
    if len(accelerators) != 1 or len(plugins) > 1 or launched_setting(launch, started_by, "deepspeed_config_file"):
        return None
    if plugins:
        plugin = plugins[0]
        if plugin.argument(0, "hf_ds_config") is not None or not plugin.is_complete:
            return None
        return _Builder(deeds.script.source, deeds, plugin, accelerators[0], started_by, launch).document()
    if launch is None or launch.launcher != "accelerate" or not _has_options(launch, started_by):
        return None
    return _Builder(launch.source, deeds, None, accelerators[0], started_by, launch).document()


def _has_options(launch: Launch, started_by: Document | None) -> bool:
    is_on = "use_deepspeed" in launch.options
    if started_by is not None:
        is_on = is_on or started_by.value.get("distributed_type") == "DEEPSPEED"
        return is_on and any(name in launch.options for name in POSITIONS)
    return is_on


def _makes(call: Call, kind: str) -> bool:
    return isinstance(call.result, Thing) and call.result.kind == kind and call.result.call is call


class _Builder:
    """Gathers values in DeepSpeed's terms, with their places in one file."""

    def __init__(
        self,
        source: Source,
        deeds: Deeds,
        plugin: Call | None,
        accelerator: Call,
        started_by: Document | None,
        launch: Launch | None,
    ) -> None:
        self.source = source
        self.script = deeds.script
        self.plugin = plugin
        self.accelerator = accelerator
        self.started_by = started_by
        self.launch = launch
        self.value: dict[str, Any] = {}
        self.keys: dict[NodePath, Span] = {}
        self.values: dict[NodePath, Span] = {}
        self.placeholders: list[Placeholder] = []

    def document(self) -> Document:
        top = self.launch.span if self.plugin is None and self.launch is not None else None
        self.values[()] = top or self.script.span((self.plugin or self.accelerator).node)
        for name in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"):
            self._put((name,), "auto", None)
        self._put(("gradient_clipping",), "auto", None)
        self._put(("zero_optimization", "stage"), 2, None)
        for name in POSITIONS:
            self._take(name)
        self._take_precision()
        language = "python" if self.source is self.script.source else "shell"
        return Document(
            self.source,
            self.value,
            self.keys,
            self.values,
            placeholders=tuple(self.placeholders),
            language=language,
        )

    def _take(self, name: str) -> None:
        """One argument of the plugin, or what the launcher says instead."""
        path = accelerate.IN_DEEPSPEED_TERMS[name]
        given = None if self.plugin is None else self.plugin.argument(POSITIONS[name], name)
        if self.plugin is not None and given is not None:
            place = _place(self.plugin, POSITIONS[name], name)
            if is_known(given) and not isinstance(given, (tuple, list)):
                self._put_or_drop(name, path, given, self.script.span(place))
            else:
                self._put_unknown(path, self.script.span(place))
            return
        said = launched_setting(self.launch, self.started_by, name)
        if said is None:
            return
        span = said.span if said.source is self.source else None
        if isinstance(said.value, (bool, int, float, str)):
            self._put_or_drop(name, path, said.value, span)
        else:
            self._put_unknown(path, span)

    def _put_or_drop(self, name: str, path: NodePath, value: Any, span: Span | None) -> None:
        if accelerate.is_dropped(name, value):
            self.value.pop(name, None)
        elif not (name.startswith("offload") and value == "none"):
            self._put(path, value, span)

    def _take_precision(self) -> None:
        """`mixed_precision` of the Accelerator, or else of the launcher, switches fp16 or bf16 on."""
        given = self.accelerator.argument(2, "mixed_precision")
        if given is None and self.accelerator.is_complete:
            said = launched_setting(self.launch, self.started_by, "mixed_precision")
            given = None if said is None else said.value
        if given in ("fp16", "bf16"):
            self._put((given, "enabled"), True, None)
        elif given is not None and not isinstance(given, str):
            for name in ("fp16", "bf16"):
                self._put_unknown((name, "enabled"), None)

    def _put(self, path: NodePath, value: Any, span: Span | None) -> None:
        *above, last = path
        section = self.value
        for name in above:
            section = section.setdefault(str(name), {})
        section[str(last)] = value
        if span is not None:
            self.keys[path] = span
            self.values[path] = span

    def _put_unknown(self, path: NodePath, span: Span | None) -> None:
        self._put(path, None, span)
        self.placeholders.append(Placeholder("?", span or self.values[()], path))


def _place(call: Call, position: int, name: str) -> ast.AST:
    """Where an argument stands, its name included."""
    for keyword in call.node.keywords:
        if keyword.arg == name:
            return keyword
    return call.node.args[position] if position < len(call.node.args) else call.node
