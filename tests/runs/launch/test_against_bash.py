"""The words of a launch command are those that bash itself makes of the file.

Bash runs each text among stand-ins for the launchers, which write down how they were started. What the reader knows of a
word has to be that word; what it doesn't know may be anything.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from dslint.data import data_folder
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source
from dslint.rulebook.cases import examples
from dslint.rulebook.loader import load_rules
from dslint.runs.launch.reading import launches
from dslint.smoke.proofs.planning import NoLaunchError, planned

TEXTS = {
    "continued lines": "deepspeed --num_gpus 2 \\\n  train.py \\\n  --lr 1e-4 \\\n  --name 'a b'\n",
    "a default": 'deepspeed --num_gpus ${GPUS_NOBODY_SETS:-8} train.py --out "${OUT_NOBODY_SETS:-o/p}"\n',
    "a default that is kept": ": ${N_NOBODY_SETS:=3}\ntorchrun --nproc_per_node=$N_NOBODY_SETS train.py\n",
    "an array": 'ARGS=(--a 1 "--b=x y")\nARGS+=(--c)\ntorchrun train.py "${ARGS[@]}" --d\n',
    "an unquoted variable of many words": 'OPTS="--a 1 --b 2"\ntorchrun train.py $OPTS\n',
    "a quoted variable of many words": 'NAME="two words"\ntorchrun train.py "$NAME"\n',
    "an empty variable": 'EMPTY=""\ntorchrun train.py $EMPTY "$EMPTY" --x\n',
    "arithmetic": "GPUS=4\nNODES=2\ntorchrun train.py --world $((GPUS * NODES)) --half $((GPUS / 3))\n",
    "quotes inside of words": "torchrun train.py --a=\"x\"'y'\\ z --json '{\"k\": 1}'\n",
    "escapes": 'X=1\ntorchrun train.py "\\$X" \\$X "a\\"b"\n',
    "comments": "# torchrun no.py\ntorchrun train.py --a # --b\n",
    "two commands of a line": "cd . && torchrun train.py --a; true\n",
    "a condition that bash knows": "if [ 1 = 1 ]; then\n  torchrun train.py --a\nfi\n",
    "an exported variable": "export STEPS=10\ntorchrun train.py --steps $STEPS\n",
    "a variable in front": "CUDA_VISIBLE_DEVICES=0,1 deepspeed train.py\n",
    "parts of a variable": "P=/data/model.bin\ntorchrun train.py ${P##*/} ${P%.*} ${P/bin/pt} ${#P}\n",
    "a here-document before": "cat > /dev/null <<EOF\ntorchrun no.py\nEOF\ntorchrun train.py --a\n",
    "a function before": "f() { echo hi; }\nf\ntorchrun train.py --a\n",
    "a loop": "for seed in 1 2; do\n  torchrun train.py --seed $seed\ndone\n",
    "carriage returns in quotes": "torchrun train.py 'a\nb'\n",
    "braces": "torchrun train.py file.{a,b} {x}\n",
    "a tilde": "torchrun train.py ~/x ~\n",
    "a pipe": "torchrun train.py --a 2>&1 | tee /dev/null\n",
    "redirections": "torchrun train.py --a > /dev/null 2>&1 --b\n",
    "python -m": "python -m torch.distributed.run --nproc_per_node 2 train.py --a\n",
}
for file in load_rules(Path(data_folder("rules"))):
    for example in examples(file.text):
        mended = [(f"fixed {way}", one) for way, one in enumerate(example.fixed, 1) if isinstance(one, Mapping)]
        for side, case in (("bad", example.bad), ("good", example.good), *mended):
            if "launch" in case:
                TEXTS[f"{file.rule.code} {example.name} {side}"] = case["launch"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_what_is_known_of_a_word_is_what_bash_makes_of_it(text: str) -> None:
    found = launches(read_shell(Source("run.sh", text.encode())))
    try:
        real = planned({"launch": text})
    except NoLaunchError:
        return  # a command that bash itself refuses, or that starts something else
    assert real is not None
    assert found
    known = found[0].arguments
    if any(argument.many for argument in known):
        return
    words = real.words[len(real.words) - len(known) :]
    assert len(words) == len(known)
    for word, argument in zip(words, known, strict=True):
        # Whose home a tilde means is known only where the command runs.
        assert not isinstance(argument.text, str) or os.path.expanduser(argument.text) == word
    script = found[0].script
    if script is not None and isinstance(script.text, str):
        assert real.words[len(real.words) - len(known) - 1] == script.text


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_plain_texts_are_known_through_and_through() -> None:
    for name in ("continued lines", "a default", "an array", "arithmetic", "an unquoted variable of many words"):
        (launch,) = launches(read_shell(Source("run.sh", TEXTS[name].encode())))
        assert all(isinstance(argument.text, str) for argument in launch.arguments), name
