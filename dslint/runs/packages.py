"""Facts about packages that a run imports beside DeepSpeed.

They can be told only where dslint runs in the environment that trains, which an installed DeepSpeed shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dslint.runs.facts import Fact, Facts

INSTALLED, MISSING, UNKNOWN = "installed", "missing", "unknown"
PACKAGES = ("tensorboard", "wandb", "comet_ml")


def state(package: str) -> str:
    """Whether a package is installed beside DeepSpeed; nothing is imported for the answer."""
    from importlib.util import find_spec

    from dslint.runs.versions import installed_version

    if installed_version() is None:
        return UNKNOWN
    return INSTALLED if find_spec(package) is not None else MISSING


def _state_of(package: str) -> Callable[[Facts], str]:
    def work_out(facts: Facts) -> str:
        packages = facts.run.options.packages
        return state(package) if packages is None else packages.get(package, UNKNOWN)

    return work_out


FACTS: Mapping[str, Fact] = {
    f"packages.{name}": Fact(
        f'whether {name} is "installed" or "missing" beside DeepSpeed; "unknown" where that is missing too',
        _state_of(name),
    )
    for name in PACKAGES
}
