"""Which framework trains: DeepSpeed's own engine, Hugging Face's Trainer, Accelerate, Lightning."""

from __future__ import annotations

from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing


def framework_of(deeds: Deeds) -> str | None:
    """The framework: "raw" (deepspeed.initialize), "pipeline", "trainer", "accelerate" or "lightning".

    None where the script shows none of them, or more than one.
    """
    if deeds.taker in ("trainer", "accelerate", "lightning"):
        return deeds.taker
    kinds = {call.result.kind for call in deeds.calls if isinstance(call.result, Thing)}
    kinds |= {thing.kind for call in deeds.calls for thing in _parsed(call.result)}
    has_engine = any(call.name == "deepspeed.initialize" for call in deeds.calls)
    found = []
    if has_engine:
        found.append("pipeline" if "pipeline" in kinds else "raw")
    if deeds.taker == "initialize":
        return found[0] if found else None
    if kinds & {"trainer", "training_args"}:
        found.append("trainer")
    elif "accelerator" in kinds:
        found.append("accelerate")
    if kinds & {"lightning_strategy", "lightning_trainer"}:
        found.append("lightning")
    return found[0] if len(found) == 1 else None


def _parsed(result: object) -> list[Thing]:
    """The dataclasses that a parser fills."""
    return [part for part in result if isinstance(part, Thing)] if isinstance(result, tuple) else []


def engines(deeds: Deeds) -> list[Thing]:
    """The engines that deepspeed.initialize makes."""
    made = [call.result for call in deeds.calls if call.name == "deepspeed.initialize"]
    return [result[0] for result in made if isinstance(result, tuple)]
