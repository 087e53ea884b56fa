"""The smallest edit between two texts, kept at the place that was meant."""

from __future__ import annotations

from dslint.documents.source import Span
from dslint.fixes.edit import Edit


def difference(old: bytes, new: bytes, near: Span, whole: bool = False) -> list[Edit]:
    """The one edit that turns a text into another; none where they are equal.

    Args:
        old: the text.
        new: what it becomes.
        near: where the change was made. `a, a` without one of its `a`s may have lost either; the edit takes the
            one that stands here, so that a second change of the other one goes along with it.
        whole: give all of `near` in the edit, so that another change inside of it is seen to overlap.
    """
    if old == new:
        return []
    start = _common_start(old, new)
    end = _common_end(old, new)
    spare = start + end - min(len(old), len(new))
    if spare > 0:  # something only went, or only came: it may slide
        place = min(max(near.start, start - spare), start)
        end, start = end - (place - start + spare), place
    start, end = _between_characters(old, new, start, end)
    if whole:
        start, end = min(start, near.start), min(end, len(old) - near.end)
    return [Edit(Span(start, len(old) - end), new[start : len(new) - end])]


def _common_start(old: bytes, new: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: bytes, new: bytes) -> int:
    """How many bytes both end with."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle :] == new[len(new) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def _between_characters(old: bytes, new: bytes, start: int, end: int) -> tuple[int, int]:
    """Both borders moved outwards until they cut neither a character nor the two halves of a line end."""
    while start > 0 and (_is_inside(old, start) or _is_inside(new, start)):
        start -= 1
    while end > 0 and (_is_inside(old, len(old) - end) or _is_inside(new, len(new) - end)):
        end -= 1
    return start, end


def _is_inside(text: bytes, offset: int) -> bool:
    """Whether an offset stands between the bytes of one character, or of one line end."""
    if offset >= len(text):
        return False
    return 0x80 <= text[offset] < 0xC0 or text[offset - 1 : offset + 1] == b"\r\n"
