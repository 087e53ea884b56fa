"""Facts about which samples each rank gets."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.guards import is_rank
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown

_SEEDS = frozenset(["manual_seed", "manual_seed_all", "set_seed", "seed_everything", "set_random_seed"])
_SHARDS = (
    "shard",
    "split_dataset_by_node",
    "split_by_node",
    "Subset",
    "random_split",
    "select",
    "IterableDataset",
)
_KNOWN = ("torch.utils.data.", "torchvision.datasets.", "datasets.load_dataset")


def undivided_loaders(facts: Facts) -> tuple[Item, ...]:
    """DataLoaders that give every rank the same batches: `is_shuffled`, with the same seed everywhere."""
    deeds = deeds_of(facts)
    if not engines(facts) or not deeds.is_complete or _has_parts_apart(deeds):
        return ()
    used = _loaders_of_engines(deeds)
    found = []
    for call in deeds.calls:
        made = call.result
        if not isinstance(made, Thing) or made.kind != "loader" or made.call is not call or id(made) not in used:
            continue
        if not call.is_complete or any(call.has(*place) for place in _DIVIDES) or _may_be_divided(call):
            continue
        shuffled = call.argument(2, "shuffle")
        if shuffled in (None, False) or (shuffled is True and _has_one_seed(deeds, call)):
            is_shuffled = shuffled is True
            sampler = _sampler(Here(deeds, call.node), call, is_shuffled)
            found.append(item(deeds.script, call, {"is_shuffled": is_shuffled, "sampler": sampler}))
    return tuple(found)


def _sampler(here: Here, call: Call, is_shuffled: bool) -> str | Unknown:
    """A sampler that divides the data set, in the order that the loader has now."""
    dataset, torch = node_of(call, 0, "dataset"), here.module("torch")
    if not is_path(dataset) or isinstance(torch, Unknown) or len(call.node.args) > 2:
        return UNDECIDABLE
    order = "" if is_shuffled else ", shuffle=False"
    return f"{torch}.utils.data.DistributedSampler({here.code(dataset)}{order})"


def loader_sizes(facts: Facts) -> tuple[Item, ...]:
    """DataLoaders whose batches go into an engine as they are: `size` is their batch_size."""
    deeds = deeds_of(facts)
    if not engines(facts) or not deeds.is_complete:
        return ()
    whole = _fed_whole(deeds)
    found = []
    for call in deeds.calls:
        made = call.result
        size = call.argument(1, "batch_size")
        is_fed = isinstance(made, Thing) and made.kind == "loader" and made.call is call and id(made) in whole
        if is_fed and type(size) is int and not call.has(4, "batch_sampler"):
            here = Here(deeds, call.node)
            place = node_of(call, 1, "batch_size")
            names = [] if place is call.node else [here.name_of(one) for one in _engines_before(facts, call)]
            name = names[0] if len(names) == 1 else UNDECIDABLE
            fields = {"size": size, "place": here.span(place), "engine": name}
            found.append(item(deeds.script, call, fields))
    return tuple(found)


def _engines_before(facts: Facts, call: Call) -> list[Thing]:
    """The engines that are there when a call is made."""
    return [one for one in engines(facts) if initialize_of(one).spot.order < call.spot.order]


def _fed_whole(deeds: Deeds) -> set[int]:
    """Loaders of which an engine that goes backward surely gets whole batches."""
    trained = _loaders_of_engines(deeds)
    whole: set[int] = set()
    for call in deeds.calls:
        if call.name in ("engine.__call__", "engine.forward") and not call.spot.guards:
            found = [next(_whole_batch_of(value), None) for value in call.positional]
            whole |= set() if None in found else {id(one) for one in found}
    return trained & whole


def _whole_batch_of(value: Value, depth: int = 0) -> Iterator[Thing]:
    """The loader whose batch, or a part of it like the inputs, a value is; through moves only."""
    if not isinstance(value, Thing) or depth > 8:
        return
    if value.kind == "loader":
        yield value
    elif value.call is not None and value.call.dotted in _MOVES and value.call.receiver is not None:
        yield from _whole_batch_of(value.call.receiver, depth + 1)
    elif value.inputs and (value.kind == "item" or _is_of_batch(value)):
        yield from _whole_batch_of(value.inputs[0], depth + 1)


def _is_of_batch(value: Thing) -> bool:
    """Whether a value is taken of a loader's batch itself, as its inputs or labels are."""
    batch = value.inputs[0]
    return value.kind == "element" and value.name != "[:]" and isinstance(batch, Thing) and batch.kind == "item"


_MOVES = frozenset(["to", "cuda", "float", "half", "bfloat16", "long"])
_DIVIDES = ((3, "sampler"), (4, "batch_sampler"), (12, "generator"), (11, "worker_init_fn"))


def _loaders_of_engines(deeds: Deeds) -> set[int]:
    """Loaders whose batches go straight into an engine that then goes backward."""
    trained: set[int] = set()
    for call in deeds.calls:
        if call.name == "engine.backward":
            trained |= {
                id(thing) for value in call.positional for thing in origins(value) if thing.kind == "loader"
            }
    return trained


def _has_parts_apart(deeds: Deeds) -> bool:
    """Whether ranks may share a sample on purpose (model parallelism), or pick their own by rank."""
    for call in deeds.calls:
        if call.name == "deepspeed.initialize" and (call.has(6, "mpu") or call.has(14, "mesh_param")):
            return True
        if call.name in ("engine.__call__", "engine.forward") and _asks_for_rank(call):
            return True
    return False


def _asks_for_rank(call: Call) -> bool:
    values = (*call.positional, *call.keywords.values(), *(guard.test for guard in call.spot.guards))
    return any(is_rank(thing) for value in values for thing in origins(value))


def _may_be_divided(call: Call) -> bool:
    """Whether the dataset itself may give each rank its own share."""
    dataset = call.argument(0, "dataset")
    made = list(origins(dataset))
    if not isinstance(dataset, Thing) or any(map(is_rank, made)):
        return True
    if any(thing.name.rpartition(".")[2] in _SHARDS for thing in made):
        return True
    return not _is_known(dataset)


def _is_known(dataset: Thing) -> bool:
    """Whether it is known how a dataset counts its samples: by an index, the same on every rank."""
    made_by = dataset.attributes.get("__class__")
    if isinstance(made_by, Class):
        return "__getitem__" in made_by.members and "Iterable" not in " ".join(made_by.bases)
    return dataset.name.startswith(_KNOWN)


def _has_one_seed(deeds: Deeds, loader: Call) -> bool:
    """Whether all ranks draw the same order: one seed is set before, and none by rank."""
    seeds = [call for call in deeds.calls if call.dotted.rpartition(".")[2] in _SEEDS]
    if any(is_rank(thing) for call in seeds for value in call.positional for thing in origins(value)):
        return False
    return any(
        _is_plain_seed(call) and not call.spot.guards for call in seeds if call.spot.order < loader.spot.order
    )


def _is_plain_seed(call: Call) -> bool:
    value: Value = call.positional[0] if call.positional else None
    return isinstance(value, int) or (isinstance(value, Thing) and value.kind == "argument")
