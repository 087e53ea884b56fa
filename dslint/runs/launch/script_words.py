"""The script's own words on a command line, held against the parser that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of
from dslint.runs.launch.launch import Argument, Launch
from dslint.runs.launch.option_tables import option_table
from dslint.runs.launch.refusals import COMMANDS
from dslint.runs.script.arguments import HfParser, Parser
from dslint.runs.script.events import Call
from dslint.runs.script.facts.command_line import Refusal, knows, refusal, strict_parses
from dslint.runs.script.known_apis import TRAINING_ARGUMENTS
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Named, Value
from dslint.runs.unknown import Unknown

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
    }
    span = launch.span if why.index is None else launch.arguments[why.index].span
    return Item(fields, launch.source, span, elsewhere=((source, place, "this parser reads it"),))


def _hint(launch: Launch, parser: Value, why: Refusal) -> str:
    """What to do about it."""
    if why.index is None:
        return "give what it needs"
    word = launch.arguments[why.index].text
    before = launch.arguments[why.index - 1].text if why.index else ""
    if before in ("--deepspeed", "--deepscale") and isinstance(parser, Parser) and _is_switch(parser, str(before)):
        return f"{before} is a switch here, and the config's path belongs to {before}_config"
    name = str(word).partition("=")[0].lstrip("-").replace("-", "_")
    if launch.launcher in COMMANDS and name in option_table(launch.launcher).names.values() and why.is_unknown:
        script = (
            launch.script.text
            if launch.script is not None and isinstance(launch.script.text, str)
            else "the script"
        )
        return f"as an option of {COMMANDS[launch.launcher]} it belongs before {script}"
    return "declare it in the script, or take it out" if why.is_unknown else "correct it"


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
    return tuple(found for call in calls for found in _trainer_words(launch, call.receiver))


def _is_sure(call: Call) -> bool:
    return (
        call.spot.is_called
        and not call.spot.guards
        and not call.positional
        and not call.keywords
        and call.is_complete
    )


def _trainer_words(launch: Launch, parser: Value) -> Iterator[Item]:
    classes = parser.classes if isinstance(parser, HfParser) else ()
    if not any(_is_training_arguments(one) for one in classes):
        return
    are_known = _are_known(classes)
    fields = {name for one in classes if isinstance(one, Class) for name in one.fields}
    for index, word in enumerate(launch.arguments):
        following = launch.arguments[index + 1] if index + 1 < len(launch.arguments) else None
        if word.text == "--deepspeed" and _is_end(following) and "deepspeed" not in fields:
            yield Item({"kind": "switch", "word": word.text}, launch.source, word.span)
        text = word.text if isinstance(word.text, str) else ""
        if text.partition("=")[0] == "--deepspeed_config" and are_known and "deepspeed_config" not in fields:
            yield Item({"kind": "unknown", "word": "--deepspeed_config"}, launch.source, word.span)


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
