"""Where arguments of Hugging Face's Trainer stand, so that they can be changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts
from dslint.runs.launch.launch import Argument, Launch
from dslint.runs.unknown import Unknown


class NoArgumentError(Exception):
    """An argument that has no place to change; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class ArgumentPlace:
    """Where an argument stands, or would.

    Attributes:
        source: the script or the shell script.
        call: the constructor's call, where the script makes the object.
        option: the option with its value, where the command gives it.
        value: the value alone.
        last_word: the command's last word.
    """

    source: Source
    call: Span | None = None
    option: Span | None = None
    value: Span | None = None
    last_word: Span | None = None


def place_of(facts: Facts, name: str) -> ArgumentPlace:
    """The place of an argument.

    Raises:
        NoArgumentError: if it comes from somewhere that can't be changed.
    """
    arguments, deeds = facts.arguments, facts.run.script
    if arguments is None or deeds is None:
        raise NoArgumentError("the Trainer's arguments are not in the files")
    call = arguments.thing.call
    if call is not None:
        if name in call.keywords and all(keyword.arg != name for keyword in call.node.keywords):
            raise NoArgumentError(f"{name} comes from a dict that the script unpacks")
        source, span = deeds.script.place(call.node)
        return ArgumentPlace(source, call=span)
    launch = facts.run.launch
    if launch is None or not launch.arguments:
        raise NoArgumentError("no launch command gives the Trainer's arguments")
    if launch.is_in_text:
        raise NoArgumentError("the launch command stands in a text that another command runs")
    return _in_command(launch, name)


def _in_command(launch: Launch, name: str) -> ArgumentPlace:
    last = launch.arguments[-1].span
    found = list(_options(launch, name))
    if not found:
        return ArgumentPlace(launch.source, last_word=last)
    if len(found) > 1:
        raise NoArgumentError(f"the command gives --{name} more than once")
    word, values = found[0]
    written = _text(launch, word.span)
    if not written.startswith("--"):
        raise NoArgumentError(f"--{name} is not written out in the command")
    if any(value.many for value in values):
        raise NoArgumentError(f"nobody can tell what belongs to --{name}")
    option = Span(word.span.start, values[-1].span.end if values else word.span.end)
    _must_be_spelled(launch, name, option)
    value = values[0].span if len(values) == 1 else None
    if "=" in written:
        value = Span(word.span.start + len(written.partition("=")[0].encode()) + 1, word.span.end)
    return ArgumentPlace(launch.source, option=option, value=value, last_word=last)


def _options(launch: Launch, name: str) -> Iterator[tuple[Argument, list[Argument]]]:
    """Each word that gives an argument, with the words behind it that are its values."""
    words = launch.arguments
    for index, word in enumerate(words):
        option, has_value, _ = (word.prefix if isinstance(word.text, Unknown) else word.text).partition("=")
        if option.startswith("--") and option[2:].replace("-", "_") == name:
            yield word, [] if has_value else list(_values(words[index + 1 :]))


def _values(words: tuple[Argument, ...]) -> Iterator[Argument]:
    """The words before the next option; the last of them may stand for any number of words."""
    for word in words:
        if isinstance(word.text, str) and word.text.startswith("--"):
            return
        yield word
        if word.many:
            return


def _must_be_spelled(launch: Launch, name: str, span: Span) -> None:
    if "$" in _text(launch, span) or "`" in _text(launch, span):
        raise NoArgumentError(f"the value of --{name} comes from a variable")


def _text(launch: Launch, span: Span) -> str:
    return launch.source.data[span.start : span.end].decode("utf-8", "replace")
