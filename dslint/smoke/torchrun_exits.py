"""With which exit codes ranks ended, as torchrun tells it (torch/distributed/elastic/multiprocessing/errors)."""

from __future__ import annotations

import re

_FAILURE = re.compile(r"^ *rank +: (\d{1,6}) \(.*\n *exitcode +: (-?\d{1,6}) \(", re.MULTILINE)


def exit_codes(printed: str, ranks: int) -> dict[int, int]:
    """The exit code of each rank, negative for a signal; none where torchrun tells of no failure.

    It lists the ranks that failed; the others ended without.
    """
    failed = {int(rank): int(code) for rank, code in _FAILURE.findall(printed)}
    return {rank: failed.get(rank, 0) for rank in range(ranks)} if failed else {}
