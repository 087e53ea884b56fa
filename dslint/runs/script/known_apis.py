"""What the calls that concern a DeepSpeed run give back: the kinds of things."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "accelerate.Accelerator": "accelerator",
    "accelerate.DeepSpeedPlugin": "deepspeed_plugin",
    "accelerate.utils.DeepSpeedPlugin": "deepspeed_plugin",
    "accelerate.accelerator.Accelerator": "accelerator",
    "accelerate.utils.dataclasses.DeepSpeedPlugin": "deepspeed_plugin",
    "accelerate.utils.deepspeed.DummyOptim": "dummy_optimizer",
    "accelerate.utils.deepspeed.DummyScheduler": "dummy_scheduler",
    "accelerate.utils.DummyOptim": "dummy_optimizer",
    "accelerate.utils.DummyScheduler": "dummy_scheduler",
    "argparse.ArgumentParser": "parser",
    "deepspeed.PipelineModule": "pipeline",
    "deepspeed.init_inference": "inference_engine",
    "deepspeed.pipe.PipelineModule": "pipeline",
    "deepspeed.runtime.pipe.PipelineModule": "pipeline",
    "deepspeed.runtime.pipe.module.PipelineModule": "pipeline",
    "deepspeed.zero.GatheredParameters": "gathered",
    "deepspeed.zero.Init": "zero_init",
    "deepspeed.runtime.zero.GatheredParameters": "gathered",
    "deepspeed.runtime.zero.Init": "zero_init",
    "lightning.Trainer": "lightning_trainer",
    "lightning.pytorch.Trainer": "lightning_trainer",
    "lightning.pytorch.strategies.DeepSpeedStrategy": "lightning_strategy",
    "lightning.pytorch.strategies.deepspeed.DeepSpeedStrategy": "lightning_strategy",
    "peft.get_peft_model": "model",
    "pytorch_lightning.Trainer": "lightning_trainer",
    "pytorch_lightning.strategies.DeepSpeedStrategy": "lightning_strategy",
    "pytorch_lightning.strategies.deepspeed.DeepSpeedStrategy": "lightning_strategy",
    "torch.amp.GradScaler": "grad_scaler",
    "torch.compile": "compiled_model",
    "torch.cuda.amp.GradScaler": "grad_scaler",
    "torch.nn.DataParallel": "parallel_model",
    "torch.nn.parallel.DataParallel": "parallel_model",
    "torch.nn.parallel.DistributedDataParallel": "parallel_model",
    "torch.distributed.fsdp.FullyShardedDataParallel": "parallel_model",
    "torch.utils.data.DataLoader": "loader",
    "torch.utils.data.DistributedSampler": "sampler",
    "torch.utils.data.distributed.DistributedSampler": "sampler",
    "transformers.HfArgumentParser": "hf_parser",
    "transformers.deepspeed.HfDeepSpeedConfig": "hf_deepspeed_config",
    "transformers.integrations.HfDeepSpeedConfig": "hf_deepspeed_config",
    "transformers.integrations.deepspeed.HfDeepSpeedConfig": "hf_deepspeed_config",
    "trl.TrlParser": "hf_parser",
}
"""By dotted name."""

TRAINING_ARGUMENTS: Mapping[str, str] = {
    "TrainingArguments": "transformers",
    "Seq2SeqTrainingArguments": "transformers",
    "SFTConfig": "trl",
    "DPOConfig": "trl",
    "GRPOConfig": "trl",
    "ORPOConfig": "trl",
    "KTOConfig": "trl",
    "CPOConfig": "trl",
    "RewardConfig": "trl",
    "PRMConfig": "trl",
    "BCOConfig": "trl",
    "RLOOConfig": "trl",
    "OnlineDPOConfig": "trl",
    "NashMDConfig": "trl",
    "XPOConfig": "trl",
    "GKDConfig": "trl",
    "IterativeSFTConfig": "trl",
    "PPOConfig": "trl",
    "SentenceTransformerTrainingArguments": "sentence_transformers",
    "CrossEncoderTrainingArguments": "sentence_transformers",
    "SparseEncoderTrainingArguments": "sentence_transformers",
}
"""TrainingArguments and its relatives, with the package whose defaults they have."""

_TRAINERS = ("transformers", "trl", "sentence_transformers", "setfit")
_LAST_NAMES: Mapping[str, str] = {
    "HfDeepSpeedConfig": "hf_deepspeed_config",
    "HfTrainerDeepSpeedConfig": "hf_deepspeed_config",
    "PipelineModule": "pipeline",
    "GatheredParameters": "gathered",
}
"""By the last part of the name, for classes that have moved between modules."""

MODULE_CLASSES = frozenset(
    ["torch.nn.Module", "torch.nn.Sequential", "transformers.PreTrainedModel", "torch.nn.ModuleList"]
)
LIGHTNING_MODULES = frozenset(
    [
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "lightning.pytorch.core.LightningModule",
    ]
)

NO_MODEL = ("Tokenizer", "Config", "Processor", "FeatureExtractor")
"""In names of Transformers classes whose `from_pretrained` gives no model."""


def kind_of(name: str) -> str:
    """What calling something of this dotted name gives; "result" where nobody knows."""
    if name in KINDS:
        return KINDS[name]
    package, _, last = name.rpartition(".")
    top = name.partition(".")[0]
    if last in TRAINING_ARGUMENTS and top in ("transformers", "trl", "sentence_transformers"):
        return "training_args"
    if last.endswith("Trainer") and top in _TRAINERS:
        return "trainer"
    if last in _LAST_NAMES and top in ("deepspeed", "transformers"):
        return _LAST_NAMES[last]
    if package.endswith("lr_scheduler") or (top in ("transformers", "diffusers") and last.endswith("_schedule")):
        return "scheduler"
    if last == "get_scheduler" or last.endswith("_schedule_with_warmup"):
        return "scheduler"
    if _is_optimizer(name, package, last):
        return "optimizer"
    if last in ("from_pretrained", "from_config", "_from_config"):
        return _loaded(package)
    if name.startswith("torch.nn.") and last[:1].isupper():
        return "model"
    return "result"


def _is_optimizer(name: str, package: str, last: str) -> bool:
    if not last[:1].isupper():
        return False
    is_home = package in ("torch.optim", "bitsandbytes.optim", "apex.optimizers", "transformers.optimization")
    return (
        is_home
        or name.startswith(("deepspeed.ops.adam.", "deepspeed.ops.lion.", "deepspeed.ops.lamb."))
        or (name.startswith("deepspeed.ops.adagrad.") or name == "transformers.Adafactor")
    )


def _loaded(class_name: str) -> str:
    """What a class's `from_pretrained` gives."""
    top = class_name.partition(".")[0]
    last = class_name.rpartition(".")[2]
    if top not in ("transformers", "peft", "diffusers", "trl", "AutoModel", "timm"):
        return "result"
    if any(word in last for word in NO_MODEL):
        return "result"
    return "model" if last[:1].isupper() else "result"


