"""Did-you-mean for keys, strict enough to stand behind an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_HABITS = {
    "max_grad_norm": "gradient_clipping",
    "grad_clip": "gradient_clipping",
    "clip_grad": "gradient_clipping",
    "train_batch_size_per_gpu": "train_micro_batch_size_per_gpu",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "per_device_train_batch_size": "train_micro_batch_size_per_gpu",
    "init_scale_power": "initial_scale_power",
    "thread_count": "intra_op_parallelism",
    "zero_stage": "zero_optimization",
}
"""Names from other tools and older texts, with DeepSpeed's word for the same thing."""


@dataclass(frozen=True)
class Near:
    """A known key that somebody may have meant.

    Attributes:
        key: the known key.
        is_slip: whether the two differ by a slip of the keys or another spelling only, so that nothing else
            can be meant.
    """

    key: str
    is_slip: bool


def near_name(name: str, known: Iterable[str]) -> Near | None:
    """The known key that somebody meant: a slip of the keys, another spelling, a piece, another tool's word.

    Names that differ in a digit (fp16, fp32) are different things, never slips.
    """
    candidates = [key for key in known if key != name]
    slip = _slip(name, candidates)
    if slip is not None:
        return Near(slip, is_slip=True)
    if _HABITS.get(name) in candidates:
        return Near(_HABITS[name], is_slip=False)
    return None


def advice(near: Near | None) -> str:
    """The end of a message: what was probably meant; empty where nothing is near."""
    return f": did you mean `{near.key}`?" if near is not None else ""


def _slip(name: str, candidates: list[str]) -> str | None:
    plain = _plain(name)
    for key in candidates:
        if _plain(key) == plain:
            return key
    scored = [(_distance(plain, _plain(key)), key) for key in candidates if _digits(key) == _digits(name)]
    scored = [(distance, key) for distance, key in scored if distance <= _allowed(min(len(name), len(key)))]
    if scored:
        return min(scored)[1]
    return _whole_of_piece(plain, candidates)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def _allowed(length: int) -> int:
    """How many slips a name of this length may have."""
    return 0 if length < 5 else 1 if length < 9 else 2


def _whole_of_piece(plain: str, candidates: list[str]) -> str | None:
    """The one key that the name is most of (`micro_batch_size_per_gpu`)."""
    whole = [key for key in candidates if plain in _plain(key) and len(plain) >= 0.75 * len(_plain(key))]
    return whole[0] if len(whole) == 1 else None


def _distance(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; 3 stands for more."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last_two, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (a != b))
            if last_two and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last_two[j - 2] + 1)
            row.append(cost)
    return min(row[-1], 3)
