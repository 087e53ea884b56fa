"""The variables of a script while it is read from top to bottom, and what words expand to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dslint.documents.shell_document import Assignment, Block, Command, Piece, ShellDocument, Word
from dslint.documents.source import Span
from dslint.runs.launch.arithmetic import arithmetic
from dslint.runs.launch.launch import Argument
from dslint.runs.unknown import UNDECIDABLE, Unknown

DIRECTORY = " directory"  # kept like a variable, as blocks change it alike; no variable has this name
_PATTERN = re.compile(r"[*?]|\{[^{}]*(?:,|\.\.)[^{}]*\}")
_SETTING = {"read", "getopts", "mapfile", "readarray", "unset", "let"}
_HOLE = "\0"  # an unknown part of a text; no shell text can hold this character
_LONGEST = 65_536  # characters of a value
_MOST_WORDS = 4_096


@dataclass(frozen=True, eq=False)
class Variable:
    r"""A variable's value.

    Attributes:
        value: its text, in which `\0` stands for each part nobody knows; an array's elements; or Unknown.
        span: where it was set.
        overridable: it is a default that the environment may replace.
        exported: commands see it.
    """

    value: str | tuple[Argument, ...] | Unknown
    span: Span
    overridable: bool = False
    exported: bool = False


class _Frame:
    """A block being read."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.before: dict[str, Variable | None] = {}
        self.other_ends: dict[str, list[Variable | None]] = {}
        self.masked: dict[str, Variable] = {}


def own_folder(document: ShellDocument) -> str:
    """The absolute path of the folder that a script stands in."""
    return os.path.dirname(os.path.abspath(document.source.path))


_SCRIPT = r"""["']?\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?["']?"""
_DIRNAME = (
    rf"dirname\s+(?:--\s+)?(?:{_SCRIPT}|[\"']?\$\(\s*(?:realpath|readlink\s+-f)\s+(?:--\s+)?{_SCRIPT}\s*\)[\"']?)"
)
_OWN_FOLDER = re.compile(
    rf"{_DIRNAME}|cd\s+(?:--\s+)?[\"']?(?:\$\(|`)\s*{_DIRNAME}\s*(?:\)|`)[\"']?(?:\s*>\s*/dev/null(?:\s+2>&1)?)?\s*&&\s*pwd(?:\s+-P)?"
)
"""The commands by which a script finds the folder that it stands in."""


