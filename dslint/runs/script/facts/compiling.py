"""Facts about torch.compile and engine.compile."""

from __future__ import annotations

from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing
from dslint.runs.unknown import UNDECIDABLE

_SAVES = ("save_checkpoint", "save_16bit_model", "save_fp16_model")


def compiled_before(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize that get a compiled model: `saves` whether the engine's weights are saved."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        call = initialize_of(engine)
        model = call.argument(1, "model")
        if not isinstance(model, Thing) or model.kind != "compiled_model":
            continue
        if model.call is None or model.name != "torch.compile":
            continue
        saves = any(one.name in {f"engine.{name}" for name in _SAVES} for one in deeds.calls)
        fields = {"saves": saves, **_compiled_after(Here(deeds, call.node), call, model.call)}
        place = node_of(model.call, 0, "model")
        related = ((model.call.node, "compiled here"),) if place is not None else ()
        found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def _compiled_after(here: Here, made: Call, compiling: Call) -> dict[str, Any]:
    """The model instead of the compiled one (or a statement less), and the engine's own compile."""
    nothing = {"compiling": UNDECIDABLE, "model": UNDECIDABLE, "statement": UNDECIDABLE, "compile": UNDECIDABLE}
    engine, given = here.first_target(made), node_of(compiling, 0, "model")
    keywords = compiling.node.keywords
    names = {keyword.arg for keyword in keywords} - {"model"}
    is_plain = (
        given is not compiling.node
        and len(compiling.node.args) <= 1
        and None not in names
        and not here.has_comments(compiling.node)
    )
    if engine is None or not is_plain:
        return nothing
    own = [here.code(keyword) for keyword in keywords if keyword.arg == "backend"]
    rest = [f'"{one.arg}": {here.code(one.value)}' for one in keywords if one.arg not in ("model", "backend")]
    own += [f"compile_kwargs={{{', '.join(rest)}}}"] if rest else []
    target = here.target(compiling.node)
    is_same = target is not None and here.code(target) == here.code(given)
    return {
        "compiling": None if is_same else here.span(compiling.node),
        "model": None if is_same else here.code(given),
        "statement": here.span(here.statement(compiling.node)) if is_same else None,
        "compile": f"{here.code(engine)}.compile({', '.join(own)})",
    }


def never_compiled(facts: Facts) -> tuple[Item, ...]:
    """The initialize of a script that compiles nothing (one item or none)."""
    deeds = deeds_of(facts)
    made = [call for call in deeds.calls if call.name == "deepspeed.initialize"]
    if len(made) != 1 or not deeds.is_complete or any(map(_may_compile, deeds.calls)):
        return ()
    here = Here(deeds, made[0].node)
    engine = here.first_target(made[0])
    return (item(deeds.script, made[0], {"engine": UNDECIDABLE if engine is None else here.code(engine)}),)


def _may_compile(call: Call) -> bool:
    """Whether a call compiles, or hands the engine to code of another file that may do so."""
    if call.dotted.rpartition(".")[2] == "compile":
        return not call.dotted.startswith("re.")
    is_foreign = call.receiver is None and call.dotted.partition(".")[0] not in ("torch", "print", "deepspeed")
    given = (*call.positional, *call.keywords.values())
    return is_foreign and any(isinstance(value, Thing) and value.kind == "engine" for value in given)
