"""The options of each launcher, as its own parser defines them.

Sources: deepspeed/launcher/runner.py (parse_args), torch/distributed/run.py (get_args_parser),
torch/distributed/launch.py, accelerate/commands/launch.py (launch_command_parser). A test holds the tables
against the installed parsers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class OptionTable:
    """A launcher's options.

    Attributes:
        names: each spelling with its canonical name.
        flags: the canonical names that take no value.
    """

    names: Mapping[str, str]
    flags: frozenset[str]


_DEEPSPEED_VALUED = """
    autotuning bind_core_list enable_each_rank_log exclude hostfile include launcher launcher_args log_level
    master_addr master_port node_rank num_gpus num_nodes ssh_port venv_script
"""
_DEEPSPEED_FLAGS = """
    bind_cores_to_rank force_multi help module no_local_rank no_python no_ssh no_ssh_check quiet save_pid
"""
_DEEPSPEED_SHORT = {
    "-H": "hostfile",
    "-i": "include",
    "-e": "exclude",
    "-q": "quiet",
    "-h": "help",
    "--num_accelerators": "num_gpus",
}

_TORCHRUN_VALUED = """
    duplicate_stderr_filters duplicate_stdout_filters event_log_handler local_addr local_ranks_filter log_dir
    logs_specs master_addr master_port max_restarts monitor_interval nnodes node_rank nproc_per_node
    numa_binding rdzv_backend rdzv_conf rdzv_endpoint rdzv_id redirects role shutdown_timeout
    signals_to_handle start_method tee
"""
_TORCHRUN_FLAGS = "help module no_python run_path standalone virtual_local_rank"
_TORCHRUN_SHORT = {"-m": "module", "-r": "redirects", "-t": "tee", "-h": "help"}

_ACCELERATE_VALUED = """
    aws_access_key_id aws_secret_access_key config_file deepspeed_config_file deepspeed_exclusion_filter
    deepspeed_hostfile deepspeed_inclusion_filter deepspeed_moe_layer_cls_names deepspeed_multinode_launcher
    dynamo_backend dynamo_mode env fp8_amax_compute_algo fp8_amax_history_len fp8_backend
    fp8_enable_fsdp_float8_all_gather fp8_format fp8_interval fp8_margin fp8_opt_level
    fp8_override_linear_precision fp8_pad_inner_dim fsdp_activation_checkpointing
    fsdp_activation_checkpointing_offload fsdp_auto_wrap_policy
    fsdp_backward_prefetch fsdp_cpu_ram_efficient_loading fsdp_forward_prefetch fsdp_min_num_params
    fsdp_offload_params fsdp_reshard_after_forward fsdp_sharding_strategy fsdp_state_dict_type
    fsdp_sync_module_states fsdp_transformer_layer_cls_to_wrap fsdp_use_orig_params fsdp_version gpu_ids
    gradient_accumulation_steps gradient_clipping log_dir machine_rank main_process_ip main_process_port
    main_training_function max_restarts megatron_lm_attention_backend megatron_lm_attention_dropout
    megatron_lm_attention_softmax_in_fp32 megatron_lm_calculate_per_token_loss
    megatron_lm_context_parallel_size megatron_lm_decoder_last_pipeline_num_layers
    megatron_lm_eod_mask_loss megatron_lm_expert_model_parallel_size megatron_lm_expert_tensor_parallel_size
    megatron_lm_gradient_clipping megatron_lm_hidden_dropout megatron_lm_no_load_optim
    megatron_lm_no_save_optim megatron_lm_num_micro_batches megatron_lm_optimizer_cpu_offload
    megatron_lm_overlap_cpu_optimizer_d2h_h2d megatron_lm_pp_degree megatron_lm_recompute_activations
    megatron_lm_recompute_granularity megatron_lm_recompute_method megatron_lm_recompute_num_layers
    megatron_lm_sequence_parallelism megatron_lm_tp_degree megatron_lm_use_custom_fsdp
    megatron_lm_use_distributed_optimizer megatron_lm_use_precision_aware_optimizer
    megatron_lm_use_rotary_position_embeddings mixed_precision monitor_interval mpirun_hostfile
    num_cpu_threads_per_process num_machines num_processes offload_optimizer_device
    offload_optimizer_nvme_path offload_param_device offload_param_nvme_path
    parallelism_config_cp_backend parallelism_config_cp_comm_strategy parallelism_config_cp_size
    parallelism_config_dp_replicate_size parallelism_config_dp_shard_size
    parallelism_config_sp_attn_implementation parallelism_config_sp_backend
    parallelism_config_sp_seq_length parallelism_config_sp_seq_length_is_variable parallelism_config_sp_size
    parallelism_config_tp_size rdzv_backend rdzv_conf role tee vm zero3_init_flag zero3_save_16bit_model
    zero_stage
"""
_ACCELERATE_FLAGS = """
    cpu debug downcast_bf16 dynamo_use_dynamic dynamo_use_fullgraph dynamo_use_regional_compilation
    enable_cpu_affinity fp8_use_autocast_during_eval help module multi_gpu no_python no_tpu_cluster quiet
    same_network tpu tpu_cluster tpu_use_sudo use_deepspeed use_fsdp use_megatron_lm use_parallelism_config
"""
_ACCELERATE_SHORT = {"-q": "quiet", "-t": "tee", "-m": "module", "-h": "help"}


def _table(valued: str, flags: str, others: Mapping[str, str], hyphens: bool) -> OptionTable:
    names = {}
    for name in (*valued.split(), *flags.split()):
        names["--" + name] = name
        if hyphens:
            names["--" + name.replace("_", "-")] = name
    return OptionTable({**names, **others}, frozenset(flags.split()))


@cache
def option_table(launcher: str) -> OptionTable:
    """The options of "deepspeed", "torchrun", "torch.distributed.launch" or "accelerate"."""
    if launcher == "deepspeed":
        return _table(_DEEPSPEED_VALUED, _DEEPSPEED_FLAGS, _DEEPSPEED_SHORT, hyphens=False)
    if launcher == "torchrun":
        return _table(_TORCHRUN_VALUED, _TORCHRUN_FLAGS, _TORCHRUN_SHORT, hyphens=True)
    if launcher == "torch.distributed.launch":
        return _table(_TORCHRUN_VALUED, _TORCHRUN_FLAGS + " use_env", _TORCHRUN_SHORT, hyphens=True)
    return _table(_ACCELERATE_VALUED, _ACCELERATE_FLAGS, _ACCELERATE_SHORT, hyphens=True)
