"""Generated files and pages are fresh, and schemas are schemas."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parent.parent


def test_pages_made_from_the_rules_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("*.schema.json")), ids=lambda path: path.name)
def test_schemas_are_valid(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_text("utf-8")))


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "rules" / "README.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_has_its_numbers() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("demo", "areas", "agreement", "benchmark"):
        block = readme.split(f"<!-- {name} -->")[1]
        assert block.strip(), f"the block {name} is empty"
