// What is counted as understood is read: every word of a table that has a meaning changes what is
// made of some file.
#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"
#include "sim/inputs/formats.hpp"
#include "sim/launch/other_words.hpp"
#include "sim/launch/trainer_words.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

using Words = std::vector<std::pair<const char*, const char*>>;
using Bases = std::vector<Words>;

Settings settings_of(const Words& all) {
  Settings out;
  for (const auto& [name, value] : all) out.set(name, value);
  return out;
}

/// All that a reader makes of it.
std::string made_of(const Settings& settings) {
  Facts facts;
  std::string out;
  try {
    add_facts(facts, settings, catalogue(), "a file");
  } catch (const std::exception& error) {
    return error.what();
  }
  for (const Fact& fact : facts.all) out += fact.key + "=" + write_toml_value(fact.value) + "\n";
  for (const std::string& note : facts.notes) out += note + "\n";
  return out + std::to_string(facts.ranks.value_or(0)) + " " + facts.gpu + " " +
         std::to_string(facts.gpus_per_node) + " " + std::to_string(facts.copies) + " " +
         std::to_string(facts.checkpoints) + " " + std::to_string(facts.updates) + " " +
         std::to_string(facts.most_micro_batch);
}

bool has_effect(const std::string& name, const Bases& bases) {
  constexpr const char* values[] = {"2",
                                    "3",
                                    "16",
                                    "true",
                                    "false",
                                    "0.5",
                                    "bf16",
                                    "float32",
                                    "bfloat16",
                                    "fp8",
                                    "full",
                                    "selective",
                                    "none",
                                    "block",
                                    "flex",
                                    "hybridep",
                                    "allgather",
                                    "always",
                                    "never",
                                    "RMSNorm",
                                    "rope",
                                    "cpu",
                                    "all_gather",
                                    "sigmoid",
                                    "learnable",
                                    "[0,1]",
                                    "127,0",
                                    "GPipe",
                                    "op",
                                    "e4m3",
                                    "mxfp8",
                                    "tensorwise",
                                    "optim_grads",
                                    "float8",
                                    "REDUCE_SCATTER",
                                    "afab",
                                    "megatron",
                                    "fsdp2",
                                    "qwen3-8b",
                                    "Qwen/Qwen3-8B",
                                    "llama3_8b",
                                    "lora",
                                    "q_proj",
                                    "auto",
                                    "FSDP",
                                    "DEEPSPEED",
                                    "SHARD_GRAD_OP",
                                    "\"layers.2\"",
                                    "[[\"layers.0\"], [\"layers.1\"]]",
                                    "Ettt|tL",
                                    "swiglu",
                                    "distributed_fused_adam",
                                    "16-mixed",
                                    "GPT2BPETokenizer",
                                    "a_64k.model",
                                    "8B",
                                    "qwen3",
                                    "ds_z3.json",
                                    "gated_delta_net",
                                    "core_attn moe_act",
                                    "ring",
                                    "p2p",
                                    "adamw_8bit",
                                    "muon",
                                    "deepep",
                                    "fp16_mixed",
                                    "bf16_with_fp8_current_scaling_mixed",
                                    "layers_with_norms_behind",
                                    "1",
                                    "H100",
                                    "0:4 10:8",
                                    "squared_relu",
                                    "e2m1",
                                    "flash_attention_2",
                                    "sgd",
                                    "False",
                                    "4",
                                    "NVFP4LinearConverter",
                                    "FullAC",
                                    "foreach",
                                    "[(AdamW), (DistMuon)]",
                                    "dynamic_batching",
                                    "dpo"};
  for (const auto& base : bases) {
    const std::string before = made_of(settings_of(base));
    for (const char* value : values) {
      Settings changed = settings_of(base);
      changed.set(name, value);
      if (made_of(changed) != before) return true;
    }
  }
  return false;
}

struct Law {
  LaunchWords words;
  Bases bases;
  std::set<std::string_view> elsewhere;  // read by another part, which is said
};

