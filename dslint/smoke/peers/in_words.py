"""Where the ranks of a run stand, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dslint.smoke.peers.standing import DIED, ENDED, RAISED, RUNS, SAVING, UNKNOWN, WAITS, Standing


def headline(standings: Sequence[Standing], *, still: bool = False) -> str:
    """Where all ranks stand, and what that means; empty if nobody could tell.

    Args:
        standings: those of all ranks.
        still: whether it is known that none of them did anything any more.
    """
    here = [one for one in standings if one.state in (WAITS, RUNS)]
    if not here:
        return ""
    gone = [one for one in standings if one.state in (ENDED, DIED, RAISED)]
    waiting = [one for one in here if one.state == WAITS]
    if gone:
        return "; ".join([*_each(gone), *_each_beside_others(here, gone)])
    if len(standings) == 1:
        return f"it {_stands(here)} {place(here[0])}"
    if len(here) == len(standings) and len(_groups(here)) == 1:
        return _all_in_one_place(here, still=still)
    if len(waiting) == len(here):
        unknown = [one for one in standings if one.state == UNKNOWN]
        where = "in different places" if len(_groups(waiting)) > 1 else "in one place"
        return "; ".join([f"the ranks wait for each other {where}: {'; '.join(_each(waiting))}", *_each(unknown)])
    others = [one for one in standings if one.state != WAITS]
    return "; ".join([*_each(others), *_each_beside_others(waiting, others)])


def places(standings: Sequence[Standing]) -> str:
    """Where the ranks stand, one group after the other; empty if nobody could tell."""
    return "; ".join(_each([one for one in standings if one.state != UNKNOWN]))


def left_behind(standings: Sequence[Standing]) -> str:
    """What became of ranks whose peers were gone: who ended, and who waited for them until then."""
    gone = [one for one in standings if one.state in (ENDED, DIED, RAISED)]
    waited = [one for one in standings if one.state == WAITS]
    told = [f"{_names(group)} waited for {_them(gone)} {place(group[0])}" for group in _groups(waited)]
    return "; ".join([*_each(gone), *told])


def line_of(one: Standing) -> str:
    """The user's line, with a space before; empty where there is none."""
    return "" if one.file is None else f" at {one.file}:{one.line}"


def place(one: Standing) -> str:
    """The place of one rank, for the middle of a sentence."""
    calls = f", called by {one.through}" if one.through else ""
    if one.collective is not None:
        return f"in {one.collective}{calls}{_at(one)}"
    if one.state == WAITS and one.inside is not None:
        return f"at the end of a collective ({one.inside}){calls}{_at(one)}"
    if one.inside is not None:
        return f"in {one.inside}{calls}{_at(one)}"
    return _at(one).strip()


def ranks_told(ranks: Sequence[int]) -> str:
    """The numbers of some ranks in words: "rank 0", "ranks 1 to 3", "ranks 0, 2 and 5"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _at(one: Standing) -> str:
    if one.function == SAVING:
        return f" in {SAVING}"
    if one.file is None:
        return ""
    code = f" (`{one.code}`)" if one.code and one.inside is None and one.collective is None else ""
    back = f", called from {one.called_from}" if one.called_from else ""
    return f" at {one.file}:{one.line}{code}{back}"


def _groups(standings: Sequence[Standing]) -> list[list[Standing]]:
    """Ranks that stand at the same place, by the lowest of them."""
    groups: dict[tuple[object, ...], list[Standing]] = {}
    for one in standings:
        groups.setdefault((one.state, place(one), one.trail), []).append(one)
    return list(groups.values())


def _each(standings: Sequence[Standing]) -> Iterator[str]:
    groups = _groups(standings)
    for group in groups:
        yield f"{_names(group)} {_what(group)}{_by_way_of(group, groups)}"


def _each_beside_others(standings: Sequence[Standing], others: Sequence[Standing]) -> Iterator[str]:
    """Those that wait, where others were named before that they wait for."""
    for group in _groups(standings):
        verb = "waits" if len(group) == 1 else "wait"
        what = f"{verb} for {_them(others)} {place(group[0])}" if group[0].state == WAITS else _what(group)
        yield f"{_names(group)} {what}"


def _what(group: Sequence[Standing]) -> str:
    """What a rank does, or all of a group do."""
    one, several = group[0], len(group) > 1
    have = "have" if several else "has"
    if one.state == ENDED:
        return f"{have} ended{_at(one)}"
    if one.state == DIED:
        return "died"
    if one.state == RAISED:
        return f"{have} raised{_at(one)}"
    if one.state == UNKNOWN:
        return f"{'do' if several else 'does'} not tell where {'they stand' if several else 'it stands'}"
    if one.state == RUNS:
        return f"{'are' if several else 'is'} outside of any collective, {place(one)}"
    return place(one)


def _by_way_of(group: Sequence[Standing], groups: Sequence[Sequence[Standing]]) -> str:
    """Where the ways of groups part that stand in the same line and the same collective."""
    one = group[0]
    alike = [other[0] for other in groups if other is not group and place(other[0]) == place(one)]
    for other in alike:
        for mine, its in zip(one.trail[::-1], other.trail[::-1], strict=False):
            if mine != its:
                return f" (by way of {mine})"
    return ""


def _all_in_one_place(here: Sequence[Standing], *, still: bool) -> str:
    who = "both ranks stand" if len(here) == 2 else f"all {len(here)} ranks stand"
    looks_like = "none of them goes on" if still else "it looks like a slow or endless step, not like a mismatch"
    return f"{who} in the same place, {place(here[0])}, and {looks_like}"


def _names(group: Sequence[Standing]) -> str:
    return ranks_told([one.rank for one in group])


def _them(gone: Sequence[Standing]) -> str:
    return "it" if len(gone) == 1 else "them"


def _stands(here: Sequence[Standing]) -> str:
    return "waited" if here[0].state == WAITS else "stood"