class Variables:
    """Follows the assignments of a script.

    Inside a block a value set there is known; behind it, a variable that not every way through sets alike is
    Unknown. In a loop, so is what the loop sets before it does; in a function, what is set again later.
    """

    def __init__(
        self, commands: tuple[Command, ...], given: Mapping[str, tuple[str, Span]], own_folder: str = ""
    ) -> None:
        self.own_folder = own_folder
        self.values: dict[str, Variable] = {
            name: Variable(text, span, True, True) for name, (text, span) in given.items()
        }
        self._frames: list[_Frame] = []
        self._set_in_loops, self._last_set, self._function_ends = _assigned_names(commands)

    # Blocks

    def enter(self, blocks: tuple[Block, ...]) -> None:
        """Moves to a command that stands in these blocks."""
        shared = 0
        for frame, block in zip(self._frames, blocks, strict=False):
            if (frame.block.kind, frame.block.number) != (block.kind, block.number):
                break
            shared += 1
            if frame.block.branch != block.branch:
                while len(self._frames) > shared:
                    self._leave()
                self._end_branch(frame, block)
        while len(self._frames) > shared:
            self._leave()
        for block in blocks[shared:]:
            self._frames.append(_Frame(block))
            self._mask(block)

    def _mask(self, block: Block) -> None:
        """Forgets what the block's beginning can't rely on."""
        frame = self._frames[-1]
        if block.kind == "loop":
            for name in block.names:
                self._put(name, Variable(UNDECIDABLE, Span(0, 0)))
            for name in self._set_in_loops.get(block.number, ()):
                self._put(name, Variable(UNDECIDABLE, Span(0, 0)))
        elif block.kind == "function":
            end = self._function_ends[block.number]
            for name, variable in list(self.values.items()):
                if self._last_set.get(name, -1) > end and not isinstance(variable.value, Unknown):
                    frame.masked[name] = variable
                    self.values[name] = replace(variable, value=UNDECIDABLE)

    def _end_branch(self, frame: _Frame, block: Block) -> None:
        for name, old in frame.before.items():
            frame.other_ends.setdefault(name, [old]).append(self.values.get(name))
            self._restore(name, old)
        frame.before.clear()
        frame.block = block

    def _leave(self) -> None:
        frame = self._frames.pop()
        for name, variable in frame.masked.items():
            self.values[name] = variable
        for name, old in frame.before.items():
            frame.other_ends.setdefault(name, [old]).append(self.values.get(name))
            self._restore(name, old)
        if frame.block.kind in ("subshell", "substitution"):
            return
        for name, ends in frame.other_ends.items():
            last = ends[-1]
            if frame.block.kind == "group" and last is not None:
                self._put(name, last)
            elif any(end is None or last is None or end.value != last.value for end in ends):
                known = next((end for end in reversed(ends) if end is not None), None)
                if known is not None:
                    self._put(name, replace(known, value=UNDECIDABLE))

    def _restore(self, name: str, old: Variable | None) -> None:
        if old is None:
            self.values.pop(name, None)
        else:
            self.values[name] = old

    def _put(self, name: str, variable: Variable) -> None:
        if self._frames:
            frame = self._frames[-1]
            old = frame.masked.pop(name, None) or self.values.get(name)
            frame.before.setdefault(name, old)
        self.values[name] = variable

    # Commands that change something

    def run(self, command: Command) -> None:
        """Takes over what a command sets for those behind it."""
        if not command.words or command.name in ("export", "declare", "local", "readonly", "typeset"):
            for assignment in command.assignments:
                self.assign(assignment)
            return
        name = command.name
        if name in ("cd", "pushd", "popd"):
            self._change_directory(name, command)
        elif name in _SETTING or (
            name == "printf" and len(command.words) > 1 and command.words[1].literal == "-v"
        ):
            for word in command.words[1:]:
                if word.literal and word.literal.isidentifier():
                    self._put(word.literal, Variable(UNDECIDABLE, word.span))

    def assign(self, assignment: Assignment) -> None:
        """Sets a variable."""
        old = self.values.get(assignment.name)
        exported = assignment.exported or (old is not None and old.exported)
        self._put(assignment.name, replace(self._assigned(assignment, old), exported=exported))

    def _assigned(self, assignment: Assignment, old: Variable | None) -> Variable:
        if assignment.value is None and assignment.array is None:
            return old or Variable(UNDECIDABLE, assignment.span)
        if assignment.is_element:
            return Variable(UNDECIDABLE, assignment.span)
        if assignment.array is not None:
            return self._assigned_array(assignment, assignment.array, old)
        fields = self._fields(_quoted(assignment.value)) if assignment.value else _Fields(assignment.span)
        value: str | Unknown = fields.raw()
        if assignment.appends and isinstance(value, str):
            before = old.value if old else UNDECIDABLE
            value = before + value if isinstance(before, str) else UNDECIDABLE
            if isinstance(value, str) and len(value) > _LONGEST:
                value = UNDECIDABLE
        return Variable(value, assignment.span, fields.overridable)

    def _assigned_array(self, assignment: Assignment, words: tuple[Word, ...], old: Variable | None) -> Variable:
        elements = tuple(self.words(words))
        if assignment.appends:
            before = old.value if old else ()
            if isinstance(before, str):
                before = (Argument(before, assignment.span),)
            if isinstance(before, Unknown):
                before = (Argument(UNDECIDABLE, assignment.span, many=True),)
            elements = (*before, *elements)
        if len(elements) > _MOST_WORDS:
            return Variable(UNDECIDABLE, assignment.span)
        return Variable(elements, assignment.span)

    def _change_directory(self, name: str, command: Command) -> None:
        targets = [self.text(word) for word in command.words[1:]]
        target = targets[-1].text if targets and name != "popd" else UNDECIDABLE
        old = self.values.get(DIRECTORY)
        if isinstance(target, str) and target and not target.startswith(("-", "~", "+")):
            base = old.value if old else ""
            if target.startswith("/") or base == "":
                value: str | Unknown = target
            else:
                value = f"{base}/{target}" if isinstance(base, str) else UNDECIDABLE
        else:
            value = UNDECIDABLE
        self._put(DIRECTORY, Variable(value, command.span))

    # Expansion

    def text(self, word: Word) -> Argument:
        """What a word stands for where it isn't split, as in an assignment."""
        fields = self._fields(_quoted(word)).finished()
        if len(fields) == 1 and not fields[0].many:
            return fields[0]
        if any(isinstance(found.text, Unknown) for found in fields):
            return Argument(UNDECIDABLE, word.span)
        return Argument(" ".join(str(found.text) for found in fields), word.span)

    def words(self, words: Iterable[Word]) -> list[Argument]:
        """The words of a command after expansion."""
        result: list[Argument] = []
        for word in words:
            found = self.word(word)
            if found and found[0].many and _is_scalar(word) and result and _wants_value(result[-1]):
                found[0] = replace(found[0], many=False)  # the value of the option before it
            result.extend(found)
        return result

    def word(self, word: Word) -> list[Argument]:
        """What a word expands to: usually one word, from a variable with blanks or an array several."""
        if word.literal is not None and not _has_pattern(word.pieces):
            return [Argument(word.literal, word.span)]
        return self._fields(word).finished()

    def _fields(self, word: Word) -> _Fields:
        fields = _Fields(word.span)
        for piece in word.pieces:
            self._expand(piece, fields)
        return fields

    def filled(self, pieces: tuple[Piece, ...], written: str | None = None) -> tuple[str, bool]:
        """A text with its known variables filled in, and whether all of it is known.

        Args:
            pieces: the text.
            written: what stands for an unknown piece; None for `${NAME}`.
        """
        parts = []
        known = True
        for piece in pieces:
            value = self._fields(_quoted(Word((piece,), piece.span))).raw()
            if piece.kind == "literal" or (_HOLE not in value and "\n" not in value):
                parts.append(value)
                continue
            known = False
            name = piece.text if piece.kind == "variable" else "command"
            in_braces = "${" + re.sub(r"\W", "_", name) + "}"
            parts.append(in_braces if written is None else value.replace(_HOLE, written))
        return "".join(parts), known

    def _expand(self, piece: Piece, fields: _Fields) -> None:
        if piece.kind == "literal":
            if not piece.quoted and _PATTERN.search(piece.text):
                fields.unknown(many=True)
            else:
                fields.add(piece.text)
        elif piece.kind == "variable":
            self._expand_variable(piece, fields)
        elif piece.kind == "arithmetic":
            result = arithmetic(piece.text, self._number_text)
            fields.add(result) if result is not None else fields.unknown()
        elif self.own_folder and _OWN_FOLDER.fullmatch(piece.text.strip()):
            fields.add(self.own_folder)
        else:
            fields.unknown(many=not piece.quoted)

    def _number_text(self, name: str) -> str | None:
        variable = self.values.get(name)
        return variable.value if variable and isinstance(variable.value, str) else None

    def _expand_variable(self, piece: Piece, fields: _Fields) -> None:
        variable = self.values.get(piece.text)
        operator = piece.operator
        if operator in (":-", "-", ":=", "=") and (variable is None or variable.value in ("", ())):
            self._expand_default(piece, fields, variable is None)
            return
        if operator in (":+", "+"):
            if variable is not None and variable.value not in ("", ()) and not isinstance(variable.value, Unknown):
                for inner in piece.operand:
                    self._expand(inner, fields)
            elif variable is None or isinstance(variable.value, Unknown):
                fields.unknown(many=True)
            return
        if operator not in ("", ":-", "-", ":=", "=", ":?", "?"):
            fields.unknown(many=not piece.quoted)
            return
        if variable is None or isinstance(variable.value, Unknown):
            is_all = piece.index == "@" or piece.text in ("@", "*")
            fields.unknown(many=is_all or not piece.quoted, origin=variable.span if variable else None)
            return
        self._expand_known(piece, variable, fields)

    def _expand_default(self, piece: Piece, fields: _Fields, may_be_set_outside: bool) -> None:
        part = _Fields(piece.span)
        for inner in piece.operand:
            self._expand(inner, part)
        if may_be_set_outside:
            fields.overridable = True
        whole = part.finished()
        fields.extend(whole)
        if piece.operator in (":=", "=") and len(whole) == 1:
            self._put(piece.text, Variable(whole[0].text, piece.span, may_be_set_outside))

    def _expand_known(self, piece: Piece, variable: Variable, fields: _Fields) -> None:
        value = variable.value
        fields.origin = variable.span
        fields.overridable = fields.overridable or variable.overridable
        if isinstance(value, tuple):
            if piece.index in ("@", "*"):
                fields.extend([replace(found, span=piece.span, origin=found.span) for found in value])
            elif piece.index is None or piece.index.isdigit():
                index = int(piece.index[:6]) if piece.index else 0
                known = index < len(value) and not any(found.many for found in value[: index + 1])
                fields.extend([value[index]]) if known else fields.unknown()
            else:
                fields.unknown()
        elif isinstance(value, str):
            if piece.index not in (None, "@", "*", "0"):
                fields.unknown()
            elif piece.quoted:
                fields.add(value)
            else:
                fields.add_split(value)