void check_law(const Law& law) {
  for (const LaunchWord& word : law.words) {
    if (word.use == Use::ignored || word.use == Use::unsaid) continue;
    if (law.elsewhere.contains(word.name)) continue;
    std::string name(word.name);
    if (name.ends_with('*')) continue;
    INFO(name);
    CHECK(has_effect(name, law.bases));
  }
}

}  // namespace

TEST_CASE("what counts as understood of Megatron-LM changes what is read") {
  const Words dense = {{"num_layers", "4"},
                       {"hidden_size", "512"},
                       {"num_attention_heads", "8"},
                       {"@arguments", "True"},
                       {"bf16", "True"},
                       {"tensor_model_parallel_size", "2"},
                       {"pipeline_model_parallel_size", "2"}};
  const Words bare = {
      {"num_layers", "4"},    {"hidden_size", "512"},    {"num_attention_heads", "8"},
      {"@arguments", "True"}, {"num_query_groups", "2"}, {"exp_avg_dtype", "bf16"},
      {"bf16", "False"}};
  auto experts = dense;
  experts.insert(experts.end(), {{"num_experts", "8"}, {"moe_token_dispatcher_type", "flex"}});
  auto latent = dense;
  latent.insert(latent.end(), {{"kv_lora_rank", "512"}});
  auto latent_on = latent;
  latent_on.push_back({"multi_latent_attention", "True"});
  auto delta = dense;
  delta.insert(delta.end(), {{"experimental_attention_variant", "gated_delta_net"}});
  auto hybrid = dense;
  hybrid.insert(hybrid.end(), {{"hybrid_layer_pattern", "M-*-"}});
  auto other = dense;
  other.insert(other.end(),
               {{"deepspeed", "True"}, {"zero_optimization.stage", "1"}, {"zero_stage", "1"}});
  auto sharded = dense;
  sharded.insert(sharded.end(), {{"use_distributed_optimizer", "True"},
                                 {"use_megatron_fsdp", "True"},
                                 {"window_size", "127,0"},
                                 {"recompute_granularity", "full"},
                                 {"recompute_method", "block"},
                                 {"recompute_num_layers", "2"},
                                 {"optimizer_cpu_offload", "True"},
                                 {"group_query_attention", "True"},
                                 {"use_precision_aware_optimizer", "True"},
                                 {"exp_avg_dtype", "bf16"},
                                 {"fp8", "hybrid"}});
  auto selective = dense;
  selective.insert(selective.end(), {{"recompute_granularity", "selective"},
                                     {"fp8", "hybrid"},
                                     {"first_last_layers_bf16", "True"},
                                     {"use_distributed_optimizer", "True"},
                                     {"position_embedding_type", "learned_absolute"},
                                     {"vocab_size", "1001"},
                                     {"nproc_per_node", "8"}});
  check_law(
      {megatron_words(),
       {dense, bare, experts, latent, latent_on, delta, hybrid, other, sharded, selective},
       // Command lines have these under other names before they are read.
       {"disable_bias_linear", "recompute_activations", "checkpoint_activations", "fp8_format",
        "use_rotary_position_embeddings",
        // Parts of what another word says: --softmax-type, flex, fp4.
        "glu_linear_offset", "activation_func_clamp_value", "moe_enable_deepep", "fp4_recipe"}});
}

