#include "validate/trace/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/gpu_names.hpp"
#include "validate/trace/numbers.hpp"

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

/// A communicator's kind by the name that its framework gave it: torch's DeviceMesh ("mesh_tp") and
/// megatron/core/parallel_state.py ("TENSOR_MODEL_PARALLEL_GROUP", core_v0.9 on).
constexpr Rename group_keys[] = {
    {"mesh_tp", "plan.tensor"},
    {"mesh_pp", "plan.pipeline"},
    {"mesh_cp", "plan.context"},
    {"TENSOR_MODEL_PARALLEL_GROUP", "plan.tensor"},
    {"PIPELINE_MODEL_PARALLEL_GROUP", "plan.pipeline"},
    {"CONTEXT_PARALLEL_GROUP", "plan.context"},
};

bool same_gpu(const std::string& measured, const std::string& catalogue) {
  std::string name(sim::without_maker(measured));
  std::ranges::replace(name, ' ', '-');
  const std::string chip = name.substr(0, name.find('-'));
  return sim::kinship(chip, catalogue) == sim::Kinship::same;
}

const sim::TomlValue* find_path(const sim::TomlValue& root, std::string_view path) {
  const std::size_t dot = path.find('.');
  const sim::TomlValue* part = root.find(path.substr(0, dot));
  if (part == nullptr || dot == std::string_view::npos) return part;
  return find_path(*part, path.substr(dot + 1));
}

/// [cluster] of the ranks on nodes of the GPU.
void set_cluster(const Facts& facts, const sim::Catalogue& catalogue, sim::TomlValue& out) {
  const auto& gpus = catalogue.gpus();
  const sim::GpuIdentity* gpu = gpus.by_cuda_name(facts.gpu);
  std::string name(sim::without_maker(facts.gpu));
  std::ranges::replace(name, ' ', '-');
  if (gpu == nullptr && !name.empty()) gpu = gpus.nearest(name);
  if (gpu != nullptr && find_path(out, "cluster.node") == nullptr)
    sim::set_path(out, "cluster.node",
                  catalogue.node_of_gpu(gpu->gpu.name, "cluster.node").value("cluster.node"));
}

/// Nodes of that many ranks, once the node is known.
void set_nodes(const Facts& facts, const sim::Catalogue& catalogue, sim::TomlValue& out) {
  const sim::TomlValue* node = find_path(out, "cluster.node");
  const bool said = find_path(out, "cluster.nodes") != nullptr;
  if (node == nullptr || said || !facts.ranks) return;
  const std::int64_t each = catalogue.node(*node).gpus;
  if (*facts.ranks < each) {
    sim::set_path(out, "cluster.nodes", value(std::int64_t{1}));
    sim::set_path(out, "cluster.gpus", value(*facts.ranks));
  } else if (*facts.ranks % each == 0) {
    sim::set_path(out, "cluster.nodes", value(*facts.ranks / each));
  }
}

}  // namespace

const sim::TomlValue* Facts::find(std::string_view key) const {
  const auto at = std::ranges::find(all, key, &Fact::key);
  return at == all.end() ? nullptr : &at->value;
}

