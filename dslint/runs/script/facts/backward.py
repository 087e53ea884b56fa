"""How a raw loop runs its backward passes: past the engine, twice for one step, on a loss divided by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    each_once,
    engines,
    forwards,
    in_same_loop,
    initialize_of,
    is_module,
    is_reached,
    module_of,
    passes_through,
)
from dslint.runs.script.facts.gradients import off_context
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, plain, text_at
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

# --- past the engine ---


def direct_backwards(facts: Facts) -> tuple[Item, ...]:
    """`loss.backward()` where the loss comes from a forward pass of an engine that the script steps."""
    return tuple(_past_the_engine(facts, through_module=False))


def module_backwards(facts: Facts) -> tuple[Item, ...]:
    """`loss.backward()` where the forward pass went through the bare model, past the engine that is stepped."""
    return tuple(_past_the_engine(facts, through_module=True))


def _past_the_engine(facts: Facts, *, through_module: bool) -> Iterator[Item]:
    deeds = deeds_of(facts)
    for engine in engines(facts):
        steps = calls_on(facts, engine, "step")
        made = initialize_of(engine)
        for call in each_once(deeds.calls):
            if not _is_plain_backward(call) or not _is_stepped(call, steps):
                continue
            passes = _passes(call.receiver, facts, engine, through_module)
            if passes and all(_is_trained(one, call, made) for one in passes):
                place = min(passes, key=lambda one: one.spot.order)
                fields = {
                    "is_scaled": passes_through(call.receiver, "engine.scale"),
                    "forward": text_at(deeds.script, place.node),
                    "by_engine": _by_engine(facts, call, engine),
                }
                yield item(deeds.script, call, fields, ((place.node, "the loss comes from here"),))


def _is_plain_backward(call: Call) -> bool:
    if call.dotted != "backward" or not isinstance(call.receiver, Thing):
        return False
    return call.receiver.kind in ("result", "output", "operation", "attribute", "element", "either")


def _by_engine(facts: Facts, call: Call, engine: Thing) -> str | Unknown:
    """The same backward pass through the engine; Unknown where it means more, or the engine has no name here."""
    here = Here(deeds_of(facts), call.node)
    func, name = call.node.func, here.name_of(engine)
    rest = [other for other in engines(facts) if other is not engine]
    if any(_passes(call.receiver, facts, other, through) for other in rest for through in (True, False)):
        return UNDECIDABLE
    is_scaled = isinstance(call.receiver, Thing) and call.receiver.name in ("grad_scaler.scale", "engine.scale")
    others = [keyword for keyword in call.node.keywords if keyword.arg != "retain_graph"]
    if isinstance(name, Unknown) or is_scaled or others or call.node.args or not isinstance(func, ast.Attribute):
        return UNDECIDABLE
    given = [here.code(func.value), *map(here.code, call.node.keywords)]
    return f"{name}.backward({', '.join(given)})"


def _is_stepped(call: Call, steps: list[Call]) -> bool:
    """Whether engine.step belongs to this backward pass, so that the engine is the one that trains."""
    return any(in_same_loop(step.spot, call.spot) or step.spot.order > call.spot.order for step in steps)


def _passes(value: Value, facts: Facts, engine: Thing, through_module: bool) -> list[Call]:
    """The forward passes of an engine (or of its bare model, and then of nothing else) behind a loss."""
    models = {
        id(call.receiver)
        for call in deeds_of(facts).calls
        if call.dotted == "__call__" and is_module(call.receiver, engine)
    }
    of_engine = forwards(value, frozenset([id(engine)]))
    if not through_module:
        return list(of_engine)
    return [] if of_engine else list(forwards(value, frozenset(models)))


def _is_trained(forward: Call, backward: Call, made: Call) -> bool:
    """Whether a forward pass after `initialize` surely leads to a backward pass."""
    return (
        forward.spot.order > made.spot.order
        and off_context(forward.spot) is None
        and is_reached(backward.spot, forward.spot)
        and is_reached(forward.spot, made.spot)
    )


# --- the loss ---


def divided_losses(facts: Facts) -> tuple[Item, ...]:
    """Losses that the script divides by the accumulation steps before engine.backward divides them again."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        for call in each_once(calls_on(facts, engine, "backward")):
            scales = call.argument(2, "scale_wrt_gas")
            if not call.is_complete or not (scales is None or scales is True):
                continue
            for divided, divisor in _divisions(call.argument(0, "loss"), facts):
                if is_reached(call.spot, initialize_of(engine).spot):
                    fields = {
                        "divisor": divisor,
                        "by": _divisor_text(deeds.script, divided),
                        **_undivided(Here(deeds, call.node), divided),
                    }
                    found.append(item(deeds.script, call, fields, ((divided, "divided here"),)))
    return tuple(found)


