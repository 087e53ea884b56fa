"""Real public configs, where a folder of them is there: no crash, and agreement with what DeepSpeed did."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import hjson
import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import read_source

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("DSLINT_CORPUS", ROOT.parent / "shared" / "corpus"))
CONFIGS = sorted(CORPUS.glob("configs/*.json"))

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here")]

ERRORS_ON_TRAINED_CONFIGS = {
    "0198.json": "a misspelt micro_batch_size_per_gpu is ignored, so another micro batch trains than the file says",
    "0344.json": "a misspelt micro_batch_size_per_gpu is ignored",
    "0816.json": "a misspelt gradient_accumulation is ignored, so every micro batch is a step",
    "0839.json": "a misspelt micro_batch_size_per_gpu is ignored",
}
"""Configs that DeepSpeed trains, but not as they say."""

SILENT_ON_REFUSED_CONFIGS = {
    "0298.json": "tensor parallelism refuses the trial's model, not the config",
    "0479.json": "the optimizer has no op for the CPU that the trial ran on",
    "0499.json": "the optimizer has no op for the CPU that the trial ran on",
    "0882.json": "the trial's TrainingArguments contradict the file; others agree with it",
}
"""Configs that the trial refused for reasons that lie outside of the file."""


def agreement() -> ModuleType:
    spec = importlib.util.spec_from_file_location("agreement", ROOT / "benchmarks" / "agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agreement"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_reads_as_deepspeed_reads_it(path: Path) -> None:
    document = read_config(read_source(path))
    try:
        expected = hjson.loads(path.read_text("utf-8"))
    except hjson.HjsonDecodeError:
        assert document.value is None
        assert document.problem is not None or document.placeholders
        return
    assert document.problem is None
    assert document.value == expected
    assert all(path in document.keys for path in document.values if path and isinstance(path[-1], str))


def test_the_whole_corpus_is_checked_in_time_without_trouble() -> None:
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "dslint", "check", *map(str, sorted(CORPUS.glob("configs/*"))), "--format", "json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    report = json.loads(done.stdout)
    assert report["errors"] == []
    assert report["files"] == len(list(CORPUS.glob("configs/*")))
    assert time.monotonic() - start < 30


def test_errors_and_refusals_agree_but_for_what_is_explained() -> None:
    files = agreement().compare(CORPUS)
    errors = {file.name for file in files if file.trains and file.worst == "error"}
    silent = {file.name for file in files if not file.trains and not file.worst}
    assert errors == set(ERRORS_ON_TRAINED_CONFIGS)
    assert silent == set(SILENT_ON_REFUSED_CONFIGS)
