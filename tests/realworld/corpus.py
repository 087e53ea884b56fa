"""The shared corpus of public configs, where it is there, and what its labels say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("DSLINT_CORPUS", ROOT.parent / "shared" / "corpus"))
CONFIGS = sorted(CORPUS.glob("configs/*.json"))

_NO_ZERO_SECTION = "Accelerate asks for a zero_optimization section"
_AUTO_LEFT_OVER = 'Accelerate refuses an "auto" that neither it nor the Trainer fills'
_STRICT_JSON = "Transformers reads strict JSON"
_LAST_OF_TWO = "Transformers takes the last of two equal keys"
_TOKENS = "a model that takes tokens gets along with auto_cast; the labels are from one that takes floats"

CORRECTED_LABELS: Mapping[str, str] = {
    **dict.fromkeys(("0095.json", "0293.json", "0472.json", "0658.json", "0927.json"), _NO_ZERO_SECTION),
    **dict.fromkeys(("0344.json", "0809.json", "0839.json", "0866.json"), _AUTO_LEFT_OVER),
    **dict.fromkeys(("0561.json", "0804.json"), _STRICT_JSON),
    **dict.fromkeys(("0348.json", "0397.json", "0524.json", "0696.json"), _LAST_OF_TWO),
    "0444.json": "Accelerate replaces steps_per_print, whatever it is",
    "0882.json": "the Trainer's arguments can agree with the batch sizes of the file",
    **dict.fromkeys(
        (
            *("0094.json", "0118.json", "0146.json", "0173.json", "0328.json", "0341.json", "0403.json"),
            *("0413.json", "0545.json", "0564.json", "0603.json", "0664.json", "0796.json", "0810.json"),
            *("0817.json", "0931.json", "0944.json"),
        ),
        _TOKENS,
    ),
}
"""Files whose label, made with an imitation of Hugging Face, says the opposite of what the real one does."""


def trains_by_label() -> Mapping[str, bool]:
    """Whether each labelled file trains, by its label alone."""
    lines = (CORPUS / "labels.jsonl").read_text("utf-8").splitlines()
    labels: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return {label["file"]: label["stage"] == "done" for label in labels if "stage" in label}


def trains() -> Mapping[str, bool]:
    """Whether each labelled file trains, where the label is wrong as the real thing does."""
    return {name: did != (name in CORRECTED_LABELS) for name, did in trains_by_label().items()}
