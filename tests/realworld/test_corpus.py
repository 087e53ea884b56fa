"""Real public configs, where a folder of them is there: no crash, and agreement with what DeepSpeed did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import hjson
import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import read_source
from tests.realworld.corpus import CONFIGS, CORPUS, ROOT, trains
from tests.realworld.differential import claims_refusal, findings_on, loader_of, subjects_in

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here")]

SILENT_ON_REFUSED_CONFIGS = {
    "0298.json": "tensor parallelism refuses the trial's model, not the config",
    "0479.json": "the optimizer has no op for the CPU that the trial ran on",
    "0499.json": "the optimizer has no op for the CPU that the trial ran on",
}
"""Configs that the trial refused for reasons that lie outside of the file."""


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


def test_errors_and_refusals_agree_with_the_labels_but_for_what_is_explained() -> None:
    trained = trains()
    subjects = [subject for subject in subjects_in(CORPUS / "configs") if subject.name in trained]
    found = {subject.name: findings_on(subject, loader_of(subject), packages={}) for subject in subjects}
    alarming = {name for name, findings in found.items() if any(map(claims_refusal, findings))}
    assert not {name for name in alarming if trained[name]}
    silent = {name for name, findings in found.items() if not findings and not trained[name]}
    assert silent == set(SILENT_ON_REFUSED_CONFIGS)
