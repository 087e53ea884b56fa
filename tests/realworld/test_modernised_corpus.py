"""Real public configs brought to the newest release: nothing breaks, nothing changes in silence, and DeepSpeed agrees.

The trials are those of the labels: rank 0 of 8 simulated ranks, on the installed DeepSpeed, which is the newest.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import hjson
import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.document import NodePath
from dslint.documents.source import Source, read_source
from dslint.fixes.modernising import Modernised, modernised
from dslint.runs.releases import parse_release
from dslint.smoke.client import SmokeServer
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge
from tests.realworld.corpus import CONFIGS, CORPUS, trains
from tests.realworld.differential import RANKS, TIMEOUT, Subject, findings_on, loader_of

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here")]

FEW = 30
OLD_TARGETS = ("0.3.10", "0.5.10", "0.8.3", "0.14.0", "0.16.4", "0.18.0", "0.19.7")

COMES_FROM: Mapping[str, tuple[str, ...]] = {
    "bf16": ("bfloat16",),
    "torch_autocast": ("amp",),
    "communication_data_type": ("fp32_allreduce",),
    "gradient_clipping": ("optimizer",),
}
"""Keys of today at the top level, and where else in an old file what they say may have stood."""


OLD_KEY_RULES = frozenset(
    {
        *(f"DS{number:03}" for number in range(31, 49)),  # removed features
        *("DS083", "DS104", "DS303", "DS309", "DS314", "DS422", "DS423", "DS427", "DS504", "DS507", "DS551"),
    }
)
"""The rules about keys, names and values that only older releases took."""


@pytest.fixture(scope="module")
def results() -> Mapping[str, Modernised]:
    return {path.name: modernised(read_source(path)) for path in CONFIGS}


# --- without DeepSpeed ---


def test_every_step_can_be_made_in_the_text(results: Mapping[str, Modernised]) -> None:
    steps = [(name, step.text) for name, made in results.items() for step in made.steps]
    assert not [step for step in steps if "could not be done" in step[1]]
    assert sum(made.is_changed for made in results.values()) > 100


def test_doing_it_twice_changes_nothing_more(results: Mapping[str, Modernised]) -> None:
    again = {name: modernised(made.source) for name, made in results.items()}
    assert not [name for name, made in again.items() if made.is_changed]
    assert {step.kind for made in again.values() for step in made.steps} <= {"left"}


def test_values_differ_only_where_steps_say(results: Mapping[str, Modernised]) -> None:
    for name, made in results.items():
        old, new = (read_config(source).value for source in (made.before, made.source))
        said = [step.key for step in made.steps if step.kind != "left"]
        unsaid = {path for path in _differing(old, new) if not _is_said(path, old, said)}
        assert not unsaid, name


def test_files_that_are_not_read_stay_as_they_are(results: Mapping[str, Modernised]) -> None:
    for made in results.values():
        if read_config(made.before).value is None:
            assert not made.is_changed
            assert [step.kind for step in made.steps] == ["left"]


def test_rules_about_old_keys_have_nothing_left_to_say(results: Mapping[str, Modernised]) -> None:
    for name, made in changed_ones(results).items():
        subject = Subject(name, _text(made.source))
        codes = {finding.code for finding in findings_on(subject, loader_of(subject), packages={})}
        assert not codes & OLD_KEY_RULES, name


@pytest.mark.parametrize("target", OLD_TARGETS)
def test_files_can_go_back_to_an_old_release_and_stay_there(target: str) -> None:
    release = parse_release(target)
    for path in CONFIGS[::3]:
        made = modernised(read_source(path), release)
        assert not modernised(made.source, release).is_changed, path.name


def _differing(old: Any, new: Any, path: NodePath = ()) -> Iterator[NodePath]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key in old and key in new:
                yield from _differing(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif old != new or type(old) is not type(new):
        yield path


def _is_said(path: NodePath, old: Any, said: Iterable[str]) -> bool:
    """Whether a step is about an entry; one that is new may come from another in the same section."""
    top = str(path[0])
    if not _is_there(old, path):
        return any(one.split(".")[0] in (top, *COMES_FROM.get(top, ())) for one in said)
    key = ".".join(map(str, path)) + "."
    return any(key.startswith(f"{one}.") or f"{one}.".startswith(key) for one in said)


def _is_there(value: Any, path: NodePath) -> bool:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


# --- on real DeepSpeed ---


@dataclass(frozen=True)
class Reason:
    """Why a config is refused that has no old key any more.

    Attributes:
        pattern: a regular expression for the exception and its message.
        reason: what it is about.
    """

    pattern: str
    reason: str


REASONS = (
    Reason(
        r"AssertionError: (Either train_batch_size|Check batch related|Micro batch size|Gradient accumulation steps)",
        "the batch sizes are wrong for 8 ranks, or not there",
    ),
    Reason(r"TypeError.*for //: 'str'", '"auto" in batch sizes that nothing fills in'),
    Reason(r"No module named '(tensorboard|wandb)'", "a monitor is not installed where the trial runs"),
    Reason(r"not been implemented on CPU backend", "the optimizer has no op for the CPU that the trial runs on"),
    Reason(r"determine model policy", "tensor parallelism knows no such model as the trial's"),
    Reason(r"input_value='[A-Z_$]|input_value='\$|ZERO_STAGE|JSONDecodeError", "a template, or not JSON"),
    Reason(r"HjsonDecodeError|duplicate keys", "not JSON, or a key that stands twice"),
    Reason(r"missing 1 required positional argument: 'total_num_steps'", "a scheduler without its steps"),
    Reason(r"does not recognize LR scheduler", "a scheduler that never was one of DeepSpeed's"),
    Reason(r"unexpected keyword argument 'use_triton'", "a parameter that the optimizer never had"),
    Reason(r"wandb\.watch_model|TPTrainingConfig", "a key that its section never had nor ignored"),
    Reason(
        r"cpu-offload|persitance|DeepSpeedZeroConfig (zero_allow_untested_optimizer|device|zero_optimization) Extra",
        "a misspelt or misplaced key that was ignored once: a person must say what it means",
    ),
    Reason(r"DeepSpeedZeroConfig\(\) argument after \*\* must be a mapping", "a section that never was one"),
    Reason(r"DeepSpeedBF16Config\(\) argument after \*\* must be a mapping", "a section that never was one"),
    Reason(r"offload_param Input should be a valid dictionary", "a section that never was one"),
    Reason(r"reduce_bucket_size Input should be a valid integer", "a list in the place of a number"),
    Reason(r"%: 'int' and 'str'", '"auto" in steps_per_print, which nothing fills in'),
    Reason(r"mismatch TrainingArguments|without `auto`", "arguments and config of Hugging Face disagree"),
    Reason(r"SystemExit", "the autotuner"),
)


UNUSED_SETTINGS = (
    *("config.disable_allgather", "config.optimizer_legacy_fusion"),
    *("config.zero_config.cpu_offload", "config.zero_config.cpu_offload_param"),
    "config.zero_config.stage3_gather_fp16_weights_on_model_save",
)
"""Old keys that DeepSpeed keeps among its settings, perhaps, though nothing looks at them there."""


@dataclass(frozen=True)
class Outcome:
    """What DeepSpeed did with a file before and after."""

    name: str
    before: Verdict
    after: Verdict


def tried(server: SmokeServer, made: Mapping[str, Modernised]) -> Iterator[Outcome]:
    for name, one in made.items():
        loader = loader_of(Subject(name, _text(one.before)))
        yield Outcome(name, _trial(server, one.before, loader), _trial(server, one.source, loader))


def _trial(server: SmokeServer, source: Source, loader: str) -> Verdict:
    text = _text(source)
    trial = Trial(
        text, gpus=RANKS, loader=loader, fp16=True, bf16=True, timeout=TIMEOUT, thorough=False, detailed=True
    )
    return judge([server.run(trial)], mode="simulated", world=RANKS)


def _text(source: Source) -> str:
    return source.data.decode("utf-8", errors="surrogateescape")


def reason_for(exception: str | None, message: str) -> str | None:
    """The reason behind a refusal; None where no listed one fits."""
    told = f"{exception}: {' '.join(message.split())}"
    return next((one.reason for one in REASONS if re.search(one.pattern, told)), None)


def changed_ones(results: Mapping[str, Modernised]) -> dict[str, Modernised]:
    return {name: made for name, made in results.items() if made.is_changed}


def assert_good(outcomes: Iterable[Outcome]) -> None:
    """Nothing got worse, what trained trains the same, and what is still refused is so for another reason."""
    for one in outcomes:
        if one.before.trained:
            assert one.after.trained, (one.name, one.after.message)
            assert _settings(one.before) == _settings(one.after), one.name
        elif not one.after.trained:
            assert reason_for(one.after.exception, one.after.message), (one.name, one.after.message)


def _settings(verdict: Verdict) -> Mapping[str, Any]:
    """What DeepSpeed took from a config, without the settings that it reads and never looks at."""
    return {key: value for key, value in verdict.seen["settings"].items() if key not in UNUSED_SETTINGS}


@pytest.mark.deepspeed
def test_thirty_files_train_as_before_or_for_the_first_time(
    server: SmokeServer, results: Mapping[str, Modernised]
) -> None:
    changed = changed_ones(results)
    every = max(1, len(changed) // FEW)
    outcomes = list(tried(server, {name: changed[name] for name in list(changed)[::every][:FEW]}))
    assert_good(outcomes)
    assert any(one.after.trained and not one.before.trained for one in outcomes)


@pytest.fixture(scope="module")
def outcomes(server: SmokeServer, results: Mapping[str, Modernised]) -> list[Outcome]:
    if not server.hello["transformers"]:
        pytest.skip("Transformers is not installed")
    return list(tried(server, changed_ones(results)))


@pytest.mark.long
@pytest.mark.deepspeed
class TestTheWholeCorpus:
    def test_all_files_train_as_before_or_for_the_first_time(self, outcomes: list[Outcome]) -> None:
        assert_good(outcomes)

    def test_what_stays_refused_has_no_old_key(self, outcomes: list[Outcome]) -> None:
        reasons, refused = Counter[str](), list[str]()
        refusals = {
            one.name: (one.after.exception, one.after.message) for one in outcomes if not one.after.trained
        }
        changed = {one.name for one in outcomes}
        for name, (exception, message) in (_labelled_refusals(changed) | refusals).items():
            reason = reason_for(exception, message)
            reasons[str(reason)] += 1
            refused += [f"{name}: {reason or message}"]
        print("\n".join([*sorted(refused), *(f"{count} {reason}" for reason, count in reasons.most_common())]))
        print(Counter((one.before.trained, one.after.trained) for one in outcomes), "trained before, after")
        assert "None" not in reasons

    def test_with_batch_sizes_and_without_monitors_nearly_all_of_them_train(
        self, server: SmokeServer, outcomes: list[Outcome], results: Mapping[str, Modernised]
    ) -> None:
        wrong = [REASONS[0].reason, REASONS[2].reason]
        names = [one.name for one in outcomes if reason_for(one.after.exception, one.after.message) in wrong]
        refused = {name for name in names if not self._trains(server, results[name])}
        assert len(names) > 50
        assert refused <= {"0005.json"}, "its optimizer never had that parameter"

    def _trains(self, server: SmokeServer, made: Modernised) -> bool:
        config = dict(hjson.loads(made.source.text))
        for name in ("train_batch_size", "tensorboard", "wandb"):
            config.pop(name, None)
        config |= {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}
        source = Source(made.source.path, json.dumps(config).encode())
        return _trial(server, source, loader_of(Subject(source.path, _text(made.before)))).trained


def _labelled_refusals(changed: set[str]) -> dict[str, tuple[str, str]]:
    """What DeepSpeed refuses, by its label, among the files in which nothing had to change."""
    do_train = trains()
    lines = (CORPUS / "labels.jsonl").read_text("utf-8").splitlines()
    labels = [json.loads(line) for line in lines if line.strip()]
    return {
        label["file"]: (label["exception"], label["message"])
        for label in labels
        if label.get("exception") and label["file"] not in changed and not do_train[label["file"]]
    }
