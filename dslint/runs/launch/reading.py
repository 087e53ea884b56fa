"""Finds the launch commands of a shell script, and the files that it writes itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dslint.documents.shell_document import Command, ShellDocument
from dslint.documents.source import Span
from dslint.runs.launch.embedded import embedded_files
from dslint.runs.launch.launch import Argument, Launch, Option, Outer
from dslint.runs.launch.option_parsing import Parsed, end_of, parse_options
from dslint.runs.launch.option_tables import option_table
from dslint.runs.launch.slurm import LONG_NAMES, slurm_variables
from dslint.runs.launch.variables import DIRECTORY, Variable, Variables, own_folder
from dslint.runs.unknown import UNDECIDABLE, Unknown

_LAUNCHERS = {
    "deepspeed": "deepspeed",
    "ds": "deepspeed",
    "torchrun": "torchrun",
    "accelerate-launch": "accelerate",
}
_MODULES = {
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed": "deepspeed",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate",
}
_OUTER = {"srun": "srun", "mpirun": "mpirun", "mpiexec": "mpirun", "mpiexec.hydra": "mpirun"}
_CONTAINERS = frozenset(["docker", "podman", "singularity", "apptainer", "enroot", "nvidia-docker"])
_RUNNERS = frozenset(["uv", "poetry", "pipenv", "pdm", "rye", "hatch", "pixi", "conda", "mamba", "micromamba"])
_OWN_WORDS = {"timeout": 1, "taskset": 1, "nsys": 1, "py-spy": 1, **dict.fromkeys(_CONTAINERS, 1)}
_WRAPPERS = (
    _CONTAINERS
    | _RUNNERS
    | frozenset(
        [
            "env",
            "nohup",
            "time",
            "timeout",
            "nice",
            "ionice",
            "nsys",
            "ncu",
            "stdbuf",
            "numactl",
            "taskset",
            "sudo",
            "exec",
            "command",
            "caffeinate",
            "setsid",
            "unbuffer",
            "xvfb-run",
            "rocprof",
            "py-spy",
        ]
    )
)
_SHELLS = frozenset(["bash", "sh", "zsh", "dash"])
_PYTHON = re.compile(r"python(?:3(?:\.[0-9]+)?)?|pypy3?")
_PYTHON_VALUED = frozenset(["-X", "-W", "--check-hash-based-pycs"])
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_MPI_NAMES = {"np": "n", "c": "n", "ppn": "npernode", "N": "npernode"}
_MOST = 1000  # launches that are told apart in one file
_DEEPEST = 3  # levels of bash -c
__all__ = ["embedded_files", "launches"]
_A_LAUNCH_MAY_STAND = re.compile(rb"python|deepspeed|torchrun|accelerate|\bds\b|\bpypy|\.py\b")


@dataclass(frozen=True, eq=False)
class _Context:
    """What has been taken off in front of a launcher."""

    outer: tuple[Outer, ...] = ()
    environment: Mapping[str, Argument] | None = None
    in_container: bool = False
    depth: int = 0


def launches(document: ShellDocument) -> tuple[Launch, ...]:
    """The launch commands of a script in text order, plain `python script.py` included."""
    if not _A_LAUNCH_MAY_STAND.search(document.source.data):
        return ()
    return tuple(islice(_Finder(document).all(), _MOST))


class _Finder:
    def __init__(self, document: ShellDocument) -> None:
        self.document = document
        self.variables = Variables(document.commands, slurm_variables(document.directives), own_folder(document))
        self._arguments: dict[str, tuple[Variable, Argument]] = {}

    def all(self) -> Iterator[Launch]:
        for command in self.document.commands:
            self.variables.enter(command.blocks)
            if command.words:
                yield from self._of_command(command, _Context(), None)
            self.variables.run(command)

    def _of_command(self, command: Command, context: _Context, span: Span | None) -> Iterator[Launch]:
        """The launches of one command; `span` is where it stands when it comes from a text such as bash -c's."""
        arguments = self.variables.words(command.words)
        environment = dict(context.environment or {})
        for assignment in command.assignments:
            value = Argument("", assignment.span)
            if assignment.value is not None:
                value = replace(self.variables.text(assignment.value), span=assignment.span)
            environment[assignment.name] = value
        if span is not None:
            arguments = [replace(argument, span=span) for argument in arguments]
            environment = {name: replace(value, span=span) for name, value in environment.items()}
        context = replace(context, environment=environment)
        yield from self._of_arguments(arguments, context, command, span or command.span)

    def _of_arguments(
        self, arguments: Sequence[Argument], context: _Context, command: Command, span: Span
    ) -> Iterator[Launch]:
        while arguments:
            name = _base_name(arguments[0])
            if name is None:
                return
            launcher = _launcher(arguments)
            if launcher is not None:
                yield self._launch(*launcher, arguments[0].span, context, span)
                return
            if name in _SHELLS or name == "eval":
                yield from self._of_shell(name, arguments, context, command, span)
                return
            if name not in _OUTER and name not in _WRAPPERS:
                return
            inner = _inner_start(name, arguments)
            if inner is None:
                return
            context = _with_wrapper(context, name, arguments[:inner])
            arguments = arguments[inner:]

    def _of_shell(
        self, name: str, arguments: Sequence[Argument], context: _Context, command: Command, span: Span
    ) -> Iterator[Launch]:
        """The launches in the text that `bash -c` or `eval` runs."""
        from dslint.documents.shell_reader import commands_within

        if context.depth >= _DEEPEST:
            return
        words = command.words[1:]
        if name != "eval":
            index = next((i for i, word in enumerate(command.words) if _is_c_flag(word.literal)), None)
            if index is None or index + 1 >= len(command.words):
                return
            words = command.words[index + 1 : index + 2]
        parts = [self.variables.filled(word.pieces, "${_unknown_}")[0] for word in words]
        inner = replace(context, depth=context.depth + 1)
        in_file = words and context.depth == 0  # the words of a text have no place in the file but the text's
        place = Span(words[0].span.start, words[-1].span.end) if in_file else span
        for found in commands_within(" ".join(parts)):
            if found.words:
                yield from self._of_command(found, inner, place)

    def _launch(
        self, launcher: str, arguments: Sequence[Argument], name_span: Span, context: _Context, span: Span
    ) -> Launch:
        if launcher == "python":
            parsed = _parse_python(arguments)
            if context.outer:
                launcher = context.outer[-1].launcher
        else:
            parsed = parse_options(arguments, option_table(launcher))
        environment = {**self._exported(), **(context.environment or {})}
        options = parsed.options
        if launcher in ("srun", "mpirun"):
            options = {**context.outer[-1].options, **options}
        return Launch(
            source=self.document.source,
            span=self._first_line(span),
            launcher=launcher,
            launcher_span=name_span,
            outer=context.outer[:-1] if launcher in ("srun", "mpirun") else context.outer,
            options=options,
            unknown_options=tuple(parsed.unknown_options),
            options_incomplete=parsed.incomplete,
            script=parsed.script,
            is_module="module" in parsed.options,
            arguments=parsed.rest,
            environment=environment,
            environment_unknown=context.in_container,
            directory=_known_directory(self.variables.values.get(DIRECTORY)),
            directives=self.document.directives,
            is_in_text=context.depth > 0,
        )

    def _exported(self) -> dict[str, Argument]:
        """What the file exports at this point."""
        result = {}
        for name, variable in self.variables.values.items():
            if variable.exported and not name.startswith("SLURM_"):
                known = self._arguments.get(name)
                if known is None or known[0] is not variable:
                    known = self._arguments[name] = (variable, _as_argument(variable))
                result[name] = known[1]
        return result

    def _first_line(self, span: Span) -> Span:
        data = self.document.source.data
        newline = data.find(b"\n", span.start, span.end)
        if newline < 0:
            return span
        line = data[span.start : newline].rstrip(b"\r").removesuffix(b"\\").rstrip()
        return Span(span.start, span.start + max(len(line), 1))


