"""Writes the documentation that is made from the rules: rules/README.md, rules/PROOFS.md, blocks of README.md.

python scripts/make_docs.py           # write
python scripts/make_docs.py --check   # exit 1 if something is stale
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from proofs_page import memory_table, proofs_page

from dslint.rulebook.loader import load_rules
from dslint.rulebook.own_rules import OWN_RULES
from dslint.rulebook.rule_text import RuleText

AREAS = {
    "format": "The form of the file",
    "keys": "Keys and values",
    "removed": "Removed features",
    "sections": "Monitors, profilers, data efficiency and other sections",
    "precision": "Precision, gradients and communication types",
    "batch": "Batch sizes",
    "zero": "ZeRO",
    "parallelism": "Tensor, expert and sequence parallelism, compilation",
    "offload": "Offloading",
    "optimizer": "Optimizers and schedulers",
    "huggingface": "Hugging Face and Accelerate",
    "saving": "Checkpoints",
    "script": "Training scripts",
    "launch": "Launch commands",
    "comments": "dslint's own comments",
}
DEMO = ["check", "examples/run", "--gpu", "h100", "--deepspeed", "0.19.8"]

RUNS = ["runs", "examples/run", "--gpu", "h100", "--deepspeed", "0.19.8"]


def main() -> int:
    """Writes or checks all generated texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if a text is stale")
    options = parser.parse_args()
    texts = {
        path: text for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text
    }
    for path, text in texts.items():
        if options.check:
            print(f"{path.relative_to(ROOT)} is stale: run python scripts/make_docs.py")
        else:
            path.write_text(text, "utf-8")
    return 1 if options.check and texts else 0


def generated() -> dict[Path, str]:
    """The files with generated text, as they should be."""
    rules = [one.text for one in load_rules(ROOT / "rules")]
    readme = (ROOT / "README.md").read_text("utf-8")
    readme = replaced(readme, "demo", session(DEMO))
    readme = replaced(readme, "runs", session(RUNS))
    readme = replaced(readme, "ranks", memory_table(ROOT / "rules" / "proofs" / "ranks"))
    readme = replaced(readme, "areas", areas_table([*rules, *OWN_RULES]))
    return {
        ROOT / "rules" / "README.md": rules_page([*rules, *OWN_RULES]),
        ROOT / "rules" / "PROOFS.md": proofs_page(ROOT / "rules" / "proofs", rules),
        ROOT / "README.md": readme,
    }


def session(arguments: Sequence[str]) -> str:
    """A command with what it prints."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dslint", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return f"```text\n$ dslint {' '.join(arguments)}\n{done.stdout}```"


def replaced(text: str, name: str, block: str) -> str:
    """The text with another block between the two marks of a name."""
    mark = f"<!-- {name} -->"
    before, _, rest = text.partition(mark)
    _, _, after = rest.partition(mark)
    return f"{before}{mark}\n{block}\n{mark}{after}"


def areas_table(rules: Sequence[RuleText]) -> str:
    """How many rules there are about what."""
    lines = ["| area | rules | error / warning / hint |", "|---|---|---|"]
    for area, title in AREAS.items():
        part = [rule for rule in rules if rule.area == area]
        counts = [sum(rule.severity == severity for rule in part) for severity in ("error", "warning", "hint")]
        lines.append(f"| {title} | {part[0].code} to {part[-1].code} | {' / '.join(map(str, counts))} |")
    return "\n".join([*lines, f"| all | {len(rules)} | |"])


def rules_page(rules: Sequence[RuleText]) -> str:
    """The page with a line for each rule."""
    lines = [
        "# Rules",
        "",
        "Made from the rule files by `python scripts/make_docs.py`; `dslint explain CODE` tells more about one,",
        "with an example and the source in DeepSpeed that shows it.",
    ]
    for area, title in AREAS.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| code | name | severity | what | DeepSpeed | fix |",
            "|---|---|---|---|---|---|",
        ]
        lines += [row(rule) for rule in rules if rule.area == area]
    return "\n".join(lines) + "\n"


def row(rule: RuleText) -> str:
    """The line of one rule."""
    fix = rule.fixable or ""
    link = rule.code if rule in OWN_RULES else f"[{rule.code}]({rule.file})"  # these have no file
    summary = rule.summary.replace("|", "\\|")
    return f"| {link} | {rule.name} | {rule.severity} | {summary} | {rule.data.get('deepspeed', '')} | {fix} |"


if __name__ == "__main__":
    sys.exit(main())
