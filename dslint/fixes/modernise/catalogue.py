"""All rules by which configs follow DeepSpeed, in the order in which they are asked."""

from __future__ import annotations

from dslint.fixes.modernise.apex import apex_amp
from dslint.fixes.modernise.changed_defaults import changed_defaults
from dslint.fixes.modernise.checked_values import loss_scale_floor, whole_step_counts
from dslint.fixes.modernise.communication import name_of_bf16, switch_for_type, type_for_switch
from dslint.fixes.modernise.compiling import compile_switches
from dslint.fixes.modernise.elasticity import elastic_batches
from dslint.fixes.modernise.later_keys import later_keys
from dslint.fixes.modernise.offload_switches import pinned_memory, sections_for_switches, switches_for_sections
from dslint.fixes.modernise.optimizers import clipping_of_the_engine, fused_by_apex, one_bit_optimizers
from dslint.fixes.modernise.removed_features import removed_features
from dslint.fixes.modernise.renamed_keys import new_names, prefixed_names
from dslint.fixes.modernise.subject import Rule
from dslint.fixes.modernise.unknown_keys import unknown_keys
from dslint.fixes.modernise.zero_section import (
    old_bucket_size,
    old_stage_1,
    section_for_boolean,
    unused_switch,
)

RULES: tuple[Rule, ...] = (
    # sections first, since later rules look into them
    section_for_boolean,
    old_bucket_size,
    unused_switch,
    old_stage_1,
    prefixed_names,
    new_names,
    sections_for_switches,
    pinned_memory,
    switches_for_sections,
    type_for_switch,
    switch_for_type,
    name_of_bf16,
    apex_amp,
    elastic_batches,
    removed_features,
    compile_switches,
    clipping_of_the_engine,
    one_bit_optimizers,
    fused_by_apex,
    loss_scale_floor,
    whole_step_counts,
    # whatever is still unknown
    unknown_keys,
    later_keys,
    changed_defaults,
)
