"""Troubles between DeepSpeed and the two packages that drive it: Transformers and Accelerate."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.doctor.check_packages import pip, satisfies
from dslint.doctor.environment import Environment
from dslint.doctor.trouble import Trouble

_NAMES = {"transformers": "Transformers", "accelerate": "Accelerate", "deepspeed": "DeepSpeed"}


def refused_versions(env: Environment) -> Iterator[Trouble]:
    """A version that the installed Transformers or Accelerate itself refuses.

    The demands are read from their files: transformers/dependency_versions_table.py, which is asked when
    transformers is imported (accelerate) and by HfDeepSpeedConfig.__init__ in integrations/deepspeed.py
    (deepspeed), and Accelerator.__init__ in accelerate/accelerator.py (deepspeed).
    """
    for demand in env.python.requirements:
        found = env.version(demand.package)
        if demand.owner not in _NAMES or demand.owner == "deepspeed" or found is None:
            continue
        if satisfies(found, demand.spec) is False:
            owner, package = _NAMES[demand.owner], _NAMES.get(demand.package, demand.package)
            when = "`import transformers`" if demand.package == "accelerate" else f"{owner} with DeepSpeed"
            yield Trouble(
                "version-refused",
                "error" if demand.package == "accelerate" else "warning",
                "Hugging Face",
                f"{owner} {env.version(demand.owner)} demands {demand.package}{demand.spec}, and {package} is "
                f"{found}: {when} stops with an ImportError",
                pip(env, f"{demand.package}{demand.spec}"),
            )


def accumulation_refused(env: Environment) -> Iterator[Trouble]:
    """Gradient accumulation in the Trainer stops at stages 2 and 3.

    From 0.16.0 on DeepSpeedEngine.no_sync asserts that gradients are not partitioned (deepspeed/runtime/engine.py;
    0.15.4 has no such method). Trainer._inner_training_loop of Transformers 4.46.3 and 4.47.0 enters it through
    Accelerator.no_sync for all but the last micro-batch; 4.47.1 leaves DeepSpeed out, and 4.45.2 had no such call.
    """
    if env.needs is not None and env.needs.partitioned_gradients is None:
        return
    if not _both(env, "transformers", ">=4.46.0,<4.47.1", ">=0.16.0"):
        return
    where = env.needs.partitioned_gradients if env.needs is not None else "ZeRO stage 2 or 3"
    yield Trouble(
        "accumulation-refused",
        "warning",
        "Hugging Face",
        f"Transformers {env.version('transformers')} enters no_sync under gradient accumulation, which DeepSpeed "
        f"{env.version('deepspeed')} refuses where gradients are partitioned ({where}): with "
        "gradient_accumulation_steps above 1 the Trainer stops with an AssertionError",
        pip(env, "transformers>=4.47.1"),
    )


def fractional_prefetch_bucket(env: Environment) -> Iterator[Trouble]:
    """Transformers fills stage3_prefetch_bucket_size with a fraction, which DeepSpeed refuses.

    HfTrainerDeepSpeedConfig.trainer_config_finalize of Transformers 4.44.2 puts 0.9 * hidden_size * hidden_size,
    that of 4.45.2 an int. Tried: DeepSpeedZeroConfig of DeepSpeed 0.15.4 and 0.19.8 raises a ValidationError for
    15099494.4, that of 0.14.5 takes it.
    """
    if env.needs is not None and env.needs.auto_prefetch is None:
        return
    if not _both(env, "transformers", "<4.45.0", ">=0.15.0"):
        return
    where = env.needs.auto_prefetch if env.needs is not None else "stage3_prefetch_bucket_size"
    yield Trouble(
        "fractional-prefetch-bucket",
        "error" if env.needs is not None else "hint",
        "Hugging Face",
        f'Transformers {env.version("transformers")} fills in a fraction for {where} where it is "auto", and '
        f"DeepSpeed {env.version('deepspeed')} stops with a ValidationError (int_from_float), unless the hidden "
        "size is a multiple of 10",
        f"{pip(env, 'transformers>=4.45.2')}, or write a whole number instead of auto",
    )


def _both(env: Environment, package: str, spec: str, deepspeed_spec: str) -> bool:
    """Whether a package and DeepSpeed are installed in versions that these specifiers allow."""
    found, deepspeed = env.version(package), env.version("deepspeed")
    if found is None or deepspeed is None:
        return False
    return satisfies(found, spec) is True and satisfies(deepspeed, deepspeed_spec) is True
