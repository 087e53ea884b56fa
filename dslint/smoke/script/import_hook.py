"""Calls a function when a module has just been imported, without importing it first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Callback = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    """Finds a wanted module where it would be found anyway, and lets its loader call back."""

    def __init__(self, callbacks: Mapping[str, Callback]) -> None:
        self._callbacks = callbacks

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        callback = self._callbacks.get(name)
        if callback is None:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((each for each in found if each is not None), None)
        if spec is not None:
            _call_back(spec, callback)
        return spec


def after_import(callbacks: Mapping[str, Callback]) -> None:
    """Call a function with each of these modules, by full name, as soon as its code has run.

    Whoever imports the module gets it afterwards, so that `from module import name` sees what was replaced.
    """
    sys.meta_path.insert(0, _Finder(callbacks))


def _call_back(spec: ModuleSpec, callback: Callback) -> None:
    """Let the loader of this one import call back, and be itself again."""
    loader = spec.loader
    if loader is None:  # a folder without __init__.py has no code
        return
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        callback(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]  # of this loader, not of its class
