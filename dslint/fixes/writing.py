"""Writes mended files: whole or not at all, and never over somebody else's change."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from dslint.documents.source import Source


class CannotWriteError(Exception):
    """A file that was left as it is; the message says why."""


def write(before: Source, after: Source) -> None:
    """Puts the new content of a file in the place of the old one.

    The new content is written beside the file and then takes its name, with the same permissions; where the path
    is a link, the file that it leads to is replaced and the link stays.

    Raises:
        CannotWriteError: the file changed since it was read, or can't be replaced.
    """
    path = os.path.realpath(before.path)
    try:
        _must_be_as_read(path, before)
        _replace(path, after.data)
    except OSError as error:
        raise CannotWriteError(f"can't be written: {error.strerror or error}") from None


def _must_be_as_read(path: str, before: Source) -> None:
    if not os.path.isfile(path):
        raise CannotWriteError("is not there any more")
    if not os.access(path, os.W_OK):
        raise CannotWriteError("no permission to write it")
    with open(path, "rb") as stream:
        if stream.read() != before.data:
            raise CannotWriteError("changed since dslint read it, so it was left alone; run dslint again")


def _replace(path: str, data: bytes) -> None:
    status = os.stat(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        with contextlib.suppress(OSError):  # only root may give files away
            os.chown(temporary, status.st_uid, status.st_gid)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