def _divisions(value: Value, facts: Facts) -> Iterator[tuple[ast.AST, Any]]:
    """The divisions on the way to a loss whose divisor is called after gradient accumulation, and its value."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < 60:
        thing = waiting.pop(0)
        if not isinstance(thing, Thing) or id(thing) in seen or thing.kind not in ("operation", "either"):
            continue
        seen.add(id(thing))
        waiting += thing.inputs
        right = _divisor(thing.node)
        if thing.name == "/" and right is not None and "accum" in ast.unparse(right).lower():
            made = thing.inputs[1]
            is_asked = isinstance(made, Thing) and made.name == "engine.gradient_accumulation_steps"
            assert thing.node is not None
            yield thing.node, facts.value("accumulation") if is_asked else plain(made)


def _divisor(node: ast.AST | None) -> ast.expr | None:
    if isinstance(node, ast.BinOp):
        return node.right
    return node.value if isinstance(node, ast.AugAssign) else None


def _undivided(here: Here, node: ast.AST) -> dict[str, Any]:
    """What to do in order not to divide: an expression in the place of another one, or a statement less."""
    target = here.target(node)
    is_same = isinstance(node, ast.BinOp) and target is not None and here.code(target) == here.code(node.left)
    if isinstance(node, ast.BinOp) and not is_same:
        return {"division": here.span(node), "undivided": here.code(node.left), "division_statement": None}
    return {"division": None, "undivided": None, "division_statement": here.span(here.statement(node))}


def _divisor_text(script: Any, node: ast.AST) -> str:
    right = _divisor(node)
    return text_at(script, right) if right is not None else "it"


def unreduced_losses(facts: Facts) -> tuple[Item, ...]:
    """engine.backward on the whole output of a Transformers model, which is no tensor."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        model = module_of(engine.attributes["module"])
        if not _gives_an_output_object(model):
            continue
        for call in each_once(calls_on(facts, engine, "backward")):
            loss = call.argument(0, "loss")
            is_whole = isinstance(loss, Thing) and isinstance(loss.call, Call) and loss.name == "engine.__call__"
            if is_whole and loss.call.receiver is engine and _keeps_the_form(loss.call):
                fields = {
                    "model": model.name.rpartition(".")[0] or model.name,
                    **_its_loss(Here(deeds, call.node), call, loss.call),
                }
                found.append(item(deeds.script, call, fields))
    return tuple(found)


def _its_loss(here: Here, backward: Call, forward: Call) -> dict[str, Any]:
    """Where the output is given, and how its loss is called; a model gives one only where it gets labels."""
    node = node_of(backward, 0, "loss")
    has_loss = "labels" in forward.keywords and forward.argument(None, "return_dict") is not False
    if not has_loss or node is backward.node:
        return {"output": UNDECIDABLE, "loss": UNDECIDABLE}
    return {"output": here.span(node), "loss": f"{here.operand(node)}.loss"}


def _gives_an_output_object(model: Value) -> bool:
    """Whether a model is one of Transformers' own with a head, which gives a ModelOutput or a tuple."""
    if not isinstance(model, Thing) or not model.name.startswith("transformers."):
        return False
    parts = model.name.split(".")
    name = parts[-2] if parts[-1] in ("from_pretrained", "from_config", "_from_config") else parts[-1]
    return name.startswith("AutoModelFor") or ("For" in name and name[:1].isupper())


def _keeps_the_form(forward: Call) -> bool:
    """Whether a loss that a model returns could only be a part of its output."""
    return forward.is_complete or "return_dict" not in forward.keywords


# --- how often ---


def repeated_backwards(facts: Facts) -> tuple[Item, ...]:
    """The second of two engine.backward calls that one engine.step follows, or one that a loop repeats.

    `what` says which of the two it is, `retains_graph` whether it keeps the graph.
    """
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        if calls_on(facts, engine, "set_gradient_accumulation_boundary", "coalesce_grad_reduction", "no_sync"):
            continue
        passes = calls_on(facts, engine, "backward", "step")
        passes = [one for one in passes if is_reached(one.spot, initialize_of(engine).spot)]
        for first, second, step in zip(passes, passes[1:], passes[2:], strict=False):
            names = (first.dotted, second.dotted, step.dotted)
            if names == ("backward", "backward", "step") and _belong_together(first, second, step):
                keeps = first.argument(1, "retain_graph")
                kept = plain(keeps if first.is_complete else Thing("unread", "?"))
                fields = {
                    "retains_graph": kept,
                    "what": "a second engine.backward",
                    **_as_one(Here(deeds, second.node), first, second, passes),
                }
                found.append(item(deeds.script, second, fields, ((first.node, "the first backward pass"),)))
        for backward, step in _in_a_loop_of_their_own(passes):
            fields = {"retains_graph": UNDECIDABLE, "what": "a loop of engine.backward", **_NOT_AS_ONE}
            found.append(
                item(deeds.script, backward, fields, ((step.node, "one step for all rounds of the loop"),))
            )
    return tuple({one.span: one for one in found}.values())


