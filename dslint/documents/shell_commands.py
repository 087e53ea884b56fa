"""Reads the commands of a shell script: words into commands, commands into the blocks that they stand in."""

from __future__ import annotations

import re
from dataclasses import replace

from dslint.documents.shell_document import (
    Assignment,
    Block,
    BlockKind,
    Command,
    Comment,
    HereDocument,
    Piece,
    Redirection,
    Word,
)
from dslint.documents.shell_words import WordReader, as_text
from dslint.documents.source import Span

_MOST_BLOCKS = 200  # deeper ones are not told apart
_BLANK = re.compile(r"(?:[ \t]|\\\r?\n|\r(?=\n)|\r\Z)+")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|<&|>&|>>|>\||<>|[<>;&|()\n\r]")
_DESCRIPTOR = re.compile(r"(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})(?=[<>])")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^]\n]*\])?(\+?)=")
_TEST_END = re.compile(r"[ \t\n]\]\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECTING = frozenset(["<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<<", "<<", "<<-"])
_DECLARING = frozenset(["export", "declare", "local", "readonly", "typeset"])
_NEVER_FAILING = frozenset(["cd", "export", "set", "mkdir", "echo", "source", ".", "pushd", "module"])
_OPENING: dict[str, BlockKind] = {"if": "if", "while": "loop", "until": "loop", "{": "group"}
_CLOSING: dict[str, BlockKind] = {"fi": "if", "done": "loop", "esac": "case", "}": "group"}


class _Draft:
    """A command being read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.assignments: list[Assignment] = []
        self.redirections: list[Redirection] = []
        self.here_documents: list[HereDocument] = []
        self.in_pipeline = False
        self.start = -1
        self.end = -1
        self.declares = False
        self.exports = False

    def covers(self, span: Span) -> None:
        self.start = span.start if self.start < 0 else self.start
        self.end = span.end


class CommandReader:
    """Reads the commands between two offsets of a text."""

    def __init__(self, text: str, words: WordReader, start: int, end: int) -> None:
        self.text = text
        self.words = words
        self.position = start
        self.end = end
        self.commands: list[Command] = []
        self.comments: list[Comment] = []
        self.outer_blocks: tuple[Block, ...] = ()
        self.blocks_opened = 0
        self._blocks: list[Block] = []
        self._draft = _Draft()
        self._drafts_waiting: list[tuple[_Draft, str, bool, bool]] = []  # for the body of a here-document
        self._finished: list[tuple[int, _Draft]] = []  # commands whose here-documents are still to come
        self._list_start = 0
        self._expects_pattern = False
        self._function_follows = False

    def read(self) -> None:
        """Reads to the end."""
        while self._skip_blank():
            operator = _OPERATOR.match(self.text, self.position, self.end)
            if operator and not self.text.startswith(("<(", ">("), self.position):
                self._operator(operator.group(), operator.end())
            elif self.text[self.position] == "#":
                self._comment()
            elif descriptor := _DESCRIPTOR.match(self.text, self.position, self.end):
                self.position = descriptor.end()
            else:
                self._word()
        self._finish()
        self._end_list()
        self._read_bodies()

    def _skip_blank(self) -> bool:
        blank = _BLANK.match(self.text, self.position, self.end)
        if blank:
            self.position = blank.end()
        return self.position < self.end

    def _comment(self) -> None:
        match = _COMMENT.match(self.text, self.position, self.end)
        assert match is not None
        end = match.end() - 1 if match.group().endswith("\r") else match.end()
        self.comments.append(Comment(as_text(self.text[self.position : end]), Span(self.position, end)))
        self.position = match.end()

    # Operators

    def _operator(self, operator: str, end: int) -> None:
        if operator in _REDIRECTING:
            self._redirection(operator, end)
            return
        self.position = end
        if operator == "(":
            self._open_bracket()
        elif operator == ")":
            self._close_bracket()
        elif operator in ("|", "|&") and self._expects_pattern:
            pass
        elif operator in ("|", "|&"):
            self._draft.in_pipeline = True
            self._finish()
            self._draft.in_pipeline = True
        elif operator in ("&&", "||"):
            self._finish()
            self._begin_list()
        elif operator == "&":
            self._finish()
            self._mark_background()
            self._end_list()
        else:
            self._separator(operator)

    def _separator(self, operator: str) -> None:
        joined = self._draft.in_pipeline and not self._draft.words and operator in "\n\r"
        if joined or (operator in "\n\r" and self._list_is_open()):
            if self._drafts_waiting:
                self._read_bodies()
            return
        self._finish()
        self._end_list()
        if operator.startswith(";") and len(operator) > 1:
            self._expects_pattern = self._next_branch("case")
        if operator in "\n\r" and self._drafts_waiting:
            self._read_bodies()

    def _list_is_open(self) -> bool:
        """Whether a line ended right behind `&&` or `||`."""
        if self._draft.words or self._draft.assignments or not self.commands:
            return False
        before = self.text[max(self.position - 400, 0) : self.position].rstrip(" \t\r\n")
        return before.endswith(("&&", "||"))

    def _open_bracket(self) -> None:
        if self._expects_pattern:
            return
        draft = self._draft
        if len(draft.words) == 1 and not draft.assignments and self._closes_at_once():
            self._draft = _Draft()
            self._function_follows = True
        elif not draft.words and self.text.startswith("(", self.position):
            self._skip_arithmetic()
        else:
            self._finish()
            self._open("function" if self._function_follows else "subshell")
            self._function_follows = False

    def _closes_at_once(self) -> bool:
        self._skip_blank()
        if self.text.startswith(")", self.position):
            self.position += 1
            return True
        return False

    def _close_bracket(self) -> None:
        if self._expects_pattern:
            self._expects_pattern = False
            self._draft = _Draft()
            return
        self._finish()
        self._end_list()
        for block in reversed(self._blocks):
            if block.kind in ("subshell", "function"):
                self._close(block.kind)
                return

    def _skip_arithmetic(self) -> None:
        close = self.words.closing(self.position + 1, "(", ")")
        if close is not None:
            inside = self.text[self.position : close]
            if self._blocks and self._blocks[-1].kind == "loop" and not self._blocks[-1].names:
                names = tuple(dict.fromkeys(_NAME.findall(inside)))
                self._blocks[-1] = replace(self._blocks[-1], names=names)
            self.position = min(close + 2, self.end)

    # Blocks

    def _open(self, kind: BlockKind, names: tuple[str, ...] = ()) -> None:
        self.blocks_opened += 1
        if len(self._blocks) < _MOST_BLOCKS:
            self._blocks.append(Block(kind, self.blocks_opened, names=names))

    def _close(self, kind: BlockKind) -> None:
        """Closes the innermost block of a kind, and what stands open inside it."""
        for index in range(len(self._blocks) - 1, -1, -1):
            found = self._blocks[index].kind
            if found == kind or (kind == "group" and found == "function"):
                del self._blocks[index:]
                return

    def _next_branch(self, kind: BlockKind) -> bool:
        for index in range(len(self._blocks) - 1, -1, -1):
            if self._blocks[index].kind == kind:
                del self._blocks[index + 1 :]
                self._blocks[index] = replace(self._blocks[index], branch=self._blocks[index].branch + 1)
                return True
        return False

    def _begin_list(self) -> None:
        """Behind `&&` or `||`: what follows may not run, unless nothing before it can fail."""
        if self._blocks and self._blocks[-1].kind == "list":
            return
        before = self.commands[self._list_start :]
        if not before or any(command.words and command.name not in _NEVER_FAILING for command in before):
            self._open("list")

    def _end_list(self) -> None:
        if self._blocks and self._blocks[-1].kind == "list":
            self._blocks.pop()
        self._list_start = len(self.commands)

    def _mark_background(self) -> None:
        for index in range(self._list_start, len(self.commands)):
            self.commands[index] = replace(self.commands[index], in_background=True)

    # Words

    def _word(self) -> None:
        word, end = self.words.word(self.position)
        end = min(max(end, self.position + 1), self.end)
        self.position = end
        text = word.literal if len(word.pieces) == 1 and not word.pieces[0].quoted else None
        draft = self._draft
        if self._expects_pattern:
            if text == "esac":
                self._expects_pattern = False
                self._close("case")
            return
        if not draft.words:
            if text is not None and not draft.assignments and self._keyword(text):
                return
            if self._assignment(word):
                return
            draft.declares = text in _DECLARING
            draft.exports = text == "export"
        elif draft.declares:
            if text is not None and text.startswith("-"):
                draft.exports = draft.exports or "x" in text
            elif self._assignment(word) or self._bare_name(text, word.span):
                return
        if word.pieces:
            draft.words.append(word)
            draft.covers(word.span)

    def _keyword(self, text: str) -> bool:
        if text in _OPENING:
            kind: BlockKind = "function" if self._function_follows and text == "{" else _OPENING[text]
            self._function_follows = False
            self._open(kind)
        elif text in _CLOSING:
            self._end_list()
            self._close(_CLOSING[text])
        elif text in ("then", "elif", "else"):
            self._end_list()
            self._next_branch("if")
        elif text in ("for", "select"):
            self._loop_header()
        elif text == "case":
            self._case_header()
        elif text == "function":
            self._function_header()
        elif text == "[[":
            self._skip_test()
        elif text not in ("do", "!", "time", "coproc"):
            return False
        return True

    def _loop_header(self) -> None:
        names: tuple[str, ...] = ()
        if self._skip_blank() and (match := _NAME.match(self.text, self.position, self.end)):
            names = (match.group(),)
            self.position = match.end()
        self._open("loop", names)
        while self._skip_blank() and self.text[self.position] not in ";\n&|()<>":
            _, end = self.words.word(self.position)
            self.position = min(max(end, self.position + 1), self.end)

    def _case_header(self) -> None:
        for _ in range(2):  # the word, and `in`
            while self._skip_blank() and self.text[self.position] == "\n":
                self.position += 1
            if self.position < self.end:
                _, end = self.words.word(self.position)
                self.position = min(max(end, self.position), self.end)
        self._open("case")
        self._expects_pattern = True

    def _function_header(self) -> None:
        if self._skip_blank():
            _, end = self.words.word(self.position)
            self.position = min(max(end, self.position), self.end)
            self._skip_blank()
            if self.text.startswith("(", self.position):
                self.position += 1
                self._closes_at_once()
        self._function_follows = True

    def _skip_test(self) -> None:
        """Skips `[[ … ]]`, whose operators are none of the shell's."""
        close = _TEST_END.search(self.text, self.position - 1, min(self.position + 4000, self.end))
        end = close.end() if close else self.words.line_end(self.position)
        word = Word(
            (Piece("literal", "[[", Span(self.position - 2, self.position)),), Span(self.position - 2, end)
        )
        self._draft.words.append(word)
        self._draft.covers(word.span)
        self.position = end

    def _bare_name(self, text: str | None, span: Span) -> bool:
        if text is None or not _NAME.fullmatch(text):
            return False
        exports = self._draft.exports
        self._draft.assignments.append(Assignment(text, None, None, False, exports, False, span))
        self._draft.covers(span)
        return True

    def _assignment(self, word: Word) -> bool:
        match = _ASSIGNMENT.match(self.text, word.span.start, word.span.end)
        if match is None and self._draft.declares and word.pieces and word.pieces[0].kind == "literal":
            return self._quoted_assignment(word)
        if match is None:
            return False
        name, element, plus = match.groups()
        array: tuple[Word, ...] | None = None
        value: Word | None = None
        end = word.span.end
        if match.end() == end and self.text.startswith("(", end):
            array = self._array(end + 1)
            end = self.position
        else:
            value = _without_start(word, match.end())
        span = Span(word.span.start, end)
        exports = self._draft.exports
        self._draft.assignments.append(
            Assignment(name, value, array, bool(plus), exports, element is not None, span)
        )
        self._draft.covers(span)
        return True

    def _quoted_assignment(self, word: Word) -> bool:
        """`export "A=1"`."""
        first = word.pieces[0]
        match = _ASSIGNMENT.match(first.text)
        if match is None or match.group(2):
            return False
        rest = replace(first, text=first.text[match.end() :])
        value = Word((rest, *word.pieces[1:]), word.span)
        exports = self._draft.exports
        self._draft.assignments.append(
            Assignment(match.group(1), value, None, bool(match.group(3)), exports, False, word.span)
        )
        self._draft.covers(word.span)
        return True

    def _array(self, start: int) -> tuple[Word, ...]:
        elements: list[Word] = []
        self.position = start
        while self._skip_blank():
            character = self.text[self.position]
            if character == ")":
                self.position += 1
                break
            if character == "#":
                self._comment()
            elif character in "\n\r;&|<>(":
                self.position += 1
            else:
                word, end = self.words.word(self.position)
                self.position = min(max(end, self.position + 1), self.end)
                elements.append(word)
        return tuple(elements)

    # Redirections

    def _redirection(self, operator: str, end: int) -> None:
        start = self.position
        self.position = end
        if not self._skip_blank():
            return
        target, end = self.words.word(self.position)
        if not target.pieces:
            return
        self.position = min(end, self.end)
        if operator in ("<<", "<<-"):
            closing = "".join(piece.text for piece in target.pieces)
            quoted = any(piece.quoted for piece in target.pieces)
            self._drafts_waiting.append((self._draft, closing, quoted, operator == "<<-"))
        else:
            self._draft.redirections.append(Redirection(operator, target, Span(start, self.position)))

    def _read_bodies(self) -> None:
        waiting, self._drafts_waiting = self._drafts_waiting, []
        for index, (draft, closing, quoted, strips) in enumerate(waiting):
            if index and self.text.startswith("\n", self.position):
                self.position += 1  # behind the closing word of the one before
            draft.here_documents.append(self._body(closing, quoted, strips))
        owners = {id(draft): draft for draft, *_ in waiting}
        for index, draft in [(i, d) for i, d in self._finished if id(d) in owners]:
            self.commands[index] = replace(self.commands[index], here_documents=tuple(draft.here_documents))
        self._finished.clear()

    def _body(self, closing: str, quoted: bool, strips: bool) -> HereDocument:
        start = position = min(self.position, self.end)
        wanted = closing.encode("utf-8", "replace").decode("latin-1")
        closed = False
        while position < self.end:
            newline = self.text.find("\n", position, self.end)
            line_end = self.end if newline < 0 else newline
            line = self.text[position:line_end].removesuffix("\r")
            if (line.lstrip("\t") if strips else line) == wanted:
                closed = True
                self.position = line_end
                break
            position = line_end + 1
        end = min(position, self.end)
        if not closed:
            self.position = self.end
        span = Span(start, end)
        literal = (Piece("literal", as_text(self.text[start:end]), span, True),)
        return HereDocument(span, quoted, strips, literal if quoted else self.words.body(start, end), closed)

    def _finish(self) -> None:
        """Ends the command being read."""
        draft, self._draft = self._draft, _Draft()
        if not draft.words and not draft.assignments:
            return
        command = Command(
            tuple(draft.words),
            tuple(draft.assignments),
            tuple(draft.redirections),
            tuple(draft.here_documents),
            Span(draft.start, draft.end),
            (*self.outer_blocks, *self._blocks),
            draft.in_pipeline,
        )
        if any(waiting is draft for waiting, *_ in self._drafts_waiting):
            self._finished.append((len(self.commands), draft))
        self.commands.append(command)


def _without_start(word: Word, start: int) -> Word:
    """The part of a word from an offset that lies in its first, plain piece."""
    first = word.pieces[0]
    rest = word.pieces[1:]
    if start < first.span.end:  # what stands before it is ASCII
        cut = replace(first, text=first.text[start - first.span.start :], span=Span(start, first.span.end))
        rest = (cut, *rest)
    return Word(rest, Span(start, word.span.end))