TEST_CASE("what counts as understood of torchtitan and Megatron-Bridge changes what is read") {
  const Words toml = {{"training.seq_len", "2048"},
                      {"model.name", "llama3"},
                      {"model.flavor", "8B"},
                      {"parallelism.data_parallel_shard_degree", "2"},
                      {"parallelism.pipeline_parallel_degree", "2"},
                      {"training.local_batch_size", "8"},
                      {"training.global_batch_size", "64"},
                      {"activation_checkpoint.mode", "selective"},
                      {"compile.enable", "true"}};
  auto recipe = toml;
  recipe.insert(recipe.end(), {{"model.converters", "float8"}, {"mesh.dp_shard", "2"}});
  const Words of_2024 = {{"training.seq_len", "2048"},
                         {"model.name", "llama3"},
                         {"model.flavor", "8B"},
                         {"experimental.pipeline_parallel_degree", "2"},
                         {"training.batch_size", "8"}};
  const Words of_2026 = {{"training.max_context_length", "2048"},
                         {"@program", "torchtitan.train"},
                         {"parallelism.pipeline_parallel_degree", "2"},
                         {"nproc_per_node", "8"},
                         {"model_spec", "8B"},
                         {"module", "llama3"}};
  check_law(
      {torchtitan_words(),
       {toml, recipe, of_2024, of_2026, {{"@program", "torchtitan.train"}, {"model_spec", "8B"}}},
       // Goes with enable_fsdp_float8_all_gather.
       {"float8.precompute_float8_dynamic_scale_for_fsdp",
        "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"}});
  const Words overrides = {
      {"train.global_batch_size", "8"},        {"nproc_per_node", "8"},
      {"model.recompute_granularity", "full"}, {"model.moe_token_dispatcher_type", "flex"},
      {"ddp.overlap_grad_reduce", "true"},     {"model.pipeline_model_parallel_size", "2"}};
  const Words provider = {{"model.num_layers", "4"},          {"model.hidden_size", "512"},
                          {"model.num_attention_heads", "8"}, {"train.global_batch_size", "8"},
                          {"model.num_moe_experts", "8"},     {"model.window_size", "(127, 0)"}};
  auto selective = overrides;
  selective.insert(selective.end(), {{"model.recompute_granularity", "selective"},
                                     {"optimizer.optimizer_cpu_offload", "true"},
                                     {"optimizer.use_precision_aware_optimizer", "true"}});
  std::erase_if(selective, [](const auto& said) { return said.second == std::string("full"); });
  auto hybrid = provider;
  hybrid.push_back({"model.hybrid_layer_pattern", "M-*-"});
  auto adapters = overrides;
  adapters.push_back({"peft.dim", "8"});
  auto moments = overrides;
  moments.push_back({"optimizer.exp_avg_dtype", "torch.bfloat16"});
  check_law(
      {bridge_words(),
       {overrides, provider, selective, hybrid, adapters, moments, {{"@program", "run_recipe.py"}}},
       {}});
}

