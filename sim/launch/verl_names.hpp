// Where each of verl's three configurations has the words of a plan.
#pragma once

#include <string_view>

namespace stepcast::sim {

struct VerlNames {
  std::string_view model, fsdp, megatron, optimizer;  // what the words of a part begin with
  std::string_view strategy, usual_strategy, ulysses, padding;
  std::string_view dynamic, tokens, micro_batch;  // tokens: that a micro-batch may have
};

/// Of policies: main_ppo.py.
inline constexpr VerlNames verl_policy_names{
    .model = "actor_rollout_ref.model.",
    .fsdp = "actor_rollout_ref.actor.fsdp_config.",
    .megatron = "actor_rollout_ref.actor.megatron.",
    .optimizer = "actor_rollout_ref.actor.optim.",
    .strategy = "actor_rollout_ref.actor.strategy",
    .usual_strategy = "fsdp",
    .ulysses = "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    .padding = "actor_rollout_ref.model.use_remove_padding",
    .dynamic = "actor_rollout_ref.actor.use_dynamic_bsz",
    .tokens = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    .micro_batch = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"};

/// Of demonstrations: sft_trainer.py.
inline constexpr VerlNames verl_engine_names{.model = "model.",
                                             .fsdp = "engine.",
                                             .megatron = "engine.",
                                             .optimizer = "optim.",
                                             .strategy = "engine.strategy",
                                             .usual_strategy = "fsdp",
                                             .ulysses = "engine.ulysses_sequence_parallel_size",
                                             .padding = "model.use_remove_padding",
                                             .dynamic = "data.use_dynamic_bsz",
                                             .tokens = "data.max_token_len_per_gpu",
                                             .micro_batch = "data.micro_batch_size_per_gpu"};

/// The same by FSDP alone: fsdp_sft_trainer.py, which packs nothing.
inline constexpr VerlNames verl_fsdp_names{.model = "model.",
                                           .fsdp = "model.fsdp_config.",
                                           .megatron = "",
                                           .optimizer = "optim.",
                                           .strategy = "model.strategy",
                                           .usual_strategy = "fsdp2",
                                           .ulysses = "ulysses_sequence_parallel_size",
                                           .padding = "use_remove_padding",
                                           .dynamic = "",
                                           .tokens = "",
                                           .micro_batch = "data.micro_batch_size_per_gpu"};

}  // namespace stepcast::sim
