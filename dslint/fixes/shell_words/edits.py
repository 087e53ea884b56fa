"""Changes of the words of a shell script.

Each edit is tried with a stand-in first, which shows what the place means to the shell; the script that comes out
is read again, and where it says anything else than it should, `CannotEditError` is raised.
"""

from __future__ import annotations

from dslint.documents.shell_document import Assignment, Command, Comment, ShellDocument
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.shell_words.layout import cut_out, put_behind, whole_line
from dslint.fixes.shell_words.meaning import Token, tokens_of
from dslint.fixes.shell_words.quoting import as_words, inside_quotes, meanings_of
from dslint.fixes.shell_words.trial import Trial, hold_against, stand_in_for


def replace_word(source: Source, span: Span, text: str) -> list[Edit]:
    """Puts another word in the place of a word, of a piece of one, or of an option with its value."""
    if "\n" in text or "\r" in text:
        raise CannotEditError("a word can't hold a line end")
    document = _read(source)
    comment = _comment_at(document, span)
    if comment is not None:
        return _replace_in_comment(source, document, span, text)
    found = _assignment_at(document, span)
    if found is not None:
        return _replace_value(source, found[1], text)
    inside = _words_in(document, span)
    if any(token.is_list for token in inside):
        raise CannotEditError("it may stand for several words")
    trial = Trial(source, span)
    new = as_words(text) if len(inside) > 1 else inside_quotes(trial.quotes, text)
    says = meanings_of(trial.quotes, new, text)
    edits = [Edit(span, new.encode("utf-8"))]
    hold_against(source, edits, trial.with_words(says))
    return edits


def delete_words(source: Source, span: Span) -> list[Edit]:
    """Takes words out, with a blank, or with the line that they have for themselves."""
    document = _read(source)
    comment = _comment_at(document, span)
    if comment is not None:
        return _delete_directive(source, document, span)
    found = _assignment_at(document, span)
    if found is not None:
        return _delete_assignment(source, document, *found)
    inside = _words_in(document, span)
    if inside and inside[0].is_expanded:
        raise CannotEditError("it comes from a variable, which may hold more")
    if len(inside) == 1 and inside[0].role in ("word", "element"):
        span = inside[0].span  # with its quotes
    trial = Trial(source, span)
    edits = [Edit(cut_out(source.data, span, trial.separated_by_lines), b"")]
    hold_against(source, edits, trial.with_words([]))
    return edits


def insert_word(source: Source, span: Span, text: str, after: bool = True) -> list[Edit]:
    """Puts a further word, or an option with its value, behind the word at a span, or before it."""
    document = _read(source)
    if _comment_at(document, span) is not None:
        raise CannotEditError("a comment holds no words")
    around = _word_around(document, span)
    new = as_words(text)
    position = around.end if after else around.start
    at = Span(position, position)
    stand_in = stand_in_for(source)
    trial = Trial(source, at, f" {stand_in}" if after else f"{stand_in} ", stand_in)
    data = put_behind(source.data, position, new, trial.separated_by_lines) if after else f"{new} ".encode()
    edits = [Edit(at, data)]
    hold_against(source, edits, trial.with_words(meanings_of("", new, text)))
    return edits


def _read(source: Source) -> ShellDocument:
    document = read_shell(source)
    if document.problem is not None:
        raise CannotEditError(f"the file {document.problem.message}")
    return document


def _words_in(document: ShellDocument, span: Span) -> list[Token]:
    """The words inside a span, or the one that consists of it but for quotes."""
    return [
        token
        for token in tokens_of(document)
        if token.pieces and token.role != "here" and all(_is_inside(piece.span, span) for piece in token.pieces)
    ]


def _word_around(document: ShellDocument, span: Span) -> Span:
    """The word of a command, or the element of an array, that holds a span; the span itself elsewhere."""
    around = [
        token.span
        for token in tokens_of(document)
        if token.role in ("word", "element") and token.span.start <= span.start < span.end <= token.span.end
    ]
    return min(around, key=lambda one: one.end - one.start, default=span)


def _is_inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


# --- assignments ---


def _assignment_at(document: ShellDocument, span: Span) -> tuple[Command, Assignment] | None:
    for command in document.commands:
        for assignment in command.assignments:
            if assignment.span == span:
                return command, assignment
    return None


def _replace_value(source: Source, assignment: Assignment, text: str) -> list[Edit]:
    name, equals, value = text.partition("=")
    if not equals or name != assignment.name or assignment.value is None or not assignment.value.pieces:
        raise CannotEditError("only the value of a variable can be changed")
    return replace_word(source, assignment.value.span, value)


def _delete_assignment(
    source: Source, document: ShellDocument, command: Command, assignment: Assignment
) -> list[Edit]:
    """`NAME=value` before a command, or a command that does nothing else, with its line."""
    is_all = len(command.assignments) == 1 and not command.redirections and len(command.words) < 2
    is_all = is_all and command.name in (None, "export", "declare", "local", "readonly", "typeset")
    span = assignment.span
    if is_all:
        return _delete_command(source, document, command)
    edits = [Edit(cut_out(source.data, span, False), b"")]
    gone = [token for token in tokens_of(document) if _is_inside(token.span, span) and token.role != "start"]
    kept = [token.content for token in tokens_of(document) if token not in gone]
    hold_against(source, edits, kept)
    return edits


def _delete_command(source: Source, document: ShellDocument, command: Command) -> list[Edit]:
    line = whole_line(source.data, command.span)
    behind = source.data[command.span.end : line.end].strip()
    if source.data[line.start : command.span.start].strip() or (behind and not behind.startswith(b"#")):
        raise CannotEditError("other commands stand in its line")
    edits = [Edit(line, b"")]
    kept = [token.content for token in tokens_of(document) if not line.start <= token.span.start < line.end]
    hold_against(source, edits, kept)
    return edits


# --- comments ---


def _comment_at(document: ShellDocument, span: Span) -> Comment | None:
    return next((one for one in document.comments if _is_inside(span, one.span)), None)


def _replace_in_comment(source: Source, document: ShellDocument, span: Span, text: str) -> list[Edit]:
    """A directive for Slurm stays one, with the same option or another."""
    edits = [Edit(span, text.encode("utf-8"))]
    changed = read_shell(applied(source, edits))
    before = [token.content for token in tokens_of(document) if not _is_inside(span, token.span)]
    place = Span(span.start, span.start)
    behind = [token.content for token in tokens_of(changed) if not _is_inside(place, token.span)]
    if before != behind or len(changed.directives) != len(document.directives):
        raise CannotEditError("the script would say something else than it should")
    return edits


def _delete_directive(source: Source, document: ShellDocument, span: Span) -> list[Edit]:
    if all(directive.span != span for directive in document.directives):
        raise CannotEditError("a comment holds no words")
    edits = [Edit(whole_line(source.data, span), b"")]
    hold_against(source, edits, [token.content for token in tokens_of(document) if token.span != span])
    return edits
