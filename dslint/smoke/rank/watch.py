"""Follows what DeepSpeed does from the inside: which phase it is in, which op it builds, what it warns of."""

from __future__ import annotations

import functools
import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

from dslint.smoke.ops import building, is_built, lock_of
from dslint.smoke.reporting import Reporter

PATHS = frozenset({"nvme_path", "output_path", "output_file"})
"""Keys of a config that name a place to write to."""


@dataclass
class Watch:
    """Wraps the functions of DeepSpeed that mark a phase.

    Attributes:
        reporter: who is told.
        config: the parsed DeepSpeedConfig, once there is one.
        loaded: names of the ops that were built or loaded.
        warned: what was logged or warned of, in order.
        redirected: keys whose absolute path was replaced by one in the trial's folder.
        redirect: whether to replace such paths.
    """

    reporter: Reporter
    config: Any = None
    loaded: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    redirected: list[str] = field(default_factory=list)
    redirect: bool = True

    def follow_phases(self) -> None:
        """Tell when DeepSpeed has read, and when it has parsed, its config; keep what it writes in the folder."""
        import deepspeed
        from deepspeed.runtime.config import DeepSpeedConfig

        parse = DeepSpeedConfig.__init__
        load = getattr(deepspeed, "load_ds_config", None)

        @functools.wraps(parse)
        def parsed(config: Any, *args: Any, **kwargs: Any) -> None:
            if self.config is None:
                self.reporter.enter("parse")
            if self.redirect:
                self._keep_inside(args[0] if args else kwargs.get("config"))
            parse(config, *args, **kwargs)
            if self.config is None:
                self.config = config
                self.reporter.enter("initialize")

        DeepSpeedConfig.__init__ = parsed
        if load is None:  # before 0.16.5 DeepSpeedConfig itself reads the file
            return

        @functools.wraps(load)
        def loaded(*args: Any, **kwargs: Any) -> Any:
            value = load(*args, **kwargs)
            self.reporter.enter("parse")
            return value

        deepspeed.load_ds_config = loaded

    def _keep_inside(self, value: Any) -> None:
        """Point keys that name an absolute place to write to into the trial's folder."""
        if not isinstance(value, dict):
            return
        for key, item in value.items():
            if key in PATHS and isinstance(item, str) and item.startswith(("/", "~")):
                value[key] = key
                self.redirected.append(key)
            self._keep_inside(item)

    def follow_builds(self) -> None:
        """Tell when DeepSpeed builds, or loads, one of its ops (op_builder/builder.py, OpBuilder.jit_load)."""
        from deepspeed.ops.op_builder.builder import OpBuilder

        load = OpBuilder.jit_load

        @functools.wraps(load)
        def loaded(builder: Any, *args: Any, **kwargs: Any) -> Any:
            self.reporter.tell(building=builder.name, built_before=is_built(builder.name))
            if lock := lock_of(builder.name):
                self.reporter.tell(own_lock=str(lock))
            try:
                with building(builder.name):
                    op = load(builder, *args, **kwargs)
                self.loaded.append(type(builder).__name__.removesuffix("Builder"))
                self.reporter.tell(loaded_ops=self.loaded)
                return op
            finally:
                self.reporter.tell(built=builder.name)

        OpBuilder.jit_load = loaded

    def follow_warnings(self) -> None:
        """Keep what DeepSpeed and its like warn of, by logging or by the module warnings."""
        self.follow_logs()

        def shown(message: Warning | str, *_: Any, **__: Any) -> None:
            self._keep_warning(str(message))

        warnings.simplefilter("default")
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.showwarning = shown

    def follow_logs(self) -> None:
        """Keep what DeepSpeed and its like warn of by logging."""
        keep = self._keep_warning

        class Keeper(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                keep(record.getMessage())

        keeper = Keeper(level=logging.WARNING)
        logging.getLogger().addHandler(keeper)
        for name in ("DeepSpeed", "transformers", "accelerate"):
            logger = logging.getLogger(name)
            if not logger.propagate:
                logger.addHandler(keeper)

    def _keep_warning(self, text: str) -> None:
        if text not in self.warned:
            self.warned.append(text)
