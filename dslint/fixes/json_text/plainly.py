"""Writes a config anew as strict JSON, for those who read nothing else."""

from __future__ import annotations

import json
import re

from dslint.documents.document import Document
from dslint.documents.source import Span
from dslint.fixes.edit import CannotEditError, Edit

INDENTED = re.compile(rb"^([ \t]+)\S", re.MULTILINE)


def written_anew(document: Document) -> list[Edit]:
    """The edit that writes the whole file again: the same values, no comments.

    The first indentation and the line ends stay those of the file.

    Raises:
        CannotEditError: the file can't be read, or JSON has no way to say a value.
    """
    if document.problem is not None or document.placeholders:
        raise CannotEditError("the file can't be read as a whole")
    data = document.source.data
    found = INDENTED.search(data)
    try:
        text = json.dumps(
            document.value, indent=found.group(1).decode() if found else 2, ensure_ascii=False, allow_nan=False
        )
    except ValueError:
        raise CannotEditError("JSON has no way to say one of its values") from None
    newline = "\r\n" if b"\r\n" in data else "\n"
    return [Edit(Span(0, len(data)), (text + "\n").replace("\n", newline).encode())]
