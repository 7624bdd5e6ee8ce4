// Names of volcengine/verl at b178a3c (2026-01), huggingface/nanotron at 2411b022 (2026-04).
#include "sim/launch/other_words.hpp"

namespace stepcast::sim {
namespace {

using enum Use;

constexpr LaunchWord verl_rows[] = {
    {"actor_rollout_ref.model.path", read},
    {"actor_rollout_ref.model.lora_rank", read},
    {"actor_rollout_ref.model.enable_gradient_checkpointing", read},
    {"actor_rollout_ref.model.enable_activation_offload", unsaid, "activations on the host"},
    {"actor_rollout_ref.model.use_fused_kernels", unsaid, "head and loss in one kernel"},
    {"actor_rollout_ref.model.use_liger", unsaid, "fused kernels of Liger"},
    {"actor_rollout_ref.model.mtp*", unsaid, "modules for further tokens"},
    {"actor_rollout_ref.model*", ignored},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", read},
    {"actor_rollout_ref.actor.ppo_micro_batch_size*", read},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", read},
    {"actor_rollout_ref.actor.use_dynamic_bsz", read},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", read},
    {"actor_rollout_ref.actor.strategy", read},
    {"actor_rollout_ref.actor.fsdp_config*", read},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.recompute*", read},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.moe*", read},
    {"actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in*", read},
    {"actor_rollout_ref.actor.megatron.override_transformer_config*", ignored},
    {"actor_rollout_ref.actor.megatron*", read},
    {"actor_rollout_ref.actor.optim.override_optimizer_config*", read},
    {"actor_rollout_ref.actor*", ignored},
    {"actor_rollout_ref.rollout.n", read},
    {"actor_rollout_ref*", ignored},
    {"data.train_batch_size", read},
    {"data.max_prompt_length", read},
    {"data.max_response_length", read},
    {"data*", ignored},
    {"trainer.n_gpus_per_node", read},
    {"trainer.nnodes", read},
    {"trainer*", ignored},
    {"algorithm*", ignored},
    {"critic*", ignored},
    {"reward*", ignored},
    {"custom_reward*", ignored},
    {"global_profiler*", ignored},
    {"ray*", ignored},
    {"config_name", read},
    {"config_path", ignored},
};

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

constexpr LaunchWord nanotron_rows[] = {
    {"model.model_config.num_hidden_layers", read},
    {"model.model_config.hidden_size", read},
    {"model.model_config.num_attention_heads", read},
    {"model.model_config.num_key_value_heads", read},
    {"model.model_config.intermediate_size", read},
    {"model.model_config.vocab_size", read},
    {"model.model_config.tie_word_embeddings", read},
    {"model.model_config.moe_config*", read},
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
    {"parallelism.context_parallel_size", read},
    {"parallelism.expert_parallel_size", read},
    {"parallelism.recompute_layer", read},
    {"parallelism*", ignored},
    {"tokens.sequence_length", read},
    {"tokens.micro_batch_size", read},
    {"tokens.batch_accumulation_per_replica", read},
    {"tokens*", ignored},
    {"optimizer.zero_stage", read},
    {"optimizer.accumulate_grad_in_fp32", read},
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

constexpr LaunchWord fsdp_rows[] = {{"*", read}};

}  // namespace

LaunchWords verl_words() { return verl_rows; }
LaunchWords nanotron_words() { return nanotron_rows; }
LaunchWords neox_words() { return neox_rows; }
LaunchWords foundry_words() { return foundry_rows; }
LaunchWords nemo_words() { return nemo_rows; }
LaunchWords fsdp_words() { return fsdp_rows; }

}  // namespace stepcast::sim
