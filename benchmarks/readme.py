"""The tables of the README that benchmarks make."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def write_table(name: str, text: str) -> None:
    """Puts a table between its two marks, `<!-- name -->`."""
    mark = f"<!-- {name} -->"
    before, _, rest = README.read_text("utf-8").partition(mark)
    _, _, after = rest.partition(mark)
    README.write_text(f"{before}{mark}\n{text}\n{mark}{after}", "utf-8")