def _known_directory(variable: Variable | None) -> str | None:
    value = None if variable is None else variable.value
    return value if isinstance(value, str) and "\0" not in value else None


def _as_argument(variable: Variable) -> Argument:
    value = variable.value
    if not isinstance(value, str):
        return Argument(UNDECIDABLE, variable.span)
    start, hole, _ = value.partition("\0")
    if hole:
        return Argument(UNDECIDABLE, variable.span, prefix=start)
    return Argument(value, variable.span, overridable=variable.overridable)


def _base_name(argument: Argument) -> str | None:
    return argument.text.rsplit("/", 1)[-1] if isinstance(argument.text, str) else None


def _is_c_flag(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"-[a-z]*c", text) is not None


def _launcher(arguments: Sequence[Argument]) -> tuple[str, Sequence[Argument]] | None:
    """The launcher that a command starts with, and the arguments behind its name."""
    name = _base_name(arguments[0])
    if name is None:
        return None
    if name in _LAUNCHERS:
        return _LAUNCHERS[name], arguments[1:]
    if name == "accelerate":
        is_launch = len(arguments) > 1 and arguments[1].text == "launch"
        return ("accelerate", arguments[2:]) if is_launch else None
    if name.endswith(".py"):
        return "python", arguments
    if not _PYTHON.fullmatch(name):
        return None
    start = _behind_python_flags(arguments)
    if start >= len(arguments) or arguments[start].text in ("-c", "-", "--version", "-V", "-h", "--help"):
        return None
    if arguments[start].text == "-m" and start + 1 < len(arguments):
        module = arguments[start + 1].text
        if isinstance(module, str) and module in _MODULES:
            return _MODULES[module], arguments[start + 2 :]
    return "python", arguments[start:]


