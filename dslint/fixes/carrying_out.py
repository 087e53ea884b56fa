"""Makes edits of the changes that a fix asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dslint.documents.config_reader import read_config
from dslint.documents.discover import CODE_ENDINGS
from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.rulebook.change import (
    Change,
    CodeChange,
    DeleteCode,
    DeleteKey,
    InsertCode,
    KeyChange,
    RenameKey,
    ReplaceCode,
    SetArguments,
    SetKey,
    WritePlainly,
    file_of,
)


def changed_files(changes: Sequence[Change]) -> Iterator[tuple[Source, Source]]:
    """Each file that changes touch, as it was and as it becomes.

    Raises:
        CannotEditError: if a change can't be made in the text.
    """
    for source in _each_once(map(file_of, changes)):
        of_file = [change for change in changes if file_of(change) is source]
        yield source, _changed(source, of_file)


def _each_once(sources: Iterable[Source]) -> list[Source]:
    found: list[Source] = []
    for source in sources:
        if not any(source is known for known in found):
            found.append(source)
    return found


def _changed(source: Source, changes: Sequence[Change]) -> Source:
    if source.path.endswith(".ipynb"):
        raise CannotEditError("notebooks are not edited")
    if not all(isinstance(change, KeyChange) for change in changes) or _is_code(source):
        return applied(source, [edit for change in changes for edit in _edits(change)])
    for change in changes:  # one after the other, since two of them may touch the same section
        assert isinstance(change, KeyChange)
        now = replace(change, document=_read_again(change.document, source))
        source = applied(source, _edits(now))
    return source


def _is_code(source: Source) -> bool:
    return source.path.lower().endswith(CODE_ENDINGS)


def _read_again(document: Document, source: Source) -> Document:
    return read_yaml(source) if document.language == "yaml" else read_config(source)


def _edits(change: Change) -> list[Edit]:
    if isinstance(change, KeyChange):
        return _edits_of_keys(change)
    if isinstance(change, WritePlainly):
        from dslint.fixes.json_text.plainly import written_anew

        return written_anew(change.document)
    if change.source.path.endswith(".py"):
        return _edits_of_python(change)
    return _edits_of_shell(change)


def _edits_of_keys(change: KeyChange) -> list[Edit]:
    document = change.document
    if document.language == "python" and document.source.path.endswith(".py"):
        return _edits_of_a_dict(change)
    if document.language == "yaml":
        from dslint.fixes.yaml_text import edits as writer
    else:
        from dslint.fixes.json_text import edits as writer  # type: ignore[no-redef]
    if isinstance(change, SetKey):
        return writer.set_key(document, change.path, change.value)
    if isinstance(change, DeleteKey):
        return writer.delete_key(document, change.path, change.key)
    if isinstance(change, RenameKey):
        return writer.rename_key(document, change.path, change.name)
    return writer.move_key(document, change.path, change.to)


def _edits_of_a_dict(change: KeyChange) -> list[Edit]:
    from dslint.fixes.python_code import edits

    if isinstance(change, SetKey):
        return edits.set_key(change.document, change.path, change.value)
    if isinstance(change, DeleteKey):
        return edits.delete_key(change.document, change.path)
    if isinstance(change, RenameKey):
        return edits.rename_key(change.document, change.path, change.name)
    raise CannotEditError("an entry of a dict in a script is not moved")


def _edits_of_python(change: CodeChange) -> list[Edit]:
    from dslint.fixes.python_code import edits

    if isinstance(change, ReplaceCode):
        return edits.replace_code(change.source, change.span, change.text)
    if isinstance(change, DeleteCode):
        return edits.delete_code(change.source, change.span)
    if isinstance(change, InsertCode):
        return edits.insert_code(change.source, change.span, change.text, change.after)
    if isinstance(change, SetArguments):
        return edits.set_arguments(change.source, change.span, change.arguments)
    return edits.unguard(change.source, change.span)


def _edits_of_shell(change: CodeChange) -> list[Edit]:
    from dslint.fixes.shell_words import edits

    if isinstance(change, ReplaceCode):
        return edits.replace_word(change.source, change.span, change.text)
    if isinstance(change, DeleteCode):
        return edits.delete_words(change.source, change.span)
    if isinstance(change, InsertCode):
        return edits.insert_word(change.source, change.span, change.text, change.after)
    raise CannotEditError("a shell script has no calls")
