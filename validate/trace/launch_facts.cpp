#include "validate/trace/launch_facts.hpp"

#include <algorithm>
#include <functional>

#include "validate/trace/numbers.hpp"

namespace stepcast::validate {
namespace {

/// Facts of one document under one source.
class Document {
 public:
  Document(Facts& facts, const Settings& settings, const std::string& source)
      : facts_(facts), settings_(settings), source_(source) {}

  void set(const char* key, std::int64_t number) { facts_.set(key, {number, ""}, source_); }
  void set(const char* key, bool flag) { facts_.set(key, {flag, ""}, source_); }
  void set(const char* key, const std::string& word) {
    facts_.set(key, sim::toml_text(word, ""), source_);
  }
  void number(const char* name, const char* key) {
    if (const auto value = settings_.integer(name)) set(key, *value);
  }
  std::string word(const char* name) const {
    const std::string* found = settings_.find(name);
    return found == nullptr ? "" : *found;
  }
  bool on(const char* name) const { return settings_.flag(name) == true; }

 private:
  Facts& facts_;
  const Settings& settings_;
  const std::string& source_;
};

std::string scenario_dtype(const std::string& name) {
  for (const auto& [torch, ours] : {std::pair{"float32", "fp32"},
                                    {"float16", "fp16"},
                                    {"bfloat16", "bf16"},
                                    {"float8_e4m3fn", "fp8"}})
    if (name == torch) return ours;
  return name;
}

void set_ranks(Facts& facts, std::int64_t ranks, const std::string& source) {
  facts.ranks = ranks;
  facts.ranks_source = source;
}

/// Degrees of the mesh; a copy of the sharded state spans dp_shard x cp ranks.
void fsdp_mesh(Facts& facts, const Settings& settings, Document& document,
               const std::string& source) {
  const auto degree = [&](const char* name) {
    return settings.integer(std::string("init_device_mesh.") + name).value_or(1);
  };
  document.set("plan.tensor", degree("tp"));
  document.set("plan.pipeline", degree("pp"));
  document.set("plan.context", degree("cp"));
  const std::int64_t shards = degree("dp_shard") * degree("cp");
  if (degree("dp_replicate") > 1 && shards > 1) document.set("plan.shard_degree", shards);
  set_ranks(facts, degree("tp") * degree("pp") * shards * degree("dp_replicate"), source);
}

/// Of whichever of the three calls is there.
void fsdp_sharding(Document& document) {
  const std::string strategy = document.word("FullyShardedDataParallel.sharding_strategy");
  const std::string reshard = document.word("fully_shard.reshard_after_forward");
  const bool full = strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD" || reshard == "true";
  const bool none = strategy == "NO_SHARD" || (strategy.empty() && reshard.empty());
  document.set("plan.data", std::string(none ? "ddp" : full ? "zero3" : "zero2"));
  for (const char* call : {"FullyShardedDataParallel.mixed_precision.", "fully_shard.mp_policy.",
                           "replicate.mp_policy."})
    for (const auto& [name, key] : {std::pair{"param_dtype", "precision.compute"},
                                    {"reduce_dtype", "precision.gradient_reduce"}})
      if (const std::string dtype = document.word((std::string(call) + name).c_str());
          !dtype.empty())
        document.set(key, scenario_dtype(dtype));
  document.number("fully_shard.set_modules_to_forward_prefetch", "plan.prefetch");
}

}  // namespace

std::vector<std::int64_t> numbers_in(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  std::vector<std::int64_t> out;
  for (std::size_t at = text.find_first_of(digits); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(digits, at), text.size());
    if (const auto number = integer_of(text.substr(at, end - at))) out.push_back(*number);
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
  sim::TomlValue::Array all;
  for (const std::int64_t one : layers) all.push_back({one, ""});
  facts.set("plan.stage_layers", {std::move(all), ""}, source);
}

void add_deepspeed_facts(Facts& facts, const Settings& settings, const std::string& source) {
  Document document(facts, settings, source);
  document.number("train_batch_size", "batch.global");
  document.number("train_micro_batch_size_per_gpu", "batch.micro_batch");
  if (const auto stage = settings.integer("zero_optimization.stage"))
    document.set("plan.data", *stage == 0 ? std::string("ddp") : "zero" + std::to_string(*stage));
  const std::string compute = document.on("bf16.enabled")   ? "bf16"
                              : document.on("fp16.enabled") ? "fp16"
                                                            : "fp32";
  document.set("precision.compute", compute);
  // config.py: gradients are summed as they are unless it is said.
  const std::string reduce = document.word("communication_data_type");
  document.set("precision.gradient_reduce", reduce.empty() ? compute : reduce);
  const sim::TomlValue* framework = facts.find("software.framework");
  if (framework != nullptr && *framework->text() == "megatron-deepspeed") return;
  document.set("software.framework", std::string("deepspeed"));
  const bool recomputes = settings.has("activation_checkpointing.number_checkpoints");
  document.set("plan.recompute", std::string(recomputes ? "full" : "none"));
}

void add_fsdp_facts(Facts& facts, const Settings& settings, const std::string& source) {
  Document document(facts, settings, source);
  for (const char* key :
       {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab"})
    document.number((std::string("model.") + key).c_str(), (std::string("model.") + key).c_str());
  for (const auto& [name, key] : {std::pair{"model.name", "model.name"},
                                  {"framework", "software.framework"},
                                  {"checkpoint_wrapper.mode", "plan.recompute"},
                                  {"training.set_requires_gradient_sync", "plan.reduce"}})
    if (const std::string word = document.word(name); !word.empty()) document.set(key, word);
  for (const auto& [name, key] : {std::pair{"training.sequence_length", "model.sequence"},
                                  {"training.global_batch_size", "batch.global"},
                                  {"training.micro_batch_size", "batch.micro_batch"},
                                  {"checkpoint_wrapper.every", "plan.recompute_every"}})
    document.number(name, key);
  document.set("plan.sequence_parallel", document.on("parallelize_module.sequence_parallel"));
  fsdp_mesh(facts, settings, document, source);
  fsdp_sharding(document);
  const std::string schedule = document.word("pipelining.schedule");
  if (!schedule.empty())
    document.set("plan.schedule", std::string(schedule == "ScheduleGPipe" ? "gpipe" : "1f1b"));
  set_parts(facts, numbers_in(document.word("pipelining.layers_per_part")), source);
}

}  // namespace stepcast::validate