def kind_of_instance(bases: tuple[str, ...]) -> str:
    """What an object of a class with these bases is."""
    for base in bases:
        if base in LIGHTNING_MODULES or base.rpartition(".")[2] == "LightningModule":
            return "lightning_module"
        if base in MODULE_CLASSES or (
            base.startswith("transformers.") and base.endswith(("Model", "ForCausalLM"))
        ):
            return "model"
        if base.rpartition(".")[2] == "TrainerCallback":
            return "callback"
        if base in ("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"):
            return "optimizer"
        kind = kind_of(base)
        if kind != "result":
            return kind
    return "instance"


ATTRIBUTES: Mapping[tuple[str, str], str] = {
    ("accelerator", "state"): "accelerator_state",
    ("engine", "module"): "model",
    ("engine", "optimizer"): "engine_optimizer",
    ("engine", "basic_optimizer"): "optimizer",
    ("engine", "lr_scheduler"): "engine_scheduler",
    ("engine", "training_dataloader"): "engine_loader",
    ("parallel_model", "module"): "model",
    ("trainer", "accelerator"): "accelerator",
    ("trainer", "args"): "training_args",
    ("trainer", "model"): "model",
    ("trainer", "model_wrapped"): "engine",
    ("trainer", "deepspeed"): "engine",
    ("trainer", "optimizer"): "trainer_optimizer",
}
"""What the attributes of things are."""

PARAMETER_KINDS: Mapping[str, str] = {
    "deepspeed.DeepSpeedEngine": "engine",
    "deepspeed.runtime.engine.DeepSpeedEngine": "engine",
    "accelerate.Accelerator": "accelerator",
    "transformers.TrainingArguments": "training_args",
    "transformers.Trainer": "trainer",
    "transformers.PreTrainedModel": "model",
    "torch.nn.Module": "model",
}
"""What a parameter with such an annotation is."""
