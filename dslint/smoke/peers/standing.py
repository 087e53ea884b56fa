"""Where a rank stands: in which call of the user's script, and in which collective, by its Python stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dslint.smoke.peers.stacks import Frame, frames_of

WAITS, RUNS, RAISED, ENDED, DIED, UNKNOWN = "waits", "runs", "raised", "ended", "died", "unknown"
"""What a rank does: it is in a collective, or was until its peers were gone; it is elsewhere; it has raised; it
has come to its end; it died without either; nobody could tell."""

SAVING = "the save that dslint tries"
"""Stands for the user's line where the script has taken its steps already."""

_COLLECTIVES = (
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/_functional_collectives.py",
    "torch/distributed/nn/functional.py",
)
_COMMUNICATION = (
    *_COLLECTIVES,
    "torch/distributed/c10d_logger.py",
    "deepspeed/comm/comm.py",
    "deepspeed/comm/torch.py",
)
_WAITING = ("deepspeed/runtime/", "deepspeed/comm/", "torch/distributed/")
"""Where a function `wait` waits for a collective that was begun before."""

_OWNERS = {
    "deepspeed/__init__.py": "deepspeed.",
    "deepspeed/comm/comm.py": "deepspeed.comm.",
    "deepspeed/runtime/engine.py": "engine.",
    "deepspeed/runtime/pipe/engine.py": "engine.",
    "accelerate/accelerator.py": "accelerator.",
    "transformers/trainer.py": "trainer.",
}
"""What people write before a function's name, by its file."""

_PASSES = {
    ("torch/nn/modules/module.py", "forward"): "the forward pass",
    ("deepspeed/runtime/engine.py", "forward"): "the forward pass",
    ("torch/_tensor.py", "backward"): "the backward pass",
    ("torch/autograd/__init__.py", "backward"): "the backward pass",
    ("torch/utils/data/dataloader.py", "__next__"): "the data loader",
}

_SAVING_FILE = "/dslint/smoke/script/saving.py"

_MODULE_CALL = ("torch/nn/modules/module.py", ("_wrapped_call_impl", "_call_impl"))


@dataclass(frozen=True)
class Standing:
    """The place at which a rank stood, or was left, when all were ended.

    Attributes:
        rank: its number.
        state: one of WAITS, RUNS, RAISED, ENDED, DIED, UNKNOWN.
        collective: the function of torch.distributed that it is in; None outside of any.
        through: what the user's line calls, as people write it ("engine.save_checkpoint", "the forward pass");
            None where it calls nothing of a library, or the collective itself.
        inside: the innermost function, where it is a library's and no collective.
        file: the user's file; None where no line of the user's is on the way, as in dslint's own training.
        line: the innermost of the user's lines.
        function: the function that it is in; "<module>" outside of any.
        code: the text of that line; empty if it can't be read.
        called_from: the user's line from which a library called that function back, as "train.py:40".
        trail: the libraries' lines below the user's, innermost first.
    """

    rank: int
    state: str
    collective: str | None = None
    through: str | None = None
    inside: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    code: str = ""
    called_from: str | None = None
    trail: tuple[str, ...] = field(default=(), repr=False)

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = ("rank", "state", "collective", "through", "inside", "file", "line", "function")
        values = {name: getattr(self, name) for name in names}
        return {**values, "code": self.code or None, "called_from": self.called_from}


def standing_of(rank: int, text: str, *, state: str | None = None) -> Standing:
    """Where a rank stands, by its stack as faulthandler writes it, the innermost frame first.

    Args:
        rank: its number.
        text: the stack; without one it is unknown where it stands.
        state: what it did, where that is known otherwise.
    """
    frames = frames_of(text)
    if not frames:
        return Standing(rank, state or UNKNOWN)
    base = _base(frames)
    below = frames[:base]
    collective = _collective(below)
    waits = collective is not None or _waits(below) or _waits_itself(frames[0])
    inside = _innermost(below)
    outer = frames[base:]
    line: dict[str, Any] = _users_line(outer[0], outer[1:]) if outer and outer[0].is_own else {}
    saving = outer and outer[0].path.endswith(_SAVING_FILE)
    return Standing(
        rank,
        state or (WAITS if waits else RUNS),
        collective,
        _through(below),
        None if inside is None or collective is not None else f"{inside.name} of {inside.place}",
        **({"function": SAVING} if saving else line),
        trail=tuple(frame.place for frame in below if not frame.is_dslint),
    )


def _base(frames: Sequence[Frame]) -> int:
    """The number of frames below the user's innermost line; without one, below dslint's."""
    saving = next((at for at, one in enumerate(frames) if one.path.endswith(_SAVING_FILE)), None)
    if saving is not None:
        return saving
    own = (at for at, one in enumerate(frames) if one.is_own)
    dslint = (at for at, one in enumerate(frames) if one.is_dslint and not one.path.startswith("<"))
    return next(own, next(dslint, len(frames)))


def _users_line(user: Frame, above: Sequence[Frame]) -> dict[str, Any]:
    return {
        "file": user.short_path,
        "line": user.line,
        "function": user.name,
        "code": user.code,
        "called_from": _called_from(above),
    }


def _called_from(above: Sequence[Frame]) -> str | None:
    """The user's line that called a library, where that has called the user back since."""
    places = [(frame.is_own, frame.place) for frame in above if not frame.is_dslint]
    back = next((at for at, (own, _) in enumerate(places) if not own), len(places))
    outer = [place for own, place in places[back:] if own]
    return outer[0] if outer else None


def _collective(below: Sequence[Frame]) -> str | None:
    """The collective as it was called: what is innermost may be a part of it."""
    block: list[Frame] = []
    for frame in below:
        if frame.short_path in _COMMUNICATION:
            block.append(frame)
        elif block:
            break
    named = [frame for frame in block if not (frame.is_wrapper or frame.name.startswith("_"))]
    of_torch = [frame for frame in named if frame.short_path in _COLLECTIVES]
    candidates = of_torch[::-1] or named
    return candidates[0].name if candidates else None


def _waits(below: Sequence[Frame]) -> bool:
    """Whether it waits for the end of a collective that it has begun."""
    inner = next((frame for frame in below if not frame.is_wrapper), None)
    return inner is not None and inner.name == "wait" and inner.short_path.startswith(_WAITING)


def _waits_itself(innermost: Frame) -> bool:
    """Whether the user's own line waits for what it began: `work.wait()` of torch is C++, and so has no frame."""
    return innermost.is_own and ".wait(" in innermost.code


def _through(below: Sequence[Frame]) -> str | None:
    """What the line calls: the outermost function below it that isn't a mere wrapper."""
    calls = [frame for frame in below[::-1] if not frame.is_dslint]
    if calls and calls[0].short_path == _MODULE_CALL[0] and calls[0].name in _MODULE_CALL[1]:
        return "the forward pass"
    first = next((frame for frame in calls if not frame.is_wrapper), None)
    if first is None or (first.short_path in _COMMUNICATION and first.name == _collective(below)):
        return None
    known = _PASSES.get((first.short_path, first.name))
    if known is not None:
        return known
    if first.short_path in _OWNERS and not first.name.startswith("_"):
        return _OWNERS[first.short_path] + first.name
    if first.short_path in _COLLECTIVES or first is _innermost(below):
        return None
    return f"{first.name} of {first.short_path}"


def _innermost(below: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in below if not (frame.is_wrapper or frame.is_dslint)), None)
