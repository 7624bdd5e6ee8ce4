#include "sim/inputs/launch_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "sim/inputs/translator.hpp"
#include "sim/launch/forms.hpp"

namespace stepcast::sim {
namespace {

std::string scenario_dtype(const std::string& name) {
  for (const auto& [torch, ours] : {std::pair{"float32", "fp32"},
                                    {"float16", "fp16"},
                                    {"bfloat16", "bf16"},
                                    {"float8_e4m3fn", "fp8"}})
    if (name == torch) return ours;
  return name;
}

class JsonFacts : public Translator {
 public:
  using Translator::Translator;
  void deepspeed();
  void fsdp();

 private:
  void number(const char* setting, const std::string& key) {
    if (const auto value = integer(setting)) set(key, *value);
  }
  void offload();
  void buckets(const std::string& compute);
  void mesh();
  void sharding();
};

void JsonFacts::deepspeed() {
  number("train_batch_size", "batch.global");
  number("train_micro_batch_size_per_gpu", "batch.micro_batch");
  const auto micro = integer("train_micro_batch_size_per_gpu");
  if (micro && !integer("train_batch_size"))
    facts_.set(
        "batch.local",
        {static_cast<double>(*micro * integer("gradient_accumulation_steps").value_or(1)), ""},
        source_);
  if (word("train_micro_batch_size_per_gpu") == "auto" || word("train_batch_size") == "auto")
    note(
        "\"auto\" is the trainer's to say: its file beside this one, or --micro-batch and "
        "--local-batch.");
  offload();
  if (const std::string* name = find("optimizer.type")) optimizer_called(*name);
  if (const auto stage = integer("zero_optimization.stage"))
    set("plan.data", *stage == 0 ? std::string("ddp") : "zero" + std::to_string(*stage));
  const bool open = word("bf16.enabled") == "auto";  // most trainers say bf16
  const std::string compute = on("bf16.enabled") || open ? "bf16"
                              : on("fp16.enabled")       ? "fp16"
                                                         : "fp32";
  set("precision.compute", compute);
  // config.py: gradients are summed as they are unless it is said.
  const std::string reduce = word("communication_data_type");
  set("precision.gradient_reduce", reduce.empty() ? compute : reduce);
  const TomlValue* framework = facts_.find("software.framework");
  if (framework != nullptr && *framework->text() == "megatron-deepspeed") return;
  set("software.framework", std::string("deepspeed"));
  buckets(compute);
  const bool recomputes = find("activation_checkpointing.number_checkpoints") != nullptr;
  facts_.checkpoints = integer("activation_checkpointing.number_checkpoints").value_or(0);
  set("plan.recompute", std::string(recomputes ? "full" : "none"));
}

/// Of gradients, up to stage 2: stage 3 reduces them unit by unit.
void JsonFacts::buckets(const std::string& compute) {
  const std::int64_t stage = integer("zero_optimization.stage").value_or(0);
  if (stage < 1 || stage > 2) return;
  if (const auto overlaps = settings_.flag("zero_optimization.overlap_comm"))
    set("software.gradient_overlap", *overlaps);
  const std::int64_t bytes = compute == "fp32" ? 4 : 2;
  constexpr std::int64_t usual = 500'000'000, most = 1'000'000'000'000;
  const auto elements = integer("zero_optimization.reduce_bucket_size");
  if (elements && *elements != usual && *elements > 0 && *elements < most)
    set("software.ddp_bucket_bytes", fmt::format("{} B", *elements * bytes));
}

/// To the processor or to a disk behind it.
void JsonFacts::offload() {
  const auto off = [&](const char* setting) {
    const std::string device = word(setting);
    return device == "cpu" || device == "nvme";
  };
  if (off("zero_optimization.offload_optimizer.device") || on("zero_optimization.cpu_offload"))
    facts_.set("plan.optimizer_offload", {1.0, ""}, source_);
  if (off("zero_optimization.offload_param.device"))
    facts_.set("plan.parameter_offload", {1.0, ""}, source_);
}

/// A copy of the sharded state spans dp_shard x cp ranks.
void JsonFacts::mesh() {
  const auto degree = [&](const char* setting) { return integer(setting).value_or(1); };
  const std::int64_t tensor = degree("init_device_mesh.tp"), stages = degree("init_device_mesh.pp"),
                     context = degree("init_device_mesh.cp"),
                     copies = degree("init_device_mesh.dp_replicate"),
                     shards = degree("init_device_mesh.dp_shard") * context;
  set("plan.tensor", tensor);
  set("plan.pipeline", stages);
  set("plan.context", context);
  if (copies > 1 && shards > 1) set("plan.shard_degree", shards);
  ranks(tensor * stages * shards * copies);
}

/// Of whichever of the three calls is there.
void JsonFacts::sharding() {
  const std::string strategy = word("FullyShardedDataParallel.sharding_strategy");
  const std::string reshard = word("fully_shard.reshard_after_forward");
  const bool full = strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD" || reshard == "true";
  const bool none = strategy == "NO_SHARD" || (strategy.empty() && reshard.empty());
  set("plan.data", std::string(none ? "ddp" : full ? "zero3" : "zero2"));
  for (const auto& [setting, key] :
       {std::pair{"FullyShardedDataParallel.mixed_precision.param_dtype", "precision.compute"},
        {"FullyShardedDataParallel.mixed_precision.reduce_dtype", "precision.gradient_reduce"},
        {"fully_shard.mp_policy.param_dtype", "precision.compute"},
        {"fully_shard.mp_policy.reduce_dtype", "precision.gradient_reduce"},
        {"replicate.mp_policy.param_dtype", "precision.compute"},
        {"replicate.mp_policy.reduce_dtype", "precision.gradient_reduce"}})
    if (const std::string dtype = word(setting); !dtype.empty()) set(key, scenario_dtype(dtype));
  number("fully_shard.set_modules_to_forward_prefetch", "plan.prefetch");
}

void JsonFacts::fsdp() {
  for (const char* key :
       {"model.layers", "model.hidden", "model.heads", "model.kv_heads", "model.head_dim",
        "model.ffn_hidden", "model.vocab", "model.max_positions"})
    number(key, key);
  for (const char* key : {"model.biases", "model.tied_embeddings", "model.rope"})
    if (find(key) != nullptr) set(key, on(key));
  for (const auto& [setting, key] : {std::pair{"model.name", "model.name"},
                                     {"model.norm", "model.norm"},
                                     {"model.activation", "model.activation"},
                                     {"framework", "software.framework"},
                                     {"version", "software.version"},
                                     {"checkpoint_wrapper.mode", "plan.recompute"},
                                     {"training.set_requires_gradient_sync", "plan.reduce"}})
    if (const std::string said = word(setting); !said.empty()) set(key, said);
  for (const auto& [setting, key] : {std::pair{"training.sequence_length", "model.sequence"},
                                     {"training.global_batch_size", "batch.global"},
                                     {"training.micro_batch_size", "batch.micro_batch"},
                                     {"checkpoint_wrapper.every", "plan.recompute_every"}})
    number(setting, key);
  if (on("training.compile")) set("software.fusion", std::string("compiled"));
  set("plan.sequence_parallel", on("parallelize_module.sequence_parallel"));
  mesh();
  sharding();
  const std::string schedule = word("pipelining.schedule");
  if (!schedule.empty()) set("plan.schedule", schedule_of_torch(schedule));
  set_parts(facts_, numbers_in(word("pipelining.layers_per_part")), source_);
}

}  // namespace

/// transformers' OptimizerNames, axolotl's own, classes of torch, bitsandbytes and DeepSpeed (its
/// runtime/config.py at edaa7221; the others recalled, 2026).
void Translator::optimizer_called(const std::string& theirs) {
  std::string name = theirs;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  const bool adamw = name == "adam" || has("adamw"), narrow = has("8bit");
  if (has("paged"))
    note(fmt::format("{}: its moments stay on the GPU while there is room, and are counted there.",
                     theirs));
  if (narrow)
    set("plan.optimizer", std::string("adam_8bit"));
  else if (has("adafactor"))
    set("plan.optimizer", std::string("adafactor"));
  else if (has("muon"))
    set("plan.optimizer", std::string("muon"));
  else if (name == "sgd")
    set("plan.optimizer", std::string("sgd"));
  else if (!adamw || has("4bit") || has("galore") || has("apollo"))
    note(fmt::format("{}: no key expresses this optimizer, Adam is taken.", theirs));
  if (narrow && !adamw && name != "adam8bit")
    note(fmt::format("{} is taken for Adam with moments of 8 bits.", theirs));
}

bool Translator::adapter_targets(const std::string& list, bool gated) {
  const auto has = [&](std::string_view part) { return list.find(part) != std::string::npos; };
  TomlValue::Array targets;
  for (const auto& [target, fused] : {std::pair{"q", "linear_qkv"},
                                      {"k", "linear_qkv"},
                                      {"v", "linear_qkv"},
                                      {"o", "linear_proj"},
                                      {"gate", "linear_fc1"},
                                      {"up", "linear_fc1"},
                                      {"down", "linear_fc2"}})
    if ((list.empty() || has("all") || has(std::string(target) + "_proj") || has(fused)) &&
        (gated || target != std::string_view("gate")))
      targets.push_back(toml_text(target, ""));
  if (!targets.empty()) facts_.set("model.lora_targets", {std::move(targets), ""}, source_);
  return list.empty() || has("all") || has("linear_fc") || has("up_proj") || has("down_proj");
}

std::string schedule_of_torch(const std::string& name) {
  using workloads::Schedule;
  if (name.ends_with(".csv")) return name;
  if (name == "gpipe" || name.ends_with("GPipe")) return std::string(name_of(Schedule::gpipe));
  for (const Schedule schedule : {Schedule::zb_h1, Schedule::zb_v, Schedule::dualpipe_v})
    if (name.ends_with(torch_schedule(schedule))) return std::string(name_of(schedule));
  return std::string(name_of(Schedule::one_f_one_b));
}

std::vector<std::int64_t> numbers_in(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  std::vector<std::int64_t> out;
  for (std::size_t at = text.find_first_of(digits); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(digits, at), text.size());
    if (const auto number = integer_in(text.substr(at, end - at))) out.push_back(*number);
    at = text.find_first_of(digits, end);
  }
  return out;
}

void set_parts(Facts& facts, const std::vector<std::int64_t>& layers, const std::string& source) {
  const auto parts = static_cast<std::int64_t>(layers.size());
  const std::int64_t stages = facts.integer("plan.pipeline").value_or(1);
  if (stages < 1 || parts < 1 || parts % stages != 0) return;
  facts.set("plan.virtual_stages", {parts / stages, ""}, source);
  if (std::ranges::adjacent_find(layers, std::not_equal_to()) == layers.end()) return;
  TomlValue::Array all;
  for (const std::int64_t one : layers) all.push_back({one, ""});
  facts.set("plan.stage_layers", {std::move(all), ""}, source);
}

void add_deepspeed_facts(Facts& facts, const Settings& settings, const std::string& source) {
  JsonFacts(facts, settings, "", source).deepspeed();
}

void add_fsdp_facts(Facts& facts, const Settings& settings, const std::string& source) {
  JsonFacts(facts, settings, "", source).fsdp();
}

}  // namespace stepcast::sim