std::optional<std::int64_t> Facts::integer(std::string_view key) const {
  const sim::TomlValue* found = find(key);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

void Facts::set(const std::string& key, sim::TomlValue what, const std::string& source) {
  what.where = source;
  const auto at = std::ranges::find(all, key, &Fact::key);
  if (at == all.end())
    all.push_back({key, std::move(what), source});
  else
    *at = {key, std::move(what), source};
}

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

void add_facts(Facts& facts, const RankTrace& trace, const sim::Catalogue& catalogue) {
  if (trace.world_size) facts.ranks = trace.world_size, facts.ranks_source = trace.file;
  if (!trace.gpu.empty()) facts.gpu = trace.gpu, facts.gpu_source = trace.file;
  for (const ProcessGroup& group : trace.groups)
    for (const auto& [description, key] : group_keys)
      if (group.description == description && group.size > 0)
        facts.set(key, value(group.size), trace.file);
  if (trace.nccl.empty()) return;
  try {
    catalogue.nccl(trace.nccl);
    facts.set("cluster.nccl", value(trace.nccl), trace.file);
  } catch (const InputError&) {
    // One that nobody has described; the framework's own stays.
  }
}

std::vector<std::string> contradictions(const Facts& facts, const sim::Scenario& s) {
  std::vector<std::string> out;
  if (facts.ranks && *facts.ranks != s.gpus)
    out.push_back(fmt::format("Warning: {} is of {} ranks, the scenario of {} GPUs.",
                              facts.ranks_source, *facts.ranks, s.gpus));
  if (!facts.gpu.empty() && !same_gpu(facts.gpu, s.node.gpu.name))
    out.push_back(fmt::format("Warning: {} is of {}, the scenario of {}.", facts.gpu_source,
                              printable(facts.gpu), s.node.gpu.name));
  const sim::TomlValue resolved = sim::resolved_document(s);
  for (const Fact& fact : facts.all) {
    if (fact.key == "model.name" || fact.key.starts_with("software.")) continue;
    const sim::TomlValue* simulated = find_path(resolved, fact.key);
    if (simulated == nullptr || sim::same_value(*simulated, fact.value)) continue;
    out.push_back(fmt::format("Warning: {} has {} = {}, the scenario {}.", fact.source, fact.key,
                              sim::write_toml_value(fact.value),
                              sim::write_toml_value(*simulated)));
  }
  return out;
}

std::string left_open(const sim::TomlValue& document, const sim::Scenario& s) {
  const sim::TomlValue resolved = sim::resolved_document(s);
  std::vector<std::string> open;
  for (const char* key : {"plan.data", "plan.tensor", "plan.pipeline", "plan.recompute",
                          "precision.compute", "software.framework"}) {
    const sim::TomlValue* value = find_path(resolved, key);
    if (find_path(document, key) == nullptr && value != nullptr)
      open.push_back(fmt::format("{} = {}", key, sim::write_toml_value(*value)));
  }
  if (open.empty()) return "";
  return fmt::format("Nobody says, so as usual: {}.", fmt::join(open, ", "));
}

sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::Catalogue& catalogue) {
  sim::TomlValue out = sim::toml_table("run.toml");
  for (const char* table : {"model", "cluster", "plan", "batch"})
    out.set(table, sim::toml_table("run.toml"));
  for (const Fact& fact : facts.all) sim::set_path(out, fact.key, fact.value);
  for (const auto& [key, said] : settings) sim::set_path(out, key, said);
  set_cluster(facts, catalogue, out);
  set_nodes(facts, catalogue, out);
  const sim::TomlValue* name = find_path(out, "model.name");
  const bool named =
      name != nullptr && name->text() != nullptr && catalogue.has("models", *name->text());
  if (name == nullptr && find_path(out, "model.layers") != nullptr)
    sim::set_path(out, "model.name", value(std::string("as-logged")));
  std::vector<std::string> missing;
  const auto need = [&](const char* key, const std::string& example) {
    if (find_path(out, key) == nullptr) missing.push_back(fmt::format("{} ({})", key, example));
  };
  if (!named && find_path(out, "model.layers") == nullptr) {
    need("model.name", "llama3-8b");
  } else if (!named) {
    need("model.hidden", "4096");
    need("model.heads", "32");
    need("model.ffn_hidden", "14336");
    need("model.vocab", "128256");
  }
  need("model.sequence", "8192");
  need("cluster.node", "dgx-h100");
  const sim::TomlValue* node = find_path(out, "cluster.node");
  if (!facts.ranks) need("cluster.nodes", "1");
  if (facts.ranks && node != nullptr)
    need("cluster.nodes", fmt::format("{} ranks are no whole nodes of {} GPUs", *facts.ranks,
                                      catalogue.node(*node).gpus));
  if (find_path(out, "batch.local") == nullptr) need("batch.global", "256");
  if (!missing.empty())
    throw InputError(
        "the scenario",
        fmt::format("cannot be read from the files: nobody says {}", fmt::join(missing, ", ")),
        "give each as --set KEY=VALUE, or all as --scenario FILE.toml");
  return out;
}

}  // namespace stepcast::validate