TEST_CASE("what counts as understood of verl, nanotron, GPT-NeoX, llm-foundry and NeMo is read") {
  const Words verl = {{"actor_rollout_ref.model.path", "qwen3-8b"}, {"trainer.nnodes", "2"}};
  auto by_megatron = verl;
  by_megatron.push_back({"actor_rollout_ref.actor.strategy", "megatron"});
  auto dynamic = verl;
  dynamic.push_back({"actor_rollout_ref.actor.use_dynamic_bsz", "True"});
  dynamic.push_back({"actor_rollout_ref.actor.ppo_mini_batch_size", "2"});
  auto second = verl;
  second.push_back({"actor_rollout_ref.actor.strategy", "fsdp2"});
  second.push_back({"actor_rollout_ref.model.lora_rank", "8"});
  auto selective = by_megatron;
  const std::string megatron = "actor_rollout_ref.actor.megatron.override_transformer_config.",
                    optimizer = "actor_rollout_ref.actor.optim.override_optimizer_config.";
  const std::string kind = megatron + "recompute_granularity",
                    offload = optimizer + "optimizer_cpu_offload",
                    dispatcher = megatron + "moe_token_dispatcher_type";
  selective.insert(selective.end(),
                   {{kind.c_str(), "selective"},
                    {offload.c_str(), "True"},
                    {dispatcher.c_str(), "flex"},
                    {"actor_rollout_ref.actor.megatron.tensor_model_parallel_size", "2"}});
  auto full = by_megatron;
  full.push_back({kind.c_str(), "full"});
  check_law({verl_words(), {verl, by_megatron, dynamic, second, selective, full}, {}});
  const Words old = {{"@program", "verl.trainer.fsdp_sft_trainer"},
                     {"model.partial_pretrain", "qwen3-8b"},
                     {"model.fsdp_config.cpu_offload", "true"}},
              engine = {{"@program", "verl.trainer.sft_trainer"}, {"model.path", "qwen3-8b"}};
  Words offloads = old, adapted = engine, cut = engine;
  offloads.push_back({"model.fsdp_config.offload_params", "true"});
  adapted.insert(adapted.end(), {{"model.lora_rank", "8"},
                                 {"engine.strategy", "fsdp2"},
                                 {"nproc_per_node", "8"},
                                 {"data.use_dynamic_bsz", "false"}});
  cut.insert(cut.end(), {{"engine", "megatron"},
                         {"engine.tensor_model_parallel_size", "2"},
                         {"engine.override_transformer_config.recompute_granularity", "selective"},
                         {"engine.override_transformer_config.moe_token_dispatcher_type", "flex"},
                         {"optim.override_optimizer_config.optimizer_cpu_offload", "true"}});
  Words whole = cut;
  whole.push_back({"engine.override_transformer_config.recompute_granularity", "full"});
  check_law({verl_sft_words(), {old, engine, offloads, adapted, cut, whole}, {}});
  const Words nanotron = {{"parallelism.dp", "8"},
                          {"parallelism.tp", "2"},
                          {"tokens.sequence_length", "512"},
                          {"model.model_config.num_hidden_layers", "4"},
                          {"model.dtype", "bfloat16"}};
  auto experts = nanotron;
  experts.push_back({"model.model_config.moe_num_experts", "8"});
  auto qwen = nanotron;
  qwen.insert(qwen.end(), {{"model.model_config.moe_config.num_experts", "8"},
                           {"model.model_config.moe_config.enable_shared_expert", "true"},
                           {"model.model_config.is_qwen2_config", "true"}});
  auto biased = nanotron;
  biased.push_back({"model.model_config.attention_bias", "true"});
  check_law({nanotron_words(), {nanotron, experts, qwen, biased}, {}});
  const Words neox = {{"pipe_parallel_size", "1"}, {"num_layers", "4"}, {"hidden_size", "512"}};
  auto others = neox;
  for (const auto& said : {std::pair{"norm", "rmsnorm"},
                           {"activation", "swiglu"},
                           {"attention_config", "[[['flash'], 4]]"},
                           {"pos_emb", "rotary"}})
    others.push_back(said);
  check_law({neox_words(), {neox, others}, {}});
  const Words foundry = {
      {"device_train_microbatch_size", "1"}, {"model.d_model", "512"}, {"precision", "amp_bf16"}};
  auto sharded = foundry;
  for (const auto& said : {std::pair{"model.max_seq_len", "512"},
                           {"model.attn_config.attn_impl", "flash"},
                           {"fsdp_config.mixed_precision", "PURE"}})
    sharded.push_back(said);
  check_law({foundry_words(), {foundry, sharded}, {}});
  const Words nemo = {{"model.num_layers", "4"},
                      {"trainer.devices", "8"},
                      {"model.tensor_model_parallel_size", "2"}};
  check_law({nemo_words(), {nemo}, {}});
  const auto fsdp = [](const char* call, const char* value) {
    return std::vector<std::pair<const char*, const char*>>{
        {"framework", "pytorch-fsdp2"},     {"init_device_mesh.tp", "2"},
        {"init_device_mesh.pp", "2"},       {"init_device_mesh.dp_replicate", "2"},
        {"init_device_mesh.dp_shard", "2"}, {call, value}};
  };
  check_law({fsdp_words(),
             {fsdp("fully_shard.reshard_after_forward", "true"),
              fsdp("FullyShardedDataParallel.sharding_strategy", "FULL_SHARD")},
             {}});
}

