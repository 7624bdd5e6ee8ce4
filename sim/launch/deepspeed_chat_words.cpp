// Arguments of DeepSpeed-Chat's main.py, its steps 1 to 3, at microsoft/DeepSpeedExamples 83757d9
// (2025-02). What deepspeed_chat_facts.cpp makes of the third's names has no row of its own
// meaning.
#include "sim/launch/trainer_words.hpp"

namespace stepcast::sim {
namespace {

using enum Use;

constexpr LaunchWord rows[] = {
    {"model_name_or_path", read, "model"},
    {"actor_model_name_or_path", read, "model"},
    {"max_seq_len", count, "model.sequence", "512"},
    {"max_prompt_seq_len", read, "prompt", "256"},
    {"max_answer_seq_len", read, "answer", "256"},
    {"per_device_train_batch_size", read, "micro", "16"},
    {"per_device_training_batch_size", read, "micro", "16"},
    {"gradient_accumulation_steps", read, "accumulation", "1"},
    {"gradient_checkpointing", read, "recompute", "False"},
    {"actor_gradient_checkpointing", read, "recompute"},
    {"dtype", read, "mixed_precision", "fp16"},
    {"zero_stage", read, "zero_stage", "0"},
    {"actor_zero_stage", read, "zero_stage"},
    {"offload", read, "offload_states"},
    {"lora_dim", read, "lora_rank"},
    {"actor_lora_dim", read, "lora_rank"},
    {"only_optimize_lora", read, "adapted"},
    {"num_gpus", read, "processes_per_node"},
    {"num_nodes", read, "nodes"},
    {"deepspeed", ignored},  // it trains no other way
    {"enable_mixed_precision_lora", unsaid, "ZeRO++: narrower collectives"},
    {"lora*", ignored},
    {"actor_lora*", ignored},
    {"critic_*", ignored},  // named whole
    {"enable_hybrid_engine", ignored},
    {"inference_tp_size", ignored},
    {"tp_gather_partition_size", ignored},
    {"offload_reference_model", ignored},
    {"offload_reward_model", ignored},
    {"unsupervised*", unsaid, "a second loss on texts"},
    {"enable_ema", unsaid, "a second copy of the weights, averaged"},
    {"per_device_generation_batch_size", ignored},
    {"generation_batches", ignored},
    {"ppo_epochs", ignored},
    {"actor_learning_rate", ignored},
    {"actor_weight_decay", ignored},
    {"actor_dropout", unsaid, "dropout"},
    {"dropout", unsaid, "dropout", "0"},
    {"compute_fp32_loss", unsaid, "logits in fp32"},
    {"num_warmup_steps", ignored},
    {"enable_tensorboard", ignored},
    {"tensorboard_path", ignored},
    {"enable_test_mode", ignored},
    {"test_stop_step", ignored},
    {"print_answers*", ignored},
    {"add_eot_token", ignored},
    {"eot_token", ignored},
    {"sft_only_data_path", ignored},
    {"align_overflow", ignored},
};

}  // namespace

LaunchWords deepspeed_chat_words() { return rows; }

}  // namespace stepcast::sim