class _Fields:
    """The words that one word expands to, while they are put together."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.overridable = False
        self.origin: Span | None = None
        self._done: list[Argument] = []
        self._raw: list[str] = []
        self._text: str | None = None
        self._many = False

    def add(self, text: str) -> None:
        """Adds text, with holes, to the current word."""
        text = text if len(self._text or "") + len(text) <= _LONGEST else _HOLE
        self._text = (self._text or "") + text
        self._many = False

    def add_split(self, text: str) -> None:
        """Adds an unquoted variable's text, which is split at blanks."""
        parts = text.split()[:_MOST_WORDS]
        if text[:1].isspace():
            self._end_word()
        for index, part in enumerate(parts):
            if index:
                self._end_word()
            if part == _HOLE and not self._text:
                self.unknown(many=not (index and _is_option(parts[index - 1])))
            else:
                self.add(part)
        if parts and text[-1:].isspace():
            self._end_word()

    def unknown(self, many: bool = False, origin: Span | None = None) -> None:
        """Adds something nobody knows: to the current word, or (`many`) any number of words."""
        self.origin = origin or self.origin
        self._many = many and not self._text
        self._text = (self._text or "") + _HOLE

    def extend(self, arguments: Iterable[Argument]) -> None:
        """Adds words, the first of them to the current one."""
        for index, argument in enumerate(arguments):
            if index:
                self._end_word()
            self.overridable = self.overridable or argument.overridable
            self.origin = argument.origin or self.origin
            if isinstance(argument.text, str):
                self.add(argument.text)
            else:
                if argument.prefix:
                    self.add(argument.prefix)
                self.unknown(argument.many)

    def _end_word(self) -> None:
        text = self._text
        if text is not None:
            self._raw.append(text)
            known: str | Unknown = text
            prefix = ""
            if _HOLE in text:
                known, prefix = UNDECIDABLE, text[: text.index(_HOLE)]
            self._done.append(Argument(known, self.span, self._many, prefix, self.overridable, self.origin))
        self._text, self._many = None, False

    def finished(self) -> list[Argument]:
        """The words."""
        self._end_word()
        return self._done

    def raw(self) -> str:
        """All of it as one text with holes."""
        self._end_word()
        return " ".join(self._raw)


