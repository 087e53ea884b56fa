"""What several test files share."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

import pytest

from dslint.smoke.client import SmokeServer
from dslint.smoke.ops import SERVED


@pytest.fixture(scope="session")
def server() -> Iterator[SmokeServer]:
    """A server that tries configs on real DeepSpeed; its start costs seconds, so it is shared."""
    if importlib.util.find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed")
    with SmokeServer(device="cpu", ops=SERVED) as server:
        yield server


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests unless -m speaks about them, whatever else it says."""
    if re.search(r"\blong\b", config.option.markexpr):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=long)
