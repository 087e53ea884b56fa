"""What one launch command says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dslint.documents.shell_document import Directive
from dslint.documents.source import Source, Span
from dslint.runs.unknown import UNDECIDABLE, Unknown


@dataclass(frozen=True)
class Argument:
    """A word of a command after expansion.

    Attributes:
        text: its text, where the file tells.
        span: where it stands in the command.
        many: stands for any number of words (`"$@"`).
        prefix: of an unknown text, its known beginning: `--num_gpus=` of `--num_gpus=$N`.
        overridable: it is a default that the environment may replace (`${N:-8}`).
        origin: where a variable in it got its value.
    """

    text: str | Unknown
    span: Span
    many: bool = False
    prefix: str = ""
    overridable: bool = False
    origin: Span | None = None


@dataclass(frozen=True)
class Option:
    """A launcher's option.

    Attributes:
        value: its text; True for a flag.
        span: the option with its value.
        overridable: the value is a default that the environment may replace.
        origin: where a variable in the value got its value.
        value_span: the value alone; None for a flag.
    """

    value: str | bool | Unknown
    span: Span
    overridable: bool = False
    origin: Span | None = None
    value_span: Span | None = None


@dataclass(frozen=True)
class UnknownOption:
    """An option before the script that the launcher does not have.

    Attributes:
        name: as written, with its dashes.
        span: the word.
        whole: the word with what seems to be its value.
    """

    name: str
    span: Span
    whole: Span


@dataclass(frozen=True)
class Outer:
    """A launcher around the launcher: `srun` or `mpirun`, with its options by their names without dashes."""

    launcher: str
    options: Mapping[str, Option]
    span: Span


@dataclass(frozen=True)
class Launch:
    """One launch command.

    Attributes:
        span: the first line of the command, from its first word.
        launcher: "deepspeed", "torchrun", "torch.distributed.launch", "accelerate", "srun", "mpirun" or
            "python" (a script run without any launcher).
        launcher_span: the launcher's own word.
        outer: launchers around it, outermost first.
        options: the launcher's options by their long names with underscores, without dashes; the last of
            several counts.
        unknown_options: options that this launcher does not have.
        options_incomplete: a variable nobody knows may hold further options.
        script: the script or module; None where there is none, its text Unknown where nobody can tell it.
        is_module: the script is a module's name.
        arguments: what the script is given.
        environment: variables set for it in the file, exported or in front of the command.
        environment_unknown: it runs in a container, whose own variables and files nobody sees here.
        directory: where it runs, relative to the caller's folder; None
            where the file doesn't change it, or nobody can tell.
        directives: the `#SBATCH` lines.
        is_in_text: the command stands in a text that another one runs (`bash -c`), so that its words have no
            places of their own.
    """

    source: Source
    span: Span
    launcher: str
    launcher_span: Span
    outer: tuple[Outer, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    unknown_options: tuple[UnknownOption, ...] = ()
    options_incomplete: bool = False
    script: Argument | None = None
    is_module: bool = False
    arguments: tuple[Argument, ...] = ()
    environment: Mapping[str, Argument] = field(default_factory=dict)
    environment_unknown: bool = False
    directory: str | None = None
    directives: tuple[Directive, ...] = ()
    is_in_text: bool = False


def option_of(launch: Launch, name: str) -> Argument | None:
    """The value that the script is given for an option, as `--name value` or `--name=value`.

    Args:
        launch: the command.
        name: the option as written, with its dashes.

    Returns:
        The last value given, its text empty where the option stands alone; None where it isn't given. The
        text is Unknown where the value is, or where a variable nobody knows may hold the option.
    """
    found: Argument | None = None
    unsure: Argument | None = None
    arguments = launch.arguments
    for index, argument in enumerate(arguments):
        if argument.many:
            unsure = argument
        elif isinstance(argument.text, Unknown):
            if argument.prefix.startswith(name + "="):
                found, unsure = argument, None
        elif argument.text == name:
            found, unsure = _value_behind(argument, arguments[index + 1 : index + 2]), None
        elif argument.text.startswith(name + "="):
            found, unsure = _with_text(argument, argument.text[len(name) + 1 :]), None
    return Argument(UNDECIDABLE, unsure.span, many=True) if unsure else found


def _value_behind(option: Argument, rest: tuple[Argument, ...]) -> Argument:
    following = rest[0] if rest else None
    if following is None or (isinstance(following.text, str) and following.text.startswith("--")):
        return _with_text(option, "")
    span = Span(min(option.span.start, following.span.start), max(option.span.end, following.span.end))
    return Argument(following.text, span, False, following.prefix, following.overridable, following.origin)


def _with_text(argument: Argument, text: str) -> Argument:
    return Argument(text, argument.span, overridable=argument.overridable, origin=argument.origin)