def _quoted(word: Word) -> Word:
    return Word(tuple(replace(piece, quoted=True) for piece in word.pieces), word.span)


def _is_scalar(word: Word) -> bool:
    """Whether it is one plain variable, which usually holds one word."""
    return len(word.pieces) == 1 and word.pieces[0].text not in ("@", "*") and word.pieces[0].index is None


def _wants_value(argument: Argument) -> bool:
    return isinstance(argument.text, str) and _is_option(argument.text)


def _is_option(text: str) -> bool:
    return text.startswith("-") and "=" not in text


def _has_pattern(pieces: tuple[Piece, ...]) -> bool:
    return any(not piece.quoted and _PATTERN.search(piece.text) for piece in pieces)


def _assigned_names(commands: tuple[Command, ...]) -> tuple[dict[int, set[str]], dict[str, int], dict[int, int]]:
    """Names set in each loop; the last command that sets a name; each function's last command."""
    in_loops: dict[int, set[str]] = {}
    last: dict[str, int] = {}
    function_ends: dict[int, int] = {}
    for index, command in enumerate(commands):
        names = [assignment.name for assignment in command.assignments]
        if command.name in ("cd", "pushd", "popd"):
            names.append(DIRECTORY)
        elif command.name in _SETTING:
            names.extend(word.literal for word in command.words[1:] if word.literal)
        for block in command.blocks:
            if block.kind == "loop" and names:
                in_loops.setdefault(block.number, set()).update(names)
            elif block.kind == "function":
                function_ends[block.number] = index
        for name in names:
            last[name] = index
    return in_loops, last, function_ends
