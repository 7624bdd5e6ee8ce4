// Configurations of frameworks under their own names, as facts about the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/check.hpp"
#include "validate/trace/facts.hpp"

namespace stepcast::validate {
namespace {

sim::TomlValue value(std::int64_t number) { return {number, ""}; }
sim::TomlValue value(bool flag) { return {flag, ""}; }
sim::TomlValue value(std::string text) { return sim::toml_text(std::move(text), ""); }

struct Rename {
  const char *setting, *key;
};

// megatron/training/arguments.py (core_v0.8 to v0.14); NeMo 1.23 has the same names under model:.
constexpr Rename megatron_numbers[] = {
    {"num_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"num_attention_heads", "model.heads"},
    {"kv_channels", "model.head_dim"},
    {"ffn_hidden_size", "model.ffn_hidden"},
    {"seq_length", "model.sequence"},
    {"encoder_seq_length", "model.sequence"},
    {"tensor_model_parallel_size", "plan.tensor"},
    {"pipeline_model_parallel_size", "plan.pipeline"},
    {"context_parallel_size", "plan.context"},
    {"virtual_pipeline_model_parallel_size", "plan.virtual_stages"},
    {"global_batch_size", "batch.global"},
    {"micro_batch_size", "batch.micro_batch"},
};
constexpr Rename megatron_flags[] = {
    {"sequence_parallel", "plan.sequence_parallel"},
    {"add_bias_linear", "model.biases"},
    {"bias", "model.biases"},
    {"overlap_grad_reduce", "software.gradient_overlap"},
    {"overlap_param_gather", "software.gather_overlap"},
};
// torchtitan's job_config.py (v0.1 and v0.2) and the fields of its models' arguments.
constexpr Rename torchtitan_numbers[] = {
    {"args.n_layers", "model.layers"},
    {"args.dim", "model.hidden"},
    {"args.n_heads", "model.heads"},
    {"args.n_kv_heads", "model.kv_heads"},
    {"args.head_dim", "model.head_dim"},
    {"args.hidden_dim", "model.ffn_hidden"},
    {"args.vocab_size", "model.vocab"},
    {"training.seq_len", "model.sequence"},
    {"training.global_batch_size", "batch.global"},
    {"training.local_batch_size", "batch.micro_batch"},
    {"training.batch_size", "batch.micro_batch"},
    {"parallelism.tensor_parallel_degree", "plan.tensor"},
    {"parallelism.pipeline_parallel_degree", "plan.pipeline"},
    {"parallelism.context_parallel_degree", "plan.context"},
    {"mesh.tp", "plan.tensor"},
    {"mesh.pp", "plan.pipeline"},
    {"mesh.cp", "plan.context"},
};

/// One configuration under its framework's names, turned into facts.
class Translator {
 public:
  Translator(Facts& facts, const Settings& settings, std::string prefix, std::string source)
      : facts_(facts),
        settings_(settings),
        prefix_(std::move(prefix)),
        source_(std::move(source)) {}

  void megatron();
  void torchtitan(const sim::Catalogue& catalogue);

 private:
  template <class T>
  void set(const std::string& key, T what) {
    facts_.set(key, value(std::move(what)), source_);
  }
  void note(std::string text) { facts_.notes.push_back(std::move(text)); }
  std::string name(const char* setting) const { return prefix_ + setting; }
  const std::string* find(const char* setting) const { return settings_.find(name(setting)); }
  std::optional<std::int64_t> integer(const char* setting) const {
    return settings_.integer(name(setting));
  }
  bool on(const char* setting) const { return settings_.flag(name(setting)).value_or(false); }

  template <std::size_t n>
  void numbers(const Rename (&table)[n]) {
    for (const auto& [setting, key] : table)
      if (const auto number = integer(setting); number && *number > 0) set(key, *number);
  }
  void megatron_model();
  void megatron_data();
  void megatron_recompute();
  void megatron_precision();
  void torchtitan_ffn();
  void torchtitan_data();
  void ranks(std::optional<std::int64_t> ranks) {
    if (!ranks || *ranks < 1) return;
    facts_.ranks = ranks;
    facts_.ranks_source = source_;
  }

  Facts& facts_;
  const Settings& settings_;
  std::string prefix_, source_;
};

void Translator::megatron() {
  numbers(megatron_numbers);
  for (const auto& [setting, key] : megatron_flags)
    if (const auto flag = settings_.flag(name(setting))) set(key, *flag);
  megatron_model();
  megatron_data();
  megatron_recompute();
  megatron_precision();
  set("software.framework", std::string(prefix_.empty() ? "megatron-core" : "nemo"));
  if (prefix_.empty()) return ranks(integer("world_size"));
  set("software.version", std::string("2023"));  // NeMo 2 prints no such configuration
  const auto devices = settings_.integer("trainer.devices");
  const auto nodes = settings_.integer("trainer.num_nodes");
  if (!devices) return;
  facts_.gpus_per_node = *devices;
  ranks(*devices * nodes.value_or(1));
}

void Translator::megatron_model() {
  // What NeMo prints of the vocabulary stands beside its YAML.
  if (const auto vocab = settings_.integer("padded_vocab_size")) set("model.vocab", *vocab);
  const auto groups = integer("num_query_groups");
  if (groups && (on("group_query_attention") || !prefix_.empty())) set("model.kv_heads", *groups);
  if (const std::string* norm = find("normalization"))
    set("model.norm",
        std::string(norm->starts_with("RMS") || norm->starts_with("rms") ? "rmsnorm"
                                                                         : "layernorm"));
  const std::string* activation = find("activation");
  const bool gated =
      on("swiglu") || (activation != nullptr && activation->find("swiglu") != std::string::npos);
  if (gated || find("swiglu") != nullptr || activation != nullptr)
    set("model.activation", std::string(gated ? "swiglu" : "gelu"));
  if (on("squared_relu")) note("squared_relu is taken as gelu.");
  if (const auto apart = settings_.flag(name("untie_embeddings_and_output_weights")))
    set("model.tied_embeddings", !*apart);
  if (const auto shared = settings_.flag(name("share_embeddings_and_output_weights")))
    set("model.tied_embeddings", *shared);
  if (const std::string* positions = find("position_embedding_type")) {
    const bool rope = *positions == "rope";
    set("model.rope", rope);
    const auto most = integer("max_position_embeddings");
    if (!rope && most) set("model.max_positions", *most);
  }
  if (const auto dropout = settings_.number(name("hidden_dropout")))
    set("model.dropout", *dropout > 0);
  for (const char* experts : {"num_experts", "num_moe_experts"})
    if (const auto number = integer(experts); number && *number > 1)
      throw InputError(source_, fmt::format("{} = {}: a mixture of experts", experts, *number),
                       "no scenario can say that yet");
}

void Translator::megatron_data() {
  const std::string* optimizer = settings_.find(prefix_ + "optim.name");
  const bool nemo_shards = optimizer != nullptr && optimizer->starts_with("distributed");
  std::string data = on("use_distributed_optimizer") || nemo_shards ? "zero1" : "ddp";
  if (on("use_megatron_fsdp") || on("use_custom_fsdp")) {
    const std::string* strategy = find("data_parallel_sharding_strategy");
    const std::string kind = strategy == nullptr ? "" : *strategy;
    set("software.use_megatron_fsdp", true);
    data = kind == "optim_grads_params" ? "zero3" : kind == "optim_grads" ? "zero2" : data;
  }
  const bool said = find("use_distributed_optimizer") != nullptr || optimizer != nullptr;
  if (said) set("plan.data", data);
}

void Translator::megatron_recompute() {
  const bool nemo = !prefix_.empty();
  const char* key = nemo ? "activations_checkpoint_granularity" : "recompute_granularity";
  const std::string* kind = find(key);
  if (!settings_.has(name("num_layers"))) return;
  set("plan.recompute", kind == nullptr ? std::string("none") : *kind);
  const std::string* method = find(nemo ? "activations_checkpoint_method" : "recompute_method");
  if (kind != nullptr && *kind == "full" && method != nullptr && *method == "block")
    note(
        "recompute_method = block: only some layers of a stage are recomputed, the scenario "
        "recomputes all.");
}

void Translator::megatron_precision() {
  const std::string* trainer = settings_.find("trainer.precision");
  const bool bf16 = on("bf16") || (trainer != nullptr && trainer->starts_with("bf16"));
  const bool fp16 = on("fp16") || (trainer != nullptr && trainer->starts_with("16"));
  const std::string* fp8 = find("fp8");
  const bool has_fp8 = fp8 != nullptr && *fp8 != "False" && *fp8 != "false";
  if (!bf16 && !fp16 && trainer == nullptr && find("bf16") == nullptr) return;
  const std::string compute = has_fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
  set("precision.compute", compute);
  if (const auto wide = settings_.flag(name("accumulate_allreduce_grads_in_fp32")))
    set("precision.gradient_reduce", std::string(*wide || !(bf16 || fp16) ? "fp32"
                                                 : bf16                   ? "bf16"
                                                                          : "fp16"));
}

void Translator::torchtitan(const sim::Catalogue& catalogue) {
  numbers(torchtitan_numbers);
  const std::string *model = find("model.name"), *flavor = find("model.flavor");
  if (model != nullptr && flavor != nullptr) {
    std::string entry = *model + "-" + *flavor;
    for (char& c : entry) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    set("model.name", entry);
    if (!catalogue.has("models", entry)) torchtitan_ffn();
  }
  if (on("args.moe_enabled"))
    throw InputError(source_, "moe_enabled: a mixture of experts", "no scenario can say that yet");
  if (on("args.enable_weight_tying")) set("model.tied_embeddings", true);
  torchtitan_data();
  // A replica's batch is cut for the stages alone.
  if (facts_.integer("plan.pipeline").value_or(1) > 1)
    set("batch.micro_batch", integer("parallelism.pipeline_parallel_microbatch_size").value_or(1));
  if (const std::string* mode = find("activation_checkpoint.mode")) set("plan.recompute", *mode);
  const auto compiled = settings_.flag("compile.enable");
  if (find("compile.enable") ? compiled == false : find("gpu") != nullptr)
    set("software.fusion", std::string("eager"));
  const std::string* schedule = find("parallelism.pipeline_parallel_schedule");
  if (schedule != nullptr && *schedule == "GPipe") set("plan.schedule", std::string("gpipe"));
  const auto type = [](const std::string& torch) {
    return torch == "float32" ? std::string("fp32") : torch == "float16" ? "fp16" : "bf16";
  };
  if (const std::string* compute = find("training.mixed_precision_param"))
    set("precision.compute", type(*compute));
  if (const std::string* reduce = find("training.mixed_precision_reduce"))
    set("precision.gradient_reduce", type(*reduce));
  set("software.framework", std::string("torchtitan"));
  if (const std::string* gpu = find("gpu")) facts_.gpu = *gpu, facts_.gpu_source = source_;
}

/// torchtitan/models/llama3/model: int(2 * 4 * dim / 3), times ffn_dim_multiplier, rounded up to
/// multiple_of. All its dense models are Llama's blocks.
void Translator::torchtitan_ffn() {
  set("model.norm", std::string("rmsnorm"));
  set("model.activation", std::string("swiglu"));
  set("model.rope", true);
  const auto dim = integer("args.dim"), multiple = integer("args.multiple_of");
  if (!dim || integer("args.hidden_dim")) return;
  auto width = static_cast<double>(8 * *dim / 3);
  width = std::floor(width * settings_.number("args.ffn_dim_multiplier").value_or(1));
  const auto step = std::max<std::int64_t>(1, multiple.value_or(1));
  set("model.ffn_hidden", (static_cast<std::int64_t>(width) + step - 1) / step * step);
}

/// ParallelDims (torchtitan/distributed/parallel_dims.py): without a mesh in the log, -1 of the
/// configuration leaves it open.
void Translator::torchtitan_data() {
  const auto degree = [&](const char* mesh, const char* setting) {
    return integer(mesh) ? integer(mesh) : integer(setting);
  };
  const auto copies =
      degree("mesh.dp_replicate", "parallelism.data_parallel_replicate_degree").value_or(1);
  const bool mesh = find("mesh.dp_shard") || find("mesh.dp_replicate") || find("mesh.tp") ||
                    find("mesh.pp") || find("mesh.cp");
  const auto shards = mesh ? integer("mesh.dp_shard").value_or(1)
                           : integer("parallelism.data_parallel_shard_degree").value_or(-1);
  if (!mesh && find("parallelism.data_parallel_shard_degree") == nullptr) return;
  for (const auto& [dimension, key] :
       {std::pair{"mesh.tp", "plan.tensor"}, std::pair{"mesh.pp", "plan.pipeline"},
        std::pair{"mesh.cp", "plan.context"}})
    if (mesh && !find(dimension)) set(key, std::int64_t{1});
  const bool sharded = shards != 1;
  set("plan.data", std::string(sharded ? "zero3" : "ddp"));
  if (sharded && copies > 1 && shards > 0) set("plan.shard_degree", shards);
  if (shards < 1) return;
  std::int64_t all = shards * copies;
  for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
    all *= facts_.integer(key).value_or(1);
  ranks(all);
}

}  // namespace

void add_facts(Facts& facts, const Settings& settings, const sim::Catalogue& catalogue,
               const std::string& source) {
  const auto says = [&](const char* name) { return settings.find(name) != nullptr; };
  if (says("num_layers") || says("tensor_model_parallel_size"))
    Translator(facts, settings, "", source).megatron();
  else if (says("model.num_layers") || says("model.tensor_model_parallel_size"))
    Translator(facts, settings, "model.", source).megatron();
  else if (says("training.seq_len") || says("model.flavor"))
    Translator(facts, settings, "", source).torchtitan(catalogue);
}

}  // namespace stepcast::validate
