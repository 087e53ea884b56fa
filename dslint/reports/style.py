"""Colours for a terminal, and none anywhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

_SEVERITY_COLOURS = {"error": "1;31", "warning": "1;33", "hint": "1;36"}


@dataclass(frozen=True)
class Style:
    """How text is dressed; `colour` is False where codes would only be noise."""

    colour: bool

    def severity(self, severity: str, text: str) -> str:
        """Text in the colour of a severity."""
        return self._dress(_SEVERITY_COLOURS[severity], text)

    def bold(self, text: str) -> str:
        """Text that stands out."""
        return self._dress("1", text)

    def dim(self, text: str) -> str:
        """Text that stands back."""
        return self._dress("2", text)

    def blue(self, text: str) -> str:
        """The lines and numbers of a frame."""
        return self._dress("34", text)

    def green(self, text: str) -> str:
        """Good news."""
        return self._dress("32", text)

    def red(self, text: str) -> str:
        """What goes away."""
        return self._dress("31", text)

    def _dress(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text


def style_for(stream: TextIO) -> Style:
    """Colours on a terminal, unless NO_COLOR is set (https://no-color.org); FORCE_COLOR asks for them."""
    if os.environ.get("NO_COLOR"):
        return Style(colour=False)
    if os.environ.get("FORCE_COLOR"):
        return Style(colour=True)
    return Style(colour=stream.isatty() and os.environ.get("TERM") != "dumb")
