"""How many ranks a run's launch command starts, on how many nodes."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.launch.launch import Launch
from dslint.runs.launch.world import GPUS, World, world_of
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

LARGEST = 1_000_000
"""More ranks than any run has; a larger number is a mistake that says nothing."""

SPAWNERS = (
    "multiprocessing.spawn",
    "multiprocessing.Process",
    "notebook_launcher",
    "debug_launcher",
    "subprocess.",
)
"""In the names of functions by which a script starts further ranks itself."""

OF_SEVERAL_NODES = ("hostfile", "num_nodes", "nnodes", "num_machines", "nodes", "ntasks")
"""Options that show that there may be more nodes than one."""

RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""Variables that tell a process which rank it is."""


def ranks(facts: Facts) -> int | Unknown:
    """Number of ranks over all nodes: what the command starts; where it leaves that open, --gpus and --nodes."""
    found, options = world(facts), facts.run.options
    if not isinstance(found.ranks, Unknown):
        return found.ranks
    if options.gpus is None:
        return found.ranks if found.ranks.needs else GPUS
    per_node = options.gpus if isinstance(found.per_node, Unknown) else found.per_node
    if not isinstance(found.nodes, Unknown):
        return per_node * found.nodes
    if options.nodes is None and any(name in launch_of(facts).options for name in OF_SEVERAL_NODES):
        return needs("the number of nodes (--nodes)")
    return per_node * (options.nodes or 1)


def gpus(facts: Facts) -> int | Unknown:
    """Number of ranks that it starts on each node."""
    return world(facts).per_node


def nodes(facts: Facts) -> int | Unknown:
    """Number of nodes."""
    return world(facts).nodes


def launcher(facts: Facts) -> str:
    """What starts the script."""
    return launch_of(facts).launcher


def launch_of(facts: Facts) -> Launch:
    """The run's launch command; there has to be one."""
    assert facts.run.launch is not None
    return facts.run.launch


def world(facts: Facts) -> World:
    """The ranks of the run, as far as its command, its files and the options tell."""
    launch = launch_of(facts)
    if launch.launcher == "python" and not is_alone(facts, launch):
        return World()
    found = world_of(launch, facts.run.named.get("hostfile"), facts.run.accelerate, facts.run.options.gpus)
    return World(_plausible(found.ranks), _plausible(found.per_node), _plausible(found.nodes))


def is_alone(facts: Facts, launch: Launch) -> bool:
    """Whether a script that no launcher starts surely stays one process."""
    if launch.outer or launch.environment_unknown or any(name in launch.environment for name in RANK_VARIABLES):
        return False
    deeds = facts.run.script
    if deeds is None or facts.framework not in ("raw", "pipeline", "trainer", "accelerate"):
        return False
    return not any(part in call.dotted for call in deeds.calls for part in SPAWNERS)


def _plausible(count: int | Unknown) -> int | Unknown:
    return count if isinstance(count, Unknown) or 0 < count <= LARGEST else UNDECIDABLE
