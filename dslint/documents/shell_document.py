"""A shell script as it was read: its commands with their words, in text order.

Nothing compares these objects, and the methods for it would be a third of the time it takes to import them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dslint.documents.document import SyntaxProblem
from dslint.documents.source import Source, Span

PieceKind = Literal["literal", "variable", "arithmetic", "substitution"]
BlockKind = Literal["if", "case", "loop", "function", "list", "subshell", "substitution", "group"]


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a word that is expanded in one way.

    Attributes:
        kind: literal text, a variable, `$(( … ))`, or what a command prints (`$( … )`, `<( … )`).
        text: literal text without its quotes; a variable's name (`X`, `1`, `@`); the inside of the others.
        span: where it stands.
        quoted: whether it stands in quotes, which keeps its value one word.
        operator: of `${X:-8}`, the `:-`; empty for a plain variable; any other text is an expansion that is
            kept as it stands.
        operand: of `${X:-8}`, the `8`.
        index: of `${X[@]}`, the `@`; None where there are no brackets.
    """

    kind: PieceKind
    text: str
    span: Span
    quoted: bool = False
    operator: str = ""
    operand: tuple[Piece, ...] = ()
    index: str | None = None


@dataclass(frozen=True, eq=False)
class Word:
    """One word as written, before anything is expanded."""

    pieces: tuple[Piece, ...]
    span: Span

    @property
    def literal(self) -> str | None:
        """Its text; None where something in it is expanded."""
        if all(piece.kind == "literal" for piece in self.pieces):
            return "".join(piece.text for piece in self.pieces)
        return None


@dataclass(frozen=True, eq=False)
class Assignment:
    """`NAME=value`, `NAME+=value`, `NAME=( … )`; a bare `export NAME` has no value.

    Attributes:
        name: the variable.
        value: the word assigned; None for an array and where nothing is assigned.
        array: the elements of an array; None where it is none.
        appends: written `+=`.
        exported: by `export` (or `declare -x`).
        is_element: it sets one element, `NAME[3]=…`.
        span: the whole of it.
    """

    name: str
    value: Word | None
    array: tuple[Word, ...] | None
    appends: bool
    exported: bool
    is_element: bool
    span: Span


@dataclass(frozen=True, eq=False)
class Redirection:
    """`> file`, `2>&1`: the operator without its file descriptor, and its target."""

    operator: str
    target: Word
    span: Span


@dataclass(frozen=True, eq=False)
class HereDocument:
    """A text between `<<EOF` and `EOF`.

    Attributes:
        body: where the text stands, its last line end included.
        quoted: nothing in it is expanded (`<<'EOF'`).
        strips_tabs: leading tabs are taken off (`<<-EOF`).
        pieces: the text with its variables, tabs still there.
        closed: the closing word was found.
    """

    body: Span
    quoted: bool
    strips_tabs: bool
    pieces: tuple[Piece, ...]
    closed: bool


@dataclass(frozen=True, eq=False)
class Block:
    """What a command stands in.

    Attributes:
        kind: the construct; "list" is what follows a `&&` or `||`.
        number: tells two blocks of one kind apart.
        branch: which part of it, counted from 0 (the condition of an `if`, then its `then`, …).
        names: the variables that a loop sets.
    """

    kind: BlockKind
    number: int
    branch: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Command:
    """A simple command.

    Attributes:
        words: its words; empty where it only assigns.
        assignments: those before the command, standing alone, or given to `export`, `declare`, `local`.
        span: from its first to its last word or assignment.
        blocks: what it stands in, outermost first.
        in_pipeline: its input or output is another command's.
        in_background: it is followed by `&`.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    redirections: tuple[Redirection, ...]
    here_documents: tuple[HereDocument, ...]
    span: Span
    blocks: tuple[Block, ...] = ()
    in_pipeline: bool = False
    in_background: bool = False

    @property
    def name(self) -> str | None:
        """The literal first word."""
        return self.words[0].literal if self.words else None

    def inside(self, kind: BlockKind) -> bool:
        """Whether it stands in a block of this kind."""
        return any(block.kind == kind for block in self.blocks)


@dataclass(frozen=True, eq=False)
class Directive:
    """`#SBATCH --nodes=2`: the option with its dashes, and its value (None for a flag)."""

    option: str
    value: str | None
    span: Span


@dataclass(frozen=True, eq=False)
class Comment:
    """A comment from its `#` to the end of the line."""

    text: str
    span: Span


@dataclass(frozen=True, eq=False)
class ShellDocument:
    """One shell script.

    Attributes:
        source: the text it was read from.
        commands: its simple commands in text order, those inside `$( … )` after the one around them.
        directives: its `#SBATCH` lines above the first command, which is where Slurm reads them.
        comments: all comments.
        problem: why nothing could be read.
    """

    source: Source
    commands: tuple[Command, ...]
    directives: tuple[Directive, ...] = ()
    comments: tuple[Comment, ...] = ()
    problem: SyntaxProblem | None = field(default=None)
