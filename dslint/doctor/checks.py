"""All checks, in the order of the report."""

from __future__ import annotations

from dslint.doctor import check_build, check_gpu, check_huggingface, check_limits, check_locks, check_packages
from dslint.doctor.environment import Environment
from dslint.doctor.trouble import SEVERITIES, SUBJECTS, Check, Trouble

CHECKS: tuple[Check, ...] = (
    check_packages.missing_packages,
    check_packages.failed_imports,
    check_packages.unmet_requirements,
    check_packages.numpy_without_torch,
    check_packages.checkpoints_that_do_not_load,
    check_packages.foreign_prebuilt_ops,
    check_gpu.cpu_build_of_torch,
    check_gpu.unusable_gpu,
    check_gpu.gpu_that_torch_is_not_built_for,
    check_gpu.arch_list_without_this_gpu,
    check_build.missing_compiler,
    check_build.missing_ninja,
    check_build.missing_python_headers,
    check_build.missing_extension_builder,
    check_build.missing_cuda_toolkit,
    check_build.mismatched_cuda,
    check_build.compiler_too_new_for_nvcc,
    check_build.refused_arch_list,
    check_build.refused_ops,
    check_locks.stale_locks,
    check_locks.foreign_ops,
    check_locks.unwritable_folder,
    check_limits.small_shared_memory,
    check_limits.little_locked_memory,
    check_huggingface.refused_versions,
    check_huggingface.accumulation_refused,
    check_huggingface.fractional_prefetch_bucket,
)


def troubles_of(env: Environment) -> tuple[Trouble, ...]:
    """What is wrong with an environment, the worst first."""
    found = [trouble for check in CHECKS for trouble in check(env)]
    return tuple(
        sorted(found, key=lambda trouble: (SEVERITIES.index(trouble.severity), SUBJECTS.index(trouble.subject)))
    )
