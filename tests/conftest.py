"""What several test files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deepspeed_trial import TrialServer


@pytest.fixture(scope="session")
def trials() -> Iterator[TrialServer]:
    """A server that tries configs on real DeepSpeed; its start costs seconds, so it is shared."""
    pytest.importorskip("deepspeed")
    with TrialServer() as server:
        yield server
