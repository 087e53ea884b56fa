"""Rows of a Python file: what stands between brackets with commas, such as a call's arguments.

A row is taken apart into its items and the gaps between them, so that one way of adding and removing items does
for calls, dicts and lists alike, and each comment stays with the line that it stands on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import libcst as cst

from dslint.fixes.edit import CannotEditError

Gap: TypeAlias = cst.BaseParenthesizableWhitespace
Item: TypeAlias = cst.Arg | cst.BaseDictElement | cst.BaseElement
Holder: TypeAlias = cst.Call | cst.Dict | cst.List | cst.Set

NO_GAP = cst.SimpleWhitespace("")
BLANK = cst.SimpleWhitespace(" ")


@dataclass(frozen=True)
class Row:
    """Items between brackets.

    Attributes:
        items: the items, their commas without what follows them.
        gaps: what stands before each item, and before the closing bracket: one more than items.
        trailing: whether a comma follows the last item.
    """

    items: tuple[Item, ...]
    gaps: tuple[Gap, ...]
    trailing: bool

    def without(self, index: int) -> Row:
        """The row without one of its items: the comment behind it goes along, those above and below stay."""
        items = (*self.items[:index], *self.items[index + 1 :])
        joined = _joined(self.gaps[index], self.gaps[index + 1], index == 0, index == len(self.items) - 1)
        if not items and not _comments(joined):
            joined = NO_GAP
        gaps = (*self.gaps[:index], joined, *self.gaps[index + 2 :])
        return Row(items, gaps, self.trailing and bool(items))

    def with_last(self, item: Item, indent: str) -> Row:
        """The row with a further item at its end, on a line of its own where the last one has one."""
        if not self.items:
            return Row((item,), _gaps_of_one(self.gaps[0], indent), False)
        last = self.gaps[-1]
        before = self.gaps[-2]
        if isinstance(before, cst.ParenthesizedWhitespace):
            first_line = _line_of(last) or _bare_line(before)
            gap: Gap = before.with_changes(first_line=first_line, empty_lines=_empty_lines(last))
            end = _without_comments(last)
        elif _comments(last):
            gap, end = _deeper(last, indent), _without_comments(last)
        else:
            gap, end = _usual(self.gaps[1:-1]), last
        return Row((*self.items, item), (*self.gaps[:-1], gap, end), self.trailing)

    def with_item(self, index: int, item: Item) -> Row:
        """The row with another item in the place of one."""
        return replace(self, items=(*self.items[:index], item, *self.items[index + 1 :]))


def row_of(holder: Holder) -> Row:
    """Takes a call, a dict, a list or a set apart."""
    items = tuple(_items(holder))
    between = [_gap_after(item) for item in items]
    inner = _inner_end(holder)
    first = _inner_start(holder)
    if not items:
        return Row((), (first if _is_something(first) else inner,), False)
    trailing = isinstance(items[-1].comma, cst.Comma)
    last = between[-1] if _is_something(between[-1]) else inner
    return Row(tuple(_bare(item) for item in items), (first, *between[:-1], last), trailing)


def put_back(holder: Holder, row: Row) -> Holder:
    """A call, a dict, a list or a set with other items."""
    last = len(row.items) - 1
    items: list[Item] = []
    for index, item in enumerate(row.items):
        if index < last or row.trailing:
            comma = item.comma if isinstance(item.comma, cst.Comma) else cst.Comma()
            items.append(item.with_changes(comma=comma.with_changes(whitespace_after=row.gaps[index + 1])))
        else:
            items.append(item.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    if not row.items:
        return _with_items(holder, [], NO_GAP, row.gaps[0])
    return _with_items(holder, items, row.gaps[0], NO_GAP if row.trailing else row.gaps[-1])


def index_in(holder: Holder, item: cst.CSTNode) -> int:
    """Which of its items one is."""
    for index, one in enumerate(_items(holder)):
        if one is item:
            return index
    raise CannotEditError("it is no argument and no entry")


def _items(holder: Holder) -> Sequence[Item]:
    return holder.args if isinstance(holder, cst.Call) else holder.elements


def _inner_start(holder: Holder) -> Gap:
    if isinstance(holder, cst.Call):
        return holder.whitespace_before_args
    return (holder.lbracket if isinstance(holder, cst.List) else holder.lbrace).whitespace_after


def _inner_end(holder: Holder) -> Gap:
    if isinstance(holder, cst.Call):
        return NO_GAP
    return (holder.rbracket if isinstance(holder, cst.List) else holder.rbrace).whitespace_before


def _gap_after(item: Item) -> Gap:
    """What follows an item's comma; of a call's last argument without one, what follows it."""
    if isinstance(item.comma, cst.Comma) and _is_something(item.comma.whitespace_after):
        return item.comma.whitespace_after
    return item.whitespace_after_arg if isinstance(item, cst.Arg) else NO_GAP


def _bare(item: Item) -> Item:
    comma = item.comma.with_changes(whitespace_after=NO_GAP) if isinstance(item.comma, cst.Comma) else item.comma
    bare = item.with_changes(comma=comma)
    return bare.with_changes(whitespace_after_arg=NO_GAP) if isinstance(bare, cst.Arg) else bare


def _with_items(holder: Holder, items: list[Item], first: Gap, last: Gap) -> Holder:
    if isinstance(holder, cst.Call):
        if not items:
            return holder.with_changes(args=(), whitespace_before_args=last)
        if not isinstance(items[-1].comma, cst.Comma):
            items = [*items[:-1], items[-1].with_changes(whitespace_after_arg=last)]
        return holder.with_changes(args=items, whitespace_before_args=first)
    if isinstance(holder, cst.List):
        left, right = holder.lbracket, holder.rbracket
        return holder.with_changes(
            elements=items,
            lbracket=left.with_changes(whitespace_after=first),
            rbracket=right.with_changes(whitespace_before=last),
        )
    if isinstance(holder, cst.Set) and not items:
        raise CannotEditError("an empty set can't be written with braces")
    return holder.with_changes(
        elements=items,
        lbrace=holder.lbrace.with_changes(whitespace_after=first),
        rbrace=holder.rbrace.with_changes(whitespace_before=last),
    )


# --- gaps ---


def _is_something(gap: Gap) -> bool:
    return isinstance(gap, cst.ParenthesizedWhitespace) or (
        isinstance(gap, cst.SimpleWhitespace) and bool(gap.value)
    )


def _joined(before: Gap, after: Gap, is_first: bool, is_last: bool) -> Gap:
    """The gap that is left where an item stood between two."""
    on_new_line = isinstance(before, cst.ParenthesizedWhitespace)
    if not isinstance(after, cst.ParenthesizedWhitespace):
        ends = is_last and not _comments(before)
        return after if ends else before
    if isinstance(before, cst.ParenthesizedWhitespace):
        lines = [*before.empty_lines, *after.empty_lines]
        return after.with_changes(first_line=before.first_line, empty_lines=lines)
    if is_first and not on_new_line and not after.empty_lines:
        return before
    if is_first:  # the comment was about what went; what others say of the next item stays
        return after.with_changes(first_line=_bare_line(after))
    return after


def _usual(gaps: Sequence[Gap]) -> Gap:
    """What follows the commas of a row that stands on one line."""
    simple = [gap for gap in gaps if isinstance(gap, cst.SimpleWhitespace)]
    return simple[-1] if simple else BLANK


def _gaps_of_one(gap: Gap, indent: str) -> tuple[Gap, Gap]:
    """What stands before and behind the first item of a row that was empty."""
    return (_deeper(gap, indent), _without_comments(gap)) if _comments(gap) else (NO_GAP, NO_GAP)


def _deeper(gap: Gap, indent: str) -> Gap:
    """A gap with a line end, after which an item stands further in than a closing bracket."""
    assert isinstance(gap, cst.ParenthesizedWhitespace)
    return gap.with_changes(last_line=cst.SimpleWhitespace(gap.last_line.value + indent))


def _line_of(gap: Gap) -> cst.TrailingWhitespace | None:
    return gap.first_line if isinstance(gap, cst.ParenthesizedWhitespace) else None


def _bare_line(gap: cst.ParenthesizedWhitespace) -> cst.TrailingWhitespace:
    return gap.first_line.with_changes(whitespace=NO_GAP, comment=None)


def _empty_lines(gap: Gap) -> list[cst.EmptyLine]:
    return list(gap.empty_lines) if isinstance(gap, cst.ParenthesizedWhitespace) else []


def _without_comments(gap: Gap) -> Gap:
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return gap
    return gap.with_changes(first_line=_bare_line(gap), empty_lines=[])


def _comments(gap: Gap) -> bool:
    """Whether comments stand in a gap."""
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return False
    return gap.first_line.comment is not None or any(line.comment for line in gap.empty_lines)
