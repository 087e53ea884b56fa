"""What several test files share."""

from __future__ import annotations

import importlib.util
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
