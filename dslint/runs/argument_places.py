"""Where arguments of Hugging Face's Trainer stand, so that they can be changed."""

from __future__ import annotations

from dataclasses import dataclass

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts


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
    source, span = arguments.place(name)
    last = launch.arguments[-1].span
    if source is not launch.source:
        return ArgumentPlace(launch.source, last_word=last)
    return ArgumentPlace(source, option=span, value=_value_in(source, span), last_word=last)


def _value_in(source: Source, option: Span) -> Span | None:
    """The value behind `--name value` or `--name=value`; None for a flag."""
    text = source.data[option.start : option.end]
    ends = [at for at in (text.find(b"="), text.find(b" ")) if at > 0]
    if not ends:
        return None
    at = min(ends) + 1
    while text[at : at + 1] == b" ":
        at += 1
    return Span(option.start + at, option.end)