_NOT_AS_ONE = {"first": UNDECIDABLE, "loss": UNDECIDABLE, "both": UNDECIDABLE}


def _as_one(here: Here, first: Call, second: Call, passes: list[Call]) -> dict[str, Any]:
    """Where the first pass and the second one's loss stand, and the sum of both losses for one pass.

    Both stand in one block, nothing between them sets what the first loss is made of, and there is no third.
    """
    one, other = node_of(first, 0, "loss"), node_of(second, 0, "loss")
    statements = [here.statement(first.node), here.statement(second.node)]
    block = _block_of(here, statements[0])
    is_plain = here.is_statement(first.node) and here.is_statement(second.node) and statements[1] in block
    given = {keyword.arg for call in (first, second) for keyword in call.node.keywords}
    beside = {
        id(call.node) for call in passes if call.dotted == "backward" and in_same_loop(call.spot, second.spot)
    }
    if not is_plain or not given <= {"loss", "retain_graph"} or len(beside) != 2 or len(first.node.args) > 1:
        return _NOT_AS_ONE
    between = block[block.index(statements[0]) + 1 : block.index(statements[1])]
    names = {part.id for part in ast.walk(one) if isinstance(part, ast.Name)}
    if any(names & _names_set(statement) for statement in between):
        return _NOT_AS_ONE
    both = f"{_summand(here, one)} + {_summand(here, other)}"
    return {"first": here.span(first.node), "loss": here.span(other), "both": both}


def _block_of(here: Here, statement: ast.stmt | None) -> list[ast.AST | None]:
    """The statements among which one stands."""
    holder = next(here.above(statement), None) if statement is not None else None
    for name in ("body", "orelse", "finalbody"):
        block = getattr(holder, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return []


def _names_set(statement: ast.AST | None) -> set[str]:
    parts = ast.walk(statement) if statement is not None else ()
    return {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}


def _summand(here: Here, node: ast.AST) -> str:
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.Add))
    return here.code(node) if is_product else here.operand(node)


def _in_a_loop_of_their_own(passes: list[Call]) -> Iterator[tuple[Call, Call]]:
    """Backward passes in a loop behind which, and not in which, the step stands."""
    steps = [one for one in passes if one.dotted == "step"]
    for one in passes:
        loops = [loop.node for loop in one.spot.loops]
        if one.dotted != "backward" or not loops:
            continue
        if any(loops[-1] in [loop.node for loop in step.spot.loops] for step in steps):
            continue
        for step in steps:
            around = [loop.node for loop in step.spot.loops]
            is_behind = around == loops[:-1] and step.spot.order > one.spot.order
            if is_behind and step.spot.functions == one.spot.functions and step.spot.guards == one.spot.guards:
                yield one, step
                break


def _belong_together(first: Call, second: Call, step: Call) -> bool:
    same_place = in_same_loop(first.spot, second.spot) and in_same_loop(second.spot, step.spot)
    same_branch = first.spot.guards == second.spot.guards == step.spot.guards
    return same_place and same_branch and first.node is not second.node


# --- what it returns ---


def scaled_values(facts: Facts) -> tuple[Item, ...]:
    """`.item()` on what engine.backward returns: the loss divided by the accumulation steps."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        for call in each_once(deeds.calls):
            loss = call.receiver
            if call.dotted != "item" or not isinstance(loss, Thing) or loss.name != "engine.backward":
                continue
            backward = loss.call
            scales = backward.argument(2, "scale_wrt_gas")
            if backward.receiver is engine and backward.is_complete and (scales is None or scales is True):
                fields = _unbound(Here(deeds, call.node), backward)
                found.append(item(deeds.script, call, fields, ((backward.node, "returned here, divided"),)))
    return tuple(found)


def _unbound(here: Here, backward: Call) -> dict[str, Any]:
    """`loss = engine.backward(loss)`, and the call alone, after which `loss` is what it was before."""
    target, loss = here.target(backward.node), node_of(backward, 0, "loss")
    is_same = isinstance(target, ast.Name) and isinstance(loss, ast.Name) and target.id == loss.id
    if not is_same:
        return {"assignment": UNDECIDABLE, "backward": UNDECIDABLE}
    return {"assignment": here.span(here.statement(backward.node)), "backward": here.code(backward.node)}
