"""Each step by which a config follows DeepSpeed: what it does, at which release, and what it leaves."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.fixes.modernise.offload_switches import SECTIONS_SINCE
from dslint.fixes.modernise.optimizers import ONE_BIT
from dslint.fixes.modernise.removed_features import FEATURES
from dslint.fixes.modernise.subject import truth
from dslint.fixes.modernising import Modernised, modernised
from dslint.reports.modernise_report import json_modernise, text_modernise
from dslint.reports.style import Style
from dslint.runs.releases import KNOWN_RELEASES, NEWEST, parse_release
from dslint.runs.removed_keys import SWITCHES

BATCH = {"train_micro_batch_size_per_gpu": 1}


def brought(config: Any, target: str = "0.19.8", written_for: str | None = None) -> Modernised:
    text = config if isinstance(config, str) else json.dumps(config, indent=2)
    since = None if written_for is None else parse_release(written_for)
    return modernised(Source("ds_config.json", text.encode()), parse_release(target), since)


def value(config: Any, target: str = "0.19.8", written_for: str | None = None) -> Any:
    """The config afterwards, without the batch size that stands in each of them."""
    made = brought(BATCH | config, target, written_for)
    return {key: child for key, child in read_config(made.source).value.items() if key not in BATCH}


def kinds(config: Any, target: str = "0.19.8", written_for: str | None = None) -> dict[str, str]:
    return {step.key: step.kind for step in brought(BATCH | config, target, written_for).steps}


def zero(**section: Any) -> dict[str, Any]:
    return {"zero_optimization": section}


def params(kind: str = "Adam", **parameters: Any) -> dict[str, Any]:
    return {"optimizer": {"type": kind, "params": parameters}}


CPU = {"device": "cpu"}
OLD_GATHER = "stage3_gather_fp16_weights_on_model_save"
NEW_GATHER = "stage3_gather_16bit_weights_on_model_save"

CARRIED_OVER = [
    # the section zero_optimization
    ({"zero_optimization": True}, zero(stage=1)),
    ({"zero_optimization": False}, zero(stage=0)),
    ({"zero_optimization": True, "allgather_size": 2000}, zero(stage=1, allgather_bucket_size=2000)),
    # offloading
    (zero(stage=2, cpu_offload=True), zero(stage=2, offload_optimizer=CPU)),
    (zero(stage=2, cpu_offload=False), zero(stage=2)),
    (zero(stage=2, cpu_offload="true"), zero(stage=2, offload_optimizer=CPU)),
    (zero(stage=2, cpu_offload=True, offload_optimizer=None), zero(stage=2, offload_optimizer=CPU)),
    (zero(stage=2, cpu_offload=True, offload_optimizer=CPU), zero(stage=2, offload_optimizer=CPU)),
    (zero(stage=3, cpu_offload_param=True), zero(stage=3, offload_param=CPU)),
    (zero(stage=3, cpu_offload_params=True), zero(stage=3, offload_param=CPU)),
    (
        zero(stage=3, cpu_offload=True, cpu_offload_params=True, cpu_offload_use_pin_memory=False),
        zero(
            stage=3,
            offload_optimizer={"device": "cpu", "pin_memory": False},
            offload_param={"device": "cpu", "pin_memory": False},
        ),
    ),
    (
        zero(stage=2, cpu_offload=True, cpu_offload_pin_memory=True),
        zero(stage=2, offload_optimizer={"device": "cpu", "pin_memory": True}),
    ),
    # names
    ({"bfloat16": {"enabled": True}}, {"bf16": {"enabled": True}}),
    ({"bfloat16": {"enabled": True}, "bf16": None}, {"bf16": {"enabled": True}}),
    (zero(stage=3, **{OLD_GATHER: True}), zero(stage=3, **{NEW_GATHER: True})),
    (zero(stage=3, prefetch_bucket_size=7), zero(stage=3, stage3_prefetch_bucket_size=7)),
    (zero(stage=3, prefetch_bucket_size="auto"), zero(stage=3, stage3_prefetch_bucket_size="auto")),
    (zero(stage=3, allgather_sequential=True), zero(stage=3, stage3_allgather_sequential=True)),
    ({"aio": {"thread_count": 2}}, {"aio": {"intra_op_parallelism": 2}}),
    # communication
    ({"fp32_allreduce": True}, {"communication_data_type": "fp32"}),
    ({"fp32_allreduce": False}, {}),
    ({"communication_data_type": "bfp16"}, {"communication_data_type": "bf16"}),
    # removed, but without effect, or with a successor
    ({"amp": {"enabled": False, "opt_level": "O2"}}, {}),
    ({"amp": {"enabled": True}}, {"torch_autocast": {"enabled": True, "dtype": "fp16"}}),
    ({"amp": {"enabled": True, "opt_level": "O1"}}, {"torch_autocast": {"enabled": True, "dtype": "fp16"}}),
    ({"elasticity": {"enabled": False}}, {}),
    ({"nebula": {"enabled": False}}, {}),
    ({"sparse_gradients": False}, {}),
    (zero(stage=3, mics_shard_size=-1), zero(stage=3)),
    ({"compile": {"enabled": False, "backend": "inductor"}}, {}),
    ({"compile": {"enabled": False, "deepcompile": True}}, {"compile": {"deepcompile": True}}),
    # optimizers and schedulers
    (params(lr=1.0, max_grad_norm=0.5), {**params(lr=1.0), "gradient_clipping": 0.5}),
    (
        {**params(lr=1.0, max_grad_norm=0.5), "gradient_clipping": 0.5},
        {**params(lr=1.0), "gradient_clipping": 0.5},
    ),
    (
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}},
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2}}},
    ),
    (
        {"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 0.1}}},
        {"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 2}}},
    ),
]


@pytest.mark.parametrize(("old", "new"), CARRIED_OVER, ids=lambda config: json.dumps(config)[:70])
def test_what_still_has_a_meaning_is_carried_over(old: Any, new: Any) -> None:
    assert value(old) == new
    assert set(kinds(old).values()) == {"carried over"}


DROPPED = [
    ({"disable_allgather": True}, {}),
    ({"allgather_size": 5, **zero(stage=1)}, zero(stage=1)),
    (zero(stage=1, legacy_stage1=True), zero(stage=1)),
    (zero(stage=2, cpu_offload_use_pin_memory=True), zero(stage=2)),
    ({"bf16": {"enabled": True}, "bfloat16": {"enabled": False}}, {"bf16": {"enabled": True}}),
    (zero(stage=3, **{OLD_GATHER: True, NEW_GATHER: False}), zero(stage=3, **{NEW_GATHER: False})),
    (
        zero(stage=3, max_live_parameters=1, stage3_max_live_parameters=2),
        zero(stage=3, stage3_max_live_parameters=2),
    ),
    ({"graph_harvesting": True}, {}),
    ({"curriculum_learning": {"enabled": True}}, {}),
    ({"sparse_attention": {"mode": "fixed"}}, {}),
    (zero(stage=3, mics_shard_size=4), zero(stage=3)),
    ({"elasticity": {"enabled": True}}, {}),  # beside the batch size
    ({"compile": {"enabled": True}}, {}),
    ({"compile": {"disable": False, "backend": "inductor"}}, {}),
    ({"fp16": {"enabled": True, "opt_level": "O2"}}, {"fp16": {"enabled": True}}),
    (
        {"bf16": {"enabled": True, "loss_scale": 0, "hysteresis": 2, "initial_scale_power": 16}},
        {"bf16": {"enabled": True}},
    ),
    (zero(stage=2, max_group_size=1000), zero(stage=2)),
    ({"fp16": {"enabled": True, "min_loss_scale": 0.5}}, {"fp16": {"enabled": True, "min_loss_scale": 1}}),
    ({"fp16": {"enabled": True, "min_loss_scale": -1}}, {"fp16": {"enabled": True, "min_loss_scale": 1}}),
    ({"optimizer": {"type": "Adam", "legacy_fusion": True}}, {"optimizer": {"type": "Adam"}}),
    (
        params("OneBitAdam", lr=1.0, freeze_step=2, cuda_aware=True, comm_backend_name="mpi"),
        params("AdamW", lr=1.0, bias_correction=False),
    ),
    (
        params("ZeroOneAdam", lr=1.0, var_freeze_step=9, bias_correction=False),
        params("AdamW", lr=1.0, bias_correction=False),
    ),
    (
        params("onebitlamb", max_coeff=0.3, coeff_beta=0.9, factor_max=4, bias_correction=True),
        params("Lamb", max_coeff=0.3, bias_correction=False),
    ),
]


@pytest.mark.parametrize(("old", "new"), DROPPED, ids=lambda config: json.dumps(config)[:70])
def test_what_has_no_meaning_any_more_is_dropped(old: Any, new: Any) -> None:
    assert value(old) == new
    assert set(kinds(old).values()) == {"dropped"}


LEFT = [
    (zero(stage=2, cpu_offload=False, offload_optimizer=CPU), "zero_optimization.cpu_offload"),
    (zero(stage=2, cpu_offload=True, offload_optimizer={"device": "nvme"}), "zero_optimization.cpu_offload"),
    (zero(stage=2, cpu_offload=[]), "zero_optimization.cpu_offload"),
    (
        zero(stage=2, offload_optimizer=CPU, cpu_offload_use_pin_memory=[]),
        "zero_optimization.cpu_offload_use_pin_memory",
    ),
    ({"bfloat16": {"enabled": "auto"}}, "bfloat16"),
    ({"fp32_allreduce": True, "communication_data_type": "fp16"}, "fp32_allreduce"),
    ({"amp": {"enabled": True, "opt_level": "O2"}}, "amp"),
    ({"amp": {"enabled": True, "loss_scale": 128}}, "amp"),
    ({"amp": {"enabled": True}, "fp16": {"enabled": True}}, "amp"),
    ({"amp": {"enabled": True}, **zero(stage=1)}, "amp"),
    ({**params(max_grad_norm=1.0), "gradient_clipping": 0.5}, "optimizer.params.max_grad_norm"),
    (
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100.5}}},
        "scheduler.params.warmup_num_steps",
    ),
    (
        {"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_step_size": 10.5}}},
        "scheduler.params.lr_range_test_step_size",
    ),
    (zero(stage=3, stage3_param_persitance_threshold=1), "zero_optimization.stage3_param_persitance_threshold"),
    (zero(stage=1, zero_allow_untested_optimizer=True), "zero_optimization.zero_allow_untested_optimizer"),
]


@pytest.mark.parametrize(("config", "key"), LEFT, ids=lambda config: json.dumps(config)[:70])
def test_what_a_person_must_decide_is_left(config: Any, key: str) -> None:
    assert value(config) == config
    assert kinds(config) == {key: "left"}


def test_elastic_batches_are_left_where_no_batch_size_is_given() -> None:
    made = brought({"elasticity": {"enabled": True}, **zero(stage=1)})
    assert [step.kind for step in made.steps] == ["left"]
    assert not made.is_changed


MODERN = [
    {},
    zero(stage=3, stage3_prefetch_bucket_size="auto", offload_param={"device": "nvme", "nvme_path": "/x"}),
    zero(stage=2, cpu_offload="auto"),
    {"fp16": {"enabled": "auto", "min_loss_scale": 0, "loss_scale": 512}},
    {"fp16": {"enabled": False, "min_loss_scale": 0}},
    {"bf16": {"enabled": "auto", "loss_scale": "auto"}},
    {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}},
    {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}}},
    {"_note": 1, "tensorboard": {"enabled": False}, "wandb": {"anything": 1}},
    {"compile": {"deepcompile": True}},
]


@pytest.mark.parametrize("config", MODERN, ids=lambda config: json.dumps(config)[:70])
def test_a_modern_config_stays_as_it_is(config: Any) -> None:
    made = brought(BATCH | config)
    assert made.steps == ()
    assert not made.is_changed
    assert made.source == made.before


# --- releases ---

BOUNDARIES = [
    (zero(stage=2, cpu_offload=True), "0.3.15"),
    ({"bfloat16": {"enabled": True}}, "0.6.0"),
    (zero(stage=3, **{OLD_GATHER: True}), "0.6.0"),
    ({"aio": {"thread_count": 2}}, "0.16.4"),
    ({"fp32_allreduce": True}, "0.5.8"),
    ({"communication_data_type": "bfp16"}, "0.14.1"),
    ({"amp": {"enabled": False}}, "0.19.8"),
    ({"elasticity": {"enabled": False}}, "0.19.8"),
    ({"curriculum_learning": {"enabled": True}}, "0.19.8"),
    ({"compression_training": {}}, "0.19.7"),
    (params("OneBitAdam", lr=1.0, freeze_step=2), "0.19.7"),
    ({"fp16": {"enabled": True, "min_loss_scale": 0.5}}, "0.17.1"),
    ({"fp16": {"enabled": True, "min_loss_scale": 0}}, "0.19.3"),
    ({"bf16": {"enabled": True, "loss_scale": 0}}, "0.17.1"),
    (zero(stage=1, legacy_stage1=True), "0.5.9"),
    ({"optimizer": {"type": "Adam", "legacy_fusion": True}}, "0.18.6"),
    ({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}, "0.19.3"),
    ({"compile": {"enabled": True}}, "0.14.4"),
]


def before(release: str) -> str:
    """A release that comes right before, or counts as such."""
    major, minor, patch = map(int, release.split("."))
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.99"


@pytest.mark.parametrize(("config", "release"), BOUNDARIES, ids=lambda part: json.dumps(part)[:60])
def test_a_step_is_made_from_its_release_on_only(config: Any, release: str) -> None:
    assert value(config, release) != config
    assert value(config, before(release)) == config


@pytest.mark.parametrize(
    ("new", "target", "old"),
    [
        ({"bf16": {"enabled": True}}, "0.5.10", {"bfloat16": {"enabled": True}}),
        (zero(stage=3, **{NEW_GATHER: True}), "0.5.0", zero(stage=3, **{OLD_GATHER: True})),
        ({"aio": {"intra_op_parallelism": 2}}, "0.16.3", {"aio": {"thread_count": 2}}),
        ({"communication_data_type": "bf16"}, "0.14.0", {"communication_data_type": "bfp16"}),
        ({"communication_data_type": "fp32"}, "0.5.7", {"fp32_allreduce": True}),
        (zero(stage=2, offload_optimizer=CPU), "0.3.14", zero(stage=2, cpu_offload=True)),
        (zero(stage=2, offload_optimizer={"device": "none"}), "0.3.14", zero(stage=2)),
        (
            zero(stage=3, offload_param={"device": "cpu", "pin_memory": True}),
            "0.3.14",
            zero(stage=3, cpu_offload_params=True, cpu_offload_use_pin_memory=True),
        ),
    ],
    ids=lambda part: json.dumps(part)[:60],
)
def test_a_config_can_go_back_where_only_names_changed(new: Any, target: str, old: Any) -> None:
    assert value(new, target) == old
    assert set(kinds(new, target).values()) == {"carried over"}
    assert value(old) == new or new == zero(stage=2, offload_optimizer={"device": "none"})


@pytest.mark.parametrize(
    ("config", "target", "key"),
    [
        ({"torch_autocast": {"enabled": True}}, "0.17.0", "torch_autocast"),
        (zero(stage=2, compute_grad_norm=False), "0.19.0", "zero_optimization.compute_grad_norm"),
        ({"bf16": {"enabled": True}}, "0.5.0", "bf16"),
        (zero(stage=3, offload_param={"device": "nvme"}), "0.3.14", "zero_optimization.offload_param"),
        ({"bf16": {"enabled": True, "check_grad_overflow": True}}, "0.17.0", "bf16.check_grad_overflow"),
    ],
)
def test_what_came_after_the_target_is_left(config: Any, target: str, key: str) -> None:
    assert kinds(config, target) == {key: "left"}
    assert value(config, target) == config


def test_every_release_can_be_a_target() -> None:
    config: dict[str, Any] = {}
    for old, _ in (*CARRIED_OVER, *DROPPED):
        config = old | config
    for release in (*KNOWN_RELEASES[::4], NEWEST):
        made = brought(BATCH | config, release.text)
        again = modernised(made.source, release)
        assert not again.is_changed, release


# --- defaults ---


def test_old_defaults_are_written_out_where_the_old_release_is_known() -> None:
    config = {"bf16": {"enabled": True}, **zero(stage=2, offload_optimizer={"device": "cpu"})}
    made = value(config, written_for="0.15.0")
    assert made["gradient_clipping"] == 0.0
    assert made["bf16"] == {"enabled": True, "check_grad_overflow": False}
    assert made["steps_per_print"] == 10
    assert made["zero_optimization"]["offload_optimizer"] == {"device": "cpu", "pin_memory": False}


def test_defaults_from_before_the_recorded_releases_are_known() -> None:
    config = {"fp16": {"enabled": True}, **zero(stage=2, offload_optimizer={"pin_memory": True})}
    made = value(config, written_for="0.5.0")
    assert made["fp16"] == {"enabled": True, "initial_scale_power": 32}
    assert made["zero_optimization"]["offload_optimizer"] == {"pin_memory": True, "device": "cpu"}
    assert value(config, written_for="0.8.0")["fp16"] == {"enabled": True}


def test_defaults_are_not_written_out_beside_a_value_or_in_a_section_that_is_off() -> None:
    config = {"gradient_clipping": 2.0, "bf16": {"enabled": False}, "steps_per_print": 5}
    assert value(config, written_for="0.15.0") == config


def test_defaults_of_the_same_age_are_not_written_out() -> None:
    assert value({}, written_for="0.19.8") == {}
    assert value({}, target="0.19.2", written_for="0.19.0") == {}


def test_clipping_is_left_to_hugging_face_where_it_fills_keys_in() -> None:
    config = {"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}
    assert kinds(config, written_for="0.19.0") == {"gradient_clipping": "left"}


# --- the text ---

HAND_WRITTEN = """{
  // how many samples
  "train_batch_size": 8,  /* of all ranks */
  "zero_optimization": {
    "stage": 2,
    "cpu_offload": true,  // there is little memory
    "overlap_comm": true
  },
  # Apex
  "amp": {"enabled": false}
}
"""


def test_comments_and_layout_survive() -> None:
    made = brought(HAND_WRITTEN).source.text
    assert made.startswith('{\n  // how many samples\n  "train_batch_size": 8,  /* of all ranks */\n')
    assert "// there is little memory" in made
    assert made.index('"stage"') < made.index('"offload_optimizer"') < made.index('"overlap_comm"')
    assert "amp" not in read_config(Source("x.json", made.encode())).value


def test_a_step_stands_where_its_key_stood() -> None:
    made = brought(HAND_WRITTEN)
    places = {step.key: str(made.place(step)) for step in made.steps}
    assert places == {"zero_optimization.cpu_offload": "6:5", "amp": "10:3"}


def test_a_key_in_a_renamed_section_is_told_by_its_old_name() -> None:
    made = brought({"bfloat16": {"enabled": True, "loss_scale": 0}})
    assert [step.key for step in made.steps] == ["bfloat16", "bfloat16.loss_scale"]
    assert made.before.slice(made.steps[1].span) == '"loss_scale": 0'


def test_line_ends_of_windows_survive() -> None:
    text = HAND_WRITTEN.replace("\n", "\r\n")
    made = brought(text).source.data
    assert made.count(b"\n") == made.count(b"\r\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"train_batch_size": 8', "can't be read"),
        ('{"train_batch_size": ${BATCH}, "amp": ', "template"),
        ("[1, 2]", "no DeepSpeed config"),
        ('{"name": "something else"}', "no DeepSpeed config"),
    ],
)
def test_a_file_that_is_no_config_is_left_as_it_is(text: str, reason: str) -> None:
    made = brought(text)
    assert not made.is_changed
    assert [step.kind for step in made.steps] == ["left"]
    assert reason in made.steps[0].text


def test_a_yaml_file_is_left_as_it_is() -> None:
    made = modernised(Source("accelerate.yaml", b"deepspeed_config: {zero_stage: 3}\n"))
    assert not made.is_changed
    assert "YAML" in made.steps[0].text


def test_a_key_that_stands_twice_is_left() -> None:
    made = brought('{"train_batch_size": 8, "bfloat16": {"enabled": true}, "bfloat16": {"enabled": false}}')
    assert [step.kind for step in made.steps] == ["left"]
    assert not made.is_changed


# --- the report ---


def test_the_report_has_a_line_for_each_step_and_counts_them() -> None:
    results = [
        brought(HAND_WRITTEN),
        brought({"amp": {"enabled": True, "opt_level": "O2"}, **BATCH}),
        brought(BATCH),
    ]
    lines = text_modernise(results, Style(colour=False)).splitlines()
    assert lines[0].startswith("ds_config.json:6:5: carried over zero_optimization.cpu_offload: is now")
    assert lines[2].startswith("ds_config.json:2:3: left amp: ")
    assert lines[-1] == "1 of 3 files changed for DeepSpeed 0.19.8: 2 carried over, 1 left."


def test_a_report_on_nothing_says_so() -> None:
    assert text_modernise([brought(BATCH)], Style(colour=False)) == (
        "0 of 1 file changed for DeepSpeed 0.19.8: nothing to do."
    )
    assert text_modernise([], Style(colour=False)) == "0 of 0 files changed: nothing to do."


def test_the_report_can_be_read_by_programs() -> None:
    (told,) = json.loads(json_modernise([brought(HAND_WRITTEN)]))
    assert told["path"] == "ds_config.json"
    assert told["target"] == "0.19.8"
    assert told["changed"] is True
    assert {step["key"]: step["line"] for step in told["steps"]} == {"zero_optimization.cpu_offload": 6, "amp": 10}


# --- the knowledge holds together ---


def test_every_switch_of_a_removed_feature_is_known() -> None:
    assert set(SWITCHES) - set(FEATURES) == {("amp",), ("elasticity",)}
    assert all(SWITCHES[path][0] == feature.since for path, feature in FEATURES.items() if path in SWITCHES)


def test_optimizers_without_compression_are_known_to_deepspeed() -> None:
    from dslint.runs.optimizers import optimizer_kind

    assert {optimizer_kind(name) for name in ONE_BIT} == {"removed"}
    assert {optimizer_kind(one.type) for one in ONE_BIT.values()} == {"deepspeed"}


@pytest.mark.deepspeed
def test_removed_features_are_those_that_deepspeed_refuses() -> None:
    config = pytest.importorskip("deepspeed.runtime.config")
    top = {(key,) for key in config._REMOVED_TOP_LEVEL_CONFIG_KEYS}
    in_zero = {("zero_optimization", key) for key in config._REMOVED_ZERO_CONFIG_KEYS}
    assert top | in_zero == {*FEATURES, ("amp",), ("elasticity",)}


@pytest.mark.parametrize(
    ("given_value", "meant"),
    [
        (True, True),
        ("False", False),
        ("yes", True),
        (1, True),
        (0, False),
        (None, False),
        ([], None),
        ("cpu", None),
    ],
)
def test_words_for_true_and_false(given_value: object, meant: bool | None) -> None:
    assert truth(given_value) is meant


# --- properties ---

TOP_NAMES = sorted({name for old, _ in (*CARRIED_OVER, *DROPPED, *LEFT) for name in old})
NAMES = sorted(
    {
        name
        for old, _ in (*CARRIED_OVER, *DROPPED)
        for child in old.values()
        if isinstance(child, dict)
        for name in child
    }
    | {"max_grad_norm", "freeze_step", "bias_correction", "warmup_num_steps", "device", "pin_memory", "unknown"}
)
RELEASES = ("0.3.10", "0.5.6", "0.8.3", "0.16.6", "0.19.8")

ENTRIES = st.sampled_from([old for old, _ in (*CARRIED_OVER, *DROPPED)] + [old for old, _ in LEFT] + MODERN)


def merged(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """One config with the entries of several; sections are joined."""
    whole: dict[str, Any] = dict(BATCH)
    for config in copy.deepcopy(configs):
        for key, child in config.items():
            both_sections = isinstance(child, dict) and isinstance(whole.get(key), dict)
            whole[key] = whole[key] | child if both_sections else child
    return whole


@settings(max_examples=150, deadline=None)
@given(st.lists(ENTRIES, max_size=6), st.sampled_from(KNOWN_RELEASES))
def test_doing_it_twice_changes_nothing_more(configs: list[dict[str, Any]], target: Any) -> None:
    made = modernised(Source("x.json", json.dumps(merged(configs)).encode()), target)
    again = modernised(made.source, target)
    assert not again.is_changed
    assert {step.kind for step in again.steps} <= {"left"}


@settings(max_examples=150, deadline=None)
@given(st.lists(ENTRIES, max_size=6))
def test_sections_without_a_step_keep_their_value(configs: list[dict[str, Any]]) -> None:
    config = merged(configs)
    made = modernised(Source("x.json", json.dumps(config).encode()))
    touched = {step.key.split(".")[0] for step in made.steps if step.kind != "left"}
    touched |= {"bf16"} if config.get("bf16") is None else set()  # where it gives way to bfloat16
    result = read_config(made.source).value
    assert {key: result[key] for key in config if key not in touched} == {
        key: child for key, child in config.items() if key not in touched
    }
    assert set(result) - set(config) <= {"gradient_clipping", "bf16", "communication_data_type", "torch_autocast"}


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["auto", "cpu", "none", "true", "fp32", "bfp16", "OneBitAdam", "WarmupLR", "", -1e400, 0.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(TOP_NAMES), ANYTHING, max_size=5), st.sampled_from(RELEASES))
def test_values_of_any_kind_are_borne(config: dict[str, Any], target: str) -> None:
    made = brought(BATCH | config, target)
    assert not modernised(made.source, made.target).is_changed
    assert isinstance(read_config(made.source).value, dict)


def test_the_newest_release_is_the_default_target() -> None:
    assert modernised(Source("x.json", b"{}")).target == NEWEST
    assert parse_release(SECTIONS_SINCE) < NEWEST