TEST_CASE("what counts as understood of the stacks around transformers changes what is read") {
  using Base = std::vector<std::pair<const char*, const char*>>;
  const Base machine = {{"num_processes", "8"}, {"per_device_train_batch_size", "2"}};
  const auto with = [](Base base, const Base& more) {
    base.insert(base.end(), more.begin(), more.end());
    return base;
  };
  const Base trl = {{"model_name_or_path", "qwen3-8b"}, {"per_device_train_batch_size", "2"}};
  const Base fsdp = with(trl, {{"distributed_type", "FSDP"}, {"fsdp_config.fsdp_version", "2"}});
  const Base zero =
      with(trl, {{"distributed_type", "DEEPSPEED"}, {"deepspeed_config.zero_stage", "3"}});
  const Base lora = with(trl, {{"use_peft", "true"}, {"load_in_4bit", "true"}});
  const Base kept = with(fsdp, {{"gradient_checkpointing", "false"}});
  const Base eight = with(trl, {{"use_peft", "true"}});
  const Base bare = {{"per_device_train_batch_size", "2"}, {"num_gpus", "8"}};
  check_law({trainer_words(), {trl, fsdp, zero, lora, kept, eight, bare}, {}});
  const Base mesh = with(fsdp, {{"parallelism_config.parallelism_config_dp_shard_size", "2"}});
  check_law({accelerate_words(),
             {trl, fsdp, zero, mesh, with(trl, {{"num_machines", "2"}}),
              with(trl, {{"num_processes", "16"}}), with(trl, {{"nproc_per_node", "8"}})},
             {"config_file"}});  // a file that is read beside
  const Base ds = {{"train_batch_size", "64"},
                   {"zero_optimization.stage", "3"},
                   {"train_micro_batch_size_per_gpu", "2"}};
  check_law({deepspeed_words(),
             {ds,
              {{"train_micro_batch_size_per_gpu", "2"}},
              zero,
              with({{"train_batch_size", "64"}, {"bf16.enabled", "true"}},
                   {{"zero_optimization.stage", "1"}})},
             {}});
  const Base chat = {{"model_name_or_path", "qwen3-8b"}, {"data_split", "2,4,4"}};
  const Base actor = {{"actor_model_name_or_path", "qwen3-8b"}, {"actor_zero_stage", "3"}};
  check_law({deepspeed_chat_words(),
             {chat, actor, with(chat, {{"only_optimize_lora", "true"}}),
              with(actor, {{"only_optimize_lora", "true"}}), with(chat, {{"num_gpus", "8"}}),
              with(chat, {{"zero_stage", "3"}})},
             {}});
  const Base axolotl = {{"base_model", "qwen3-8b"}, {"micro_batch_size", "2"}};
  check_law({axolotl_words(),
             {axolotl, with(axolotl, {{"adapter", "lora"}}),
              with(axolotl, {{"fsdp_version", "2"}, {"fsdp_config.reshard_after_forward", "true"}}),
              with(axolotl, {{"deepspeed", "ds_z3.json"}}),
              with(axolotl, {{"fsdp_version", "2"}, {"dp_shard_size", "2"}})},
             {}});
  const Base factory = {
      {"model_name_or_path", "qwen3-8b"}, {"finetuning_type", "lora"}, {"cutoff_len", "512"}};
  check_law({llama_factory_words(),
             {factory,
              with(factory, {{"quantization_bit", "4"}}),
              {{"model_name_or_path", "qwen3-8b"}, {"finetuning_type", "oft"}},
              with(factory, {{"do_predict", "true"}}),
              with(factory,
                   {{"tensor_model_parallel_size", "2"}, {"pipeline_model_parallel_size", "1"}})},
             {}});
  const Base v1 = {{"model", "qwen3-8b"}, {"cutoff_len", "512"}, {"dist_config.name", "fsdp2"}};
  check_law({llama_factory_v1_words(),
             {v1,
              with(v1, {{"peft_config.name", "lora"}}),
              with(v1, {{"mp_replicate_size", "2"}}),
              with(v1, {{"peft_config.name", "lora"}, {"quant_config.name", "bnb"}}),
              with(v1, {{"NPROC_PER_NODE", "8"}}),
              {{"model", "qwen3-8b"}, {"cutoff_len", "512"}, {"dist_config.name", "deepspeed"}}},
             {}});
  const Base swift = {{"tuner_type", "lora"}, {"model", "qwen3-8b"}};
  const Base by_megatron = {{"@program", "megatron sft"},
                            {"model", "qwen3-30b-a3b"},
                            {"tensor_model_parallel_size", "2"}};
  check_law({swift_words(),
             {swift, by_megatron,
              with(by_megatron,
                   {{"pipeline_model_parallel_size", "1"}, {"expert_model_parallel_size", "2"}}),
              with(swift, {{"NPROC_PER_NODE", "8"}})},
             {}});
}
