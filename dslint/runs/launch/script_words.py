"""The script's own words on a command line, held against the parser that reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of
from dslint.runs.launch.launch import Argument, Launch
from dslint.runs.launch.option_tables import option_table
from dslint.runs.launch.places import name_place
from dslint.runs.launch.refusals import COMMANDS
from dslint.runs.near_names import near_name
from dslint.runs.script.arguments import HfParser, Parser
from dslint.runs.script.events import Call
from dslint.runs.script.facts.command_line import Refusal, flags_of, knows, refusal, strict_parses
from dslint.runs.script.known_apis import TRAINING_ARGUMENTS
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Named, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

WHERE_IT_RUNS = frozenset(
    [
        "deepspeed_config_file",
        "exclude",
        "hostfile",
        "include",
        "nnodes",
        "nproc_per_node",
        "num_gpus",
        "num_machines",
        "num_nodes",
        "num_processes",
        "rdzv_backend",
        "rdzv_endpoint",
        "use_deepspeed",
    ]
)
"""Options of launchers that no script has for itself, as a rule."""

NO_TRAINING_ARGUMENTS = WHERE_IT_RUNS | {"master_addr", "master_port", "node_rank", "standalone", "no_local_rank"}
"""Options of launchers that are no fields of TrainingArguments either (transformers/training_args.py)."""

LOCAL_RANK = ("--local_rank", "--local-rank")


def refused_words(facts: Facts) -> tuple[Item, ...]:
    """The first word that the script's parser refuses (one item for each parser)."""
    launch, deeds = launch_of(facts), facts.run.script
    if deeds is None or launch.options_incomplete:
        return ()
    found = [(call, refusal(call.receiver, _words(launch))) for call in strict_parses(deeds)]
    found += [
        (call, _launcher_word(launch, call.receiver)) for call in deeds.calls if _reads_training_arguments(call)
    ]
    return tuple(
        _refused(launch, deeds, call, why)
        for call, why in found
        if why is not None and not _is_local_rank(launch, why)
    )


def _reads_training_arguments(call: Call) -> bool:
    """Whether a call surely reads the whole command line for TrainingArguments and known dataclasses."""
    is_parse = call.dotted == "parse_args_into_dataclasses" and isinstance(call.receiver, HfParser)
    return is_parse and _is_sure(call) and _are_known(call.receiver.classes)


def _launcher_word(launch: Launch, parser: HfParser) -> Refusal | None:
    """An option of the launcher behind the script, which TrainingArguments doesn't have."""
    fields = {name for one in parser.classes if isinstance(one, Class) for name in one.fields}
    for index, word in enumerate(launch.arguments):
        flag = word.text.partition("=")[0] if isinstance(word.text, str) else ""
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name in NO_TRAINING_ARGUMENTS and name not in fields:
            return Refusal(f"{flag} is not used by the HfArgumentParser", index, is_unknown=True)
    return None


def _words(launch: Launch) -> list[str | None]:
    return [None if isinstance(one.text, Unknown) or one.many else one.text for one in launch.arguments]


def _is_local_rank(launch: Launch, why: Refusal) -> bool:
    word = "" if why.index is None else launch.arguments[why.index].text
    return isinstance(word, str) and word.partition("=")[0] in LOCAL_RANK


def _refused(launch: Launch, deeds: Deeds, call: Call, why: Refusal) -> Item:
    source, place = deeds.script.place(call.node)
    fields = {
        "message": why.message,
        "is_dataclass": isinstance(call.receiver, HfParser),
        "hint": _hint(launch, call.receiver, why),
        **_correction(launch, call.receiver, why),
    }
    span = launch.span if why.index is None else launch.arguments[why.index].span
    return Item(fields, launch.source, span, elsewhere=((source, place, "this parser reads it"),))


def _correction(launch: Launch, parser: Value, why: Refusal) -> dict[str, Any]:
    """What a fix needs: `kind` "switch", "near" or None, the option that is `meant`, and where its name stands."""
    nothing = {"kind": None, "meant": None, "name_span": UNDECIDABLE}
    if why.index is None:
        return nothing
    word = launch.arguments[why.index]
    if _is_path_of_switch(launch, parser, why.index):
        is_written = not isinstance(name_place(launch, word.span, str(word.text)), Unknown)
        return {**nothing, "kind": "switch" if is_written else None}
    name = str(word.text).partition("=")[0]
    near = near_name(name, flags_of(parser)) if why.is_unknown and name.startswith("--") else None
    if near is None or _is_of_launcher(launch, name):
        return nothing
    return {"kind": "near", "meant": near.key, "name_span": name_place(launch, word.span, name)}


def _hint(launch: Launch, parser: Value, why: Refusal) -> str:
    """What to do about it."""
    if why.index is None:
        return "give what it needs"
    word = launch.arguments[why.index].text
    if _is_path_of_switch(launch, parser, why.index):
        before = launch.arguments[why.index - 1].text
        return f"{before} is a switch here, and the config's path belongs to {before}_config"
    if why.is_unknown and _is_of_launcher(launch, str(word).partition("=")[0]):
        script = (
            launch.script.text
            if launch.script is not None and isinstance(launch.script.text, str)
            else "the script"
        )
        return f"as an option of {COMMANDS[launch.launcher]} it belongs before {script}"
    return "declare it in the script, or take it out" if why.is_unknown else "correct it"


def _is_path_of_switch(launch: Launch, parser: Value, index: int) -> bool:
    """Whether a word stands behind --deepspeed, which is a switch for this parser."""
    before = launch.arguments[index - 1].text if index else ""
    is_named = before in ("--deepspeed", "--deepscale")
    return is_named and isinstance(parser, Parser) and _is_switch(parser, str(before))


