"""Where a script makes the DeepSpeedPlugin whose arguments stand for a config, so that a fix can give it more."""

from __future__ import annotations

from typing import Any

from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import only_accelerator, plugins_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.reading import Deeds
from dslint.runs.unknown import UNDECIDABLE


def plugin_fields(deeds: Deeds, call: Call, name: str, value: Any) -> dict[str, Any]:
    """What makes the plugin (`plugin`), and the same with one more argument (`with_argument`).

    `plugin` is None where a config says these things, or the plugin has the argument already: then it is the
    config's key that has to change.
    """
    made = only_accelerator(deeds)
    plugins = [] if made is None else plugins_of(made)
    makers = [plugin.call for plugin in plugins if plugin.call is not None]
    if len(makers) != 1 or makers[0].argument(0, "hf_ds_config") is not None or name in makers[0].keywords:
        return {"plugin": None, "with_argument": UNDECIDABLE}
    here, node = Here(deeds, call.node), makers[0].node
    code = here.code(node)
    if not makers[0].is_complete or node.args or "\n" in code:
        return {"plugin": UNDECIDABLE, "with_argument": UNDECIDABLE}
    before = code[:-1].rstrip().removesuffix(",")
    comma = ", " if node.keywords else ""
    return {"plugin": here.span(node), "with_argument": f"{before}{comma}{name}={value!r})"}