def _behind_python_flags(arguments: Sequence[Argument]) -> int:
    index = 1
    while index < len(arguments):
        text = arguments[index].text
        if not isinstance(text, str) or not text.startswith("-") or text in ("-m", "-c", "-", "--version", "-V"):
            break
        index += 2 if text in _PYTHON_VALUED else 1
    return index


def _parse_python(arguments: Sequence[Argument]) -> Parsed:
    parsed = Parsed()
    start = 0
    if arguments[0].text == "-m":
        parsed.options["module"] = Option(True, arguments[0].span)
        start = 1
    if start < len(arguments):
        parsed.script = arguments[start]
        parsed.incomplete = arguments[start].many
    parsed.rest = tuple(arguments[start + 1 :])
    return parsed


def _inner_start(wrapper: str, arguments: Sequence[Argument]) -> int | None:
    """Where the command begins that a wrapper runs: behind its options, their values and what else it takes."""
    words_left = _OWN_WORDS.get(wrapper, 0)
    needs_run = wrapper in _CONTAINERS or wrapper in _RUNNERS
    may_be_value = False
    for index in range(1, len(arguments)):
        argument = arguments[index]
        name = _base_name(argument)
        if name is None:
            may_be_value = argument.prefix.startswith("-") and "=" not in argument.prefix
        elif needs_run and argument.text in ("run", "exec", "shell"):
            needs_run = False
        elif not needs_run and _starts_something(name, argument.text):
            return index
        elif name.startswith("-") or (isinstance(argument.text, str) and argument.text.startswith("-")):
            may_be_value = "=" not in str(argument.text) and argument.text != "--"
        elif may_be_value:
            may_be_value = False
        elif not _SETTING.fullmatch(str(argument.text)) and not needs_run:
            words_left -= 1
            if words_left < 0:
                return None
    return None


def _starts_something(name: str, text: str | Unknown) -> bool:
    if name in _LAUNCHERS or name in _OUTER or name in _SHELLS or name == "accelerate" or name.endswith(".py"):
        return True
    return _PYTHON.fullmatch(name) is not None or (name in _WRAPPERS and name == text)


def _with_wrapper(context: _Context, name: str, taken: Sequence[Argument]) -> _Context:
    environment = dict(context.environment or {})
    if name == "env" or name in _CONTAINERS:
        for argument in taken[1:]:
            match = _SETTING.fullmatch(argument.text if isinstance(argument.text, str) else argument.prefix)
            if match:
                known = isinstance(argument.text, str)
                environment[match.group(1)] = replace(
                    argument, text=match.group(2) if known else UNDECIDABLE, prefix="" if known else match.group(2)
                )
    outer = context.outer
    if name in _OUTER:
        outer = (*outer, Outer(_OUTER[name], _outer_options(_OUTER[name], taken[1:]), taken[0].span))
    return replace(
        context, environment=environment, outer=outer, in_container=context.in_container or name in _CONTAINERS
    )


def _outer_options(launcher: str, arguments: Sequence[Argument]) -> dict[str, Option]:
    """The options of srun or mpirun, by long names with underscores (mpirun: `n`, `npernode`, …)."""
    names = LONG_NAMES if launcher == "srun" else _MPI_NAMES
    options: dict[str, Option] = {}
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        text = argument.text if isinstance(argument.text, str) else argument.prefix
        index += 1
        if not text.startswith("-") or len(text) < 2:
            continue
        spelling, equals, attached = text.partition("=")
        is_short = launcher == "srun" and not text.startswith("--")
        if is_short and len(text) > 2:  # -n16
            spelling, equals, attached = text[:2], "=", text[2:].removeprefix("=")
        name = spelling.lstrip("-").replace("-", "_")
        name = names.get(name, name)
        following = arguments[index] if index < len(arguments) else None
        if equals:
            value: str | Unknown = attached if isinstance(argument.text, str) else UNDECIDABLE
            place = end_of(argument.span, attached)
            options[name] = Option(value, argument.span, argument.overridable, argument.origin, place)
        elif following is None or (isinstance(following.text, str) and following.text.startswith("-")):
            options[name] = Option(True, argument.span)
        else:
            span = Span(min(argument.span.start, following.span.start), max(argument.span.end, following.span.end))
            options[name] = Option(following.text, span, following.overridable, following.origin, following.span)
            index += 1
    return options
