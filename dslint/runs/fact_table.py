"""All facts that rules may speak about, beside the config's own keys."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs import (
    accelerate_facts,
    config_keys,
    file_form,
    hardware,
    optimizer_facts,
    packages,
    removed_keys,
    scale,
    script_tables,
    trainer_facts,
    zero_facts,
)
from dslint.runs.facts import Fact

FACTS: Mapping[str, Fact] = {
    "loader": Fact('who reads the config: "hf" or "deepspeed"', lambda facts: facts.loader),
    "loader_is_said": Fact(
        'whether an option or an Accelerate file names the loader, rather than an "auto" in the config',
        lambda facts: facts.run.options.loader is not None or facts.run.accelerate is not None,
    ),
    "read_by_hugging_face": Fact(
        'whether an option, an Accelerate file or an "auto" shows that Hugging Face reads the config',
        lambda facts: facts.loader == "hf",
    ),
    **scale.FACTS,
    **zero_facts.FACTS,
    **hardware.FACTS,
    **packages.FACTS,
    **optimizer_facts.FACTS,
    **accelerate_facts.FACTS,
    **trainer_facts.FACTS,
    **removed_keys.FACTS,
    **file_form.FACTS,
    **config_keys.FACTS,
    **script_tables.FACTS,
}
