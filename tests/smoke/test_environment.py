"""What the processes that train find in their environment."""

from __future__ import annotations

import pytest

from dslint.smoke.environment import training_environment
from dslint.smoke.script.running import script_environment


def test_nvlink_multicast_is_off_unless_the_user_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCCL_NVLS_ENABLE", raising=False)
    assert training_environment("python", "auto", "/folder")["NCCL_NVLS_ENABLE"] == "0"
    assert script_environment("python")["NCCL_NVLS_ENABLE"] == "0"
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    assert training_environment("python", "auto", "/folder")["NCCL_NVLS_ENABLE"] == "1"
    assert script_environment("python")["NCCL_NVLS_ENABLE"] == "1"


def test_the_cpu_is_all_that_is_seen_where_it_is_asked_for() -> None:
    found = training_environment("python", "cpu", "/folder")
    assert (found["DS_ACCELERATOR"], found["CUDA_VISIBLE_DEVICES"]) == ("cpu", "")