def _is_of_launcher(launch: Launch, flag: str) -> bool:
    name = flag.lstrip("-").replace("-", "_")
    return launch.launcher in COMMANDS and name in option_table(launch.launcher).names.values()


def _is_switch(parser: Parser, flag: str) -> bool:
    return any(flag in option.flags and option.takes == 0 for option in parser.options)


def launcher_options_behind(facts: Facts) -> tuple[Item, ...]:
    """Options of the launcher that stand behind the script, which doesn't read them either."""
    launch, deeds = launch_of(facts), facts.run.script
    if deeds is None or launch.launcher not in COMMANDS or list(strict_parses(deeds)):
        return ()
    readers = [call for call in deeds.calls if call.dotted == "parse_known_args"]
    if not readers or not all(_reads_plainly(call.receiver) for call in readers):
        return ()
    return tuple(_behind(launch, [call.receiver for call in readers]))


def _reads_plainly(parser: Value) -> bool:
    return isinstance(parser, Parser) and parser.is_complete


def _behind(launch: Launch, parsers: list[Value]) -> Iterator[Item]:
    names = set(option_table(launch.launcher).names.values()) & WHERE_IT_RUNS
    for word in launch.arguments:
        flag = word.text.partition("=")[0] if isinstance(word.text, str) else ""
        name = flag.lstrip("-").replace("-", "_")
        is_option = flag.startswith("--") and name in names and name not in launch.options
        if is_option and not any(knows(parser, flag) for parser in parsers):
            script = launch.script.text if launch.script is not None else "the script"
            yield Item(
                {"option": flag, "command": COMMANDS[launch.launcher], "script": script}, launch.source, word.span
            )


def trainer_words(facts: Facts) -> tuple[Item, ...]:
    """--deepspeed as a bare switch, or --deepspeed_config, for the TrainingArguments of Transformers."""
    launch, deeds = launch_of(facts), facts.run.script
    if deeds is None or launch.options_incomplete:
        return ()
    calls = [call for call in deeds.calls if call.dotted == "parse_args_into_dataclasses" and _is_sure(call)]
    return tuple(found for call in calls for found in _trainer_words(facts, launch, call.receiver))


def _is_sure(call: Call) -> bool:
    return (
        call.spot.is_called
        and not call.spot.guards
        and not call.positional
        and not call.keywords
        and call.is_complete
    )


def _trainer_words(facts: Facts, launch: Launch, parser: Value) -> Iterator[Item]:
    classes = parser.classes if isinstance(parser, HfParser) else ()
    if not any(_is_training_arguments(one) for one in classes):
        return
    are_known = _are_known(classes)
    fields = {name for one in classes if isinstance(one, Class) for name in one.fields}
    for index, word in enumerate(launch.arguments):
        following = launch.arguments[index + 1] if index + 1 < len(launch.arguments) else None
        if word.text == "--deepspeed" and _is_end(following) and "deepspeed" not in fields:
            place = {
                "name_span": name_place(launch, word.span, word.text),
                "has_path": _has_path(launch),
                "config": _config_beside(facts, launch, word),
            }
            yield Item({"kind": "switch", "word": word.text, **place}, launch.source, word.span)
        text = word.text if isinstance(word.text, str) else ""
        if text.partition("=")[0] == "--deepspeed_config" and are_known and "deepspeed_config" not in fields:
            place = {
                "name_span": name_place(launch, word.span, "--deepspeed_config"),
                "has_path": True,
                "config": UNDECIDABLE,
            }
            yield Item({"kind": "unknown", "word": "--deepspeed_config", **place}, launch.source, word.span)


def _config_beside(facts: Facts, launch: Launch, word: Argument) -> str | Unknown:
    """The run's config, where it lies beside the shell script, and the command runs there."""
    folder, name = os.path.split(facts.document.source.path)
    is_beside = facts.document.language == "json" and folder == os.path.dirname(launch.source.path)
    is_written = not isinstance(name_place(launch, word.span, str(word.text)), Unknown)
    moves = launch.directory is not None or launch.environment_unknown
    return name if is_beside and is_written and not moves else UNDECIDABLE


def _has_path(launch: Launch) -> bool:
    """Whether another word of the command gives the config's path."""
    texts = [word.text if isinstance(word.text, str) else word.prefix for word in launch.arguments]
    is_given = any(text.startswith(("--deepspeed=", "--deepspeed_config")) for text in texts)
    pairs = zip(texts, launch.arguments[1:], strict=False)
    return is_given or any(text == "--deepspeed" and not _is_end(behind) for text, behind in pairs)


def _are_known(classes: Sequence[Value]) -> bool:
    """Whether all fields of some dataclasses are known: TrainingArguments, and classes of one's own."""
    has_arguments = any(_is_training_arguments(one) for one in classes)
    return has_arguments and all(
        _is_training_arguments(one) or (isinstance(one, Class) and not one.bases) for one in classes
    )


def _is_end(word: Argument | None) -> bool:
    return word is None or (not word.many and isinstance(word.text, str) and word.text.startswith("--"))


def _is_training_arguments(one: Value) -> bool:
    """Whether a class is TrainingArguments itself, or one of this file that adds fields to it."""
    names = one.bases if isinstance(one, Class) else (one.name,) if isinstance(one, Named) else ()
    known = [name for name in names if TRAINING_ARGUMENTS.get(name.rpartition(".")[2]) == "transformers"]
    return bool(known) and len(known) == len(names)
