// Words of nanotron, GPT-NeoX, llm-foundry and NeMo 1, a table each.
#include "sim/launch/other_words.hpp"

namespace stepcast::sim {
namespace {

using enum Use;

// EleutherAI/gpt-neox, megatron/neox_arguments, and mosaicml/llm-foundry, scripts/train/yamls;
// recalled, 2026-11.
constexpr LaunchWord neox_rows[] = {
    {"num_layers", read},
    {"hidden_size", read},
    {"num_attention_heads", read},
    {"num_kv_heads", read},
    {"intermediate_size", read},
    {"seq_length", read},
    {"vocab_size", read},
    {"padded_vocab_size", read},
    {"norm", read},
    {"activation", read},
    {"pos_emb", read},
    {"max_position_embeddings", read},
    {"no_weight_tying", read},
    {"hidden_dropout", read},
    {"attention_config", read},
    {"model_parallel_size", read},
    {"pipe_parallel_size", read},
    {"world_size", read},
    {"train_batch_size", read},
    {"train_micro_batch_size_per_gpu", read},
    {"zero_stage", read},
    {"zero_optimization.stage", read},
    {"checkpoint_activations", read},
    {"precision", read},
    {"bf16.enabled", read},
    {"fp16.enabled", read},
    {"moe_num_experts", unsaid, "experts", "1"},
    {"sparsity_config", unsaid, "sparse attention", "{}"},
    {"*", ignored},
};

constexpr LaunchWord foundry_rows[] = {
    {"model.pretrained_model_name_or_path", read},
    {"model.n_layers", read},
    {"model.d_model", read},
    {"model.n_heads", read},
    {"model.vocab_size", read},
    {"model.expansion_ratio", read},
    {"model.max_seq_len", read},
    {"model.no_bias", read},
    {"model.tie_word_embeddings", read},
    {"model.attn_config.kv_n_heads", read},
    {"model.attn_config.attn_impl", read},
    {"model.attn_config.rope", read},
    {"model.attn_config.alibi", read},
    {"model.ffn_config*", unsaid, "another MLP than MPT's"},
    {"model*", ignored},
    {"max_seq_len", read},
    {"global_train_batch_size", read},
    {"device_train_microbatch_size", read},
    {"precision", read},
    {"fsdp_config.mixed_precision", read},
    {"fsdp_config.sharding_strategy", read},
    {"fsdp_config.activation_checkpointing", read},
    {"fsdp_config.activation_cpu_offload", unsaid, "activations on the host"},
    {"*", ignored},
};

// huggingface/nanotron: config/*.py at its tags v0.1 to v0.5, all of 2024, and at 2411b022
// (2026-04); examples/moe/config_llamoe.py. `since` is the year.
constexpr LaunchWord nanotron_rows[] = {
    {"model.model_config.num_hidden_layers", read},
    {"model.model_config.hidden_size", read},
    {"model.model_config.num_attention_heads", read},
    {"model.model_config.num_key_value_heads", read},
    {"model.model_config.intermediate_size", read},
    {"model.model_config.vocab_size", read},
    {"model.model_config.tie_word_embeddings", read},
    {"model.model_config.moe_config.num_experts", read, {}, {}, 2026},
    {"model.model_config.moe_config.top_k", read, {}, {}, 2026},
    {"model.model_config.moe_config.moe_intermediate_size", read, {}, {}, 2026},
    {"model.model_config.moe_config.enable_shared_expert", read, {}, {}, 2026},
    {"model.model_config.moe_config.shared_expert_intermediate_size", read, {}, {}, 2026},
    {"model.model_config.moe_config.layers", read, {}, {}, 2026},
    {"model.model_config.is_qwen2_config", read, {}, {}, 2026},
    {"model.model_config.attention_bias", read, {}, {}, 2026},
    {"model.model_config.moe_num_experts", read},
    {"model.model_config.num_experts_per_tok", read},
    {"model.model_config.moe_capacity_factor", unsaid, "rows of an expert are limited"},
    {"model.model_config.sliding_window_size", unsaid, "a window of attention"},
    {"model.model_config.no_rope_layer", ignored},
    {"model.model_config*", ignored},
    {"model.dtype", read},
    {"model*", ignored},
    {"parallelism.dp", read},
    {"parallelism.tp", read},
    {"parallelism.pp", read},
    {"parallelism.pp_engine", read},
    {"parallelism.tp_mode", read},
    {"parallelism.context_parallel_size", read, {}, {}, 2026},
    {"parallelism.expert_parallel_size", read},
    {"parallelism.recompute_layer", read, {}, {}, 2026},
    {"parallelism*", ignored},
    {"tokens.sequence_length", read},
    {"tokens.micro_batch_size", read},
    {"tokens.batch_accumulation_per_replica", read},
    {"tokens*", ignored},
    {"optimizer.zero_stage", read},
    {"optimizer.accumulate_grad_in_fp32", read},
    {"optimizer.optimizer_factory.name", read},
    {"optimizer*", ignored},
    {"checkpoints*", ignored},
    {"data*", ignored},
    {"general*", ignored},
    {"lighteval*", ignored},
    {"logging*", ignored},
    {"metrics_logging*", ignored},
    {"profiler*", ignored},
    {"s3_upload*", ignored},
    {"tokenizer*", ignored},
    {"doremi*", ignored},
    {"spectral_mup*", ignored},
    {"kill_switch*", ignored},
};

constexpr LaunchWord nemo_rows[] = {
    {"model.optim.name", read},  {"model.optim*", ignored},   {"model.tokenizer*", ignored},
    {"model.data*", ignored},    {"model.*", read},           {"trainer.devices", read},
    {"trainer.num_nodes", read}, {"trainer.precision", read}, {"trainer*", ignored},
    {"exp_manager*", ignored},   {"run*", ignored},
};

constexpr LaunchWord fsdp_rows[] = {
    {"framework", read},
    {"version", read},
    {"model.name", read},
    {"model.layers", count, "model.layers"},
    {"model.hidden", count, "model.hidden"},
    {"model.heads", count, "model.heads"},
    {"model.kv_heads", count, "model.kv_heads"},
    {"model.head_dim", count, "model.head_dim"},
    {"model.ffn_hidden", count, "model.ffn_hidden"},
    {"model.vocab", count, "model.vocab"},
    {"model.norm", read},
    {"model.activation", read},
    {"model.biases", flag, "model.biases"},
    {"model.tied_embeddings", flag, "model.tied_embeddings"},
    {"model.rope", flag, "model.rope"},
    {"model.max_positions", count, "model.max_positions"},
    {"init_device_mesh.pp", read},
    {"init_device_mesh.dp_replicate", read},
    {"init_device_mesh.dp_shard", read},
    {"init_device_mesh.cp", read},
    {"init_device_mesh.tp", read},
    {"FullyShardedDataParallel.sharding_strategy", read},
    {"FullyShardedDataParallel.mixed_precision.param_dtype", read},
    {"FullyShardedDataParallel.mixed_precision.reduce_dtype", read},
    {"fully_shard.reshard_after_forward", read},
    {"fully_shard.set_modules_to_forward_prefetch", count, "plan.prefetch"},
    {"fully_shard.mp_policy.param_dtype", read},
    {"fully_shard.mp_policy.reduce_dtype", read},
    {"replicate.mp_policy.param_dtype", read},
    {"replicate.mp_policy.reduce_dtype", read},
    {"parallelize_module.sequence_parallel", flag, "plan.sequence_parallel"},
    {"pipelining.schedule", read},
    {"pipelining.layers_per_part", read},
    {"pipelining.n_microbatches", ignored},  // follows from the batches
    {"checkpoint_wrapper.mode", read},
    {"checkpoint_wrapper.every", count, "plan.recompute_every"},
    {"training.sequence_length", count, "model.sequence"},
    {"training.global_batch_size", count, "batch.global"},
    {"training.micro_batch_size", count, "batch.micro_batch"},
    {"training.num_micro_batches", ignored},
    {"training.set_requires_gradient_sync", read},
    {"training.compile", read},
    {"nnodes", ignored},  // the mesh says how many ranks
    {"nproc_per_node", ignored},
    {"node_rank", ignored},
    {"master*", ignored},
};

}  // namespace

LaunchWords nanotron_words() { return nanotron_rows; }
LaunchWords neox_words() { return neox_rows; }
LaunchWords foundry_words() { return foundry_rows; }
LaunchWords nemo_words() { return nemo_rows; }
LaunchWords fsdp_words() { return fsdp_rows; }

}  // namespace stepcast::sim
