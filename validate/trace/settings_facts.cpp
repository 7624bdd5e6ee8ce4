// Configurations of frameworks under their own names, as facts about the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/check.hpp"
#include "validate/trace/facts.hpp"
#include "validate/trace/launch_facts.hpp"
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

/// "Et*3|t,t|t*2L": how often t stands in each part.
std::vector<std::int64_t> layers_of_layout(std::string_view layout) {
  std::vector<std::int64_t> out{0};
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == '|') out.push_back(0);
    if (layout[i] != 't') continue;
    std::int64_t times = 1;
    if (i + 1 < layout.size() && layout[i + 1] == '*')
      times = static_cast<std::int64_t>(leading_number(layout.substr(i + 2)).value_or(1));
    out.back() += times;
  }
  return out;
}

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
  void megatron_parts();
  void megatron_data();
  void megatron_recompute();
  void megatron_precision();
  void torchtitan_ffn();
  std::int64_t torchtitan_data();  // replicas; 0 where nobody says
  void torchtitan_batch(std::int64_t replicas);
  void torchtitan_parts(const sim::Catalogue& catalogue);
  void torchtitan_recompute();
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
  megatron_parts();
  megatron_data();
  megatron_recompute();
  megatron_precision();
  set("software.framework", std::string(!prefix_.empty()  ? "nemo"
                                        : on("deepspeed") ? "megatron-deepspeed"
                                                          : "megatron-core"));
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
  if (const auto vocab = settings_.integer("padded_vocab_size"))
    set("model.vocab", *vocab);
  else if (const auto unpadded = integer("vocab_size"))
    set("model.vocab", *unpadded);
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

/// Where a launch says parts in another way than as virtual_pipeline_model_parallel_size.
void Translator::megatron_parts() {
  const auto stages = integer("pipeline_model_parallel_size").value_or(1);
  const auto layers = integer("num_layers");
  if (!layers || stages < 2) return;
  if (const std::string* layout = find("pipeline_model_parallel_layout"))
    return set_parts(facts_, layers_of_layout(*layout), source_);
  const auto first = integer("decoder_first_pipeline_num_layers"),
             last = integer("decoder_last_pipeline_num_layers");
  if (first || last) {
    const std::int64_t others = stages - (first ? 1 : 0) - (last ? 1 : 0);
    const std::int64_t rest = *layers - first.value_or(0) - last.value_or(0);
    std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(0, others)),
                                  others > 0 ? rest / others : 0);
    if (first) all.insert(all.begin(), *first);
    if (last) all.push_back(*last);
    set_parts(facts_, all, source_);
  }
  if (find("virtual_pipeline_model_parallel_size")) return;
  if (const auto virtual_stages = integer("num_virtual_stages_per_pipeline_rank"))
    set("plan.virtual_stages", *virtual_stages);
  else if (const auto each = integer("num_layers_per_virtual_pipeline_stage"); each && *each > 0)
    set("plan.virtual_stages", *layers / stages / *each);
}

void Translator::megatron_data() {
  if (on("deepspeed")) {
    const auto stage = settings_.number(name("zero_stage"));  // printed as 1.0 by some
    if (stage) set("plan.data", *stage < 1 ? std::string("ddp") : fmt::format("zero{}", *stage));
    return;
  }
  const auto instances = integer("num_distributed_optimizer_instances").value_or(1);
  if (instances > 1) {
    const auto size = [&](const char* setting) { return integer(setting).value_or(1); };
    const std::int64_t others =
        size("tensor_model_parallel_size") * size("pipeline_model_parallel_size") * instances;
    if (const auto world = integer("world_size"); world && *world % others == 0)
      set("plan.shard_degree", *world / others);
    else
      note(
          fmt::format("num_distributed_optimizer_instances = {}: plan.shard_degree follows from "
                      "the ranks, which are not said.",
                      instances));
  }
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
  if (on("deepspeed")) return;  // its configuration says in what gradients are summed
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
  torchtitan_batch(torchtitan_data());
  torchtitan_parts(catalogue);
  torchtitan_recompute();
  // SequenceParallel of the norms is part of its tensor plan (models/llama3/parallelize.py).
  if (facts_.integer("plan.tensor").value_or(1) > 1) set("plan.sequence_parallel", true);
  const auto compiled = settings_.flag("compile.enable");
  if (find("compile.enable") ? compiled == false : find("gpu") != nullptr)
    set("software.fusion", std::string("eager"));
  const std::string* schedule = find("parallelism.pipeline_parallel_schedule");
  if (schedule != nullptr && (*schedule == "GPipe" || *schedule == "gpipe"))
    set("plan.schedule", std::string("gpipe"));
  const auto type = [](const std::string& torch) {
    return torch == "float32" ? std::string("fp32") : torch == "float16" ? "fp16" : "bf16";
  };
  if (const std::string* compute = find("training.mixed_precision_param"))
    set("precision.compute", type(*compute));
  if (const std::string* reduce = find("training.mixed_precision_reduce"))
    set("precision.gradient_reduce", type(*reduce));
  set("software.framework", std::string("torchtitan"));
  if (settings_.has("training.tensor_parallel_degree"))
    set("software.version", std::string("2024"));
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
std::int64_t Translator::torchtitan_data() {
  const auto degree = [&](const char* mesh, const char* setting) {
    return integer(mesh) ? integer(mesh) : integer(setting);
  };
  const auto copies =
      degree("mesh.dp_replicate", "parallelism.data_parallel_replicate_degree").value_or(1);
  const bool mesh = find("mesh.dp_shard") || find("mesh.dp_replicate") || find("mesh.tp") ||
                    find("mesh.pp") || find("mesh.cp");
  const auto shards = mesh ? integer("mesh.dp_shard").value_or(1)
                           : integer("parallelism.data_parallel_shard_degree").value_or(-1);
  if (!mesh && find("parallelism.data_parallel_shard_degree") == nullptr) return 0;
  for (const auto& [dimension, key] :
       {std::pair{"mesh.tp", "plan.tensor"}, std::pair{"mesh.pp", "plan.pipeline"},
        std::pair{"mesh.cp", "plan.context"}})
    if (mesh && !find(dimension)) set(key, std::int64_t{1});
  const std::int64_t context = facts_.integer("plan.context").value_or(1);
  const bool sharded = shards * context != 1;  // over the ranks of both
  // "default" keeps parameters between the passes of several stages (distributed/fsdp.py).
  const std::string* reshard = find("parallelism.fsdp_reshard_after_forward");
  const bool staged = facts_.integer("plan.pipeline").value_or(1) > 1;
  const bool kept = reshard == nullptr || *reshard == "default" ? staged : *reshard == "never";
  set("plan.data", std::string(!sharded ? "ddp" : kept ? "zero2" : "zero3"));
  if (sharded && copies > 1 && shards > 0) set("plan.shard_degree", shards * context);
  if (shards < 1) return 0;
  std::int64_t all = shards * copies;
  for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
    all *= facts_.integer(key).value_or(1);
  ranks(all);
  return shards * copies;
}

/// A replica's batch is cut for the stages alone. `replicas`: 0 where nobody says.
void Translator::torchtitan_batch(std::int64_t replicas) {
  const auto local = facts_.integer("batch.micro_batch");
  if (local && replicas > 0 && !facts_.integer("batch.global"))
    set("batch.global", *local * replicas);  // of 2024: no accumulation
  if (facts_.integer("plan.pipeline").value_or(1) < 2) return;
  const auto num = integer("parallelism.pipeline_parallel_microbatches");
  if (num && local && *num > 0 && *local % *num == 0)
    set("batch.micro_batch", *local / *num);
  else
    set("batch.micro_batch", integer("parallelism.pipeline_parallel_microbatch_size").value_or(1));
}

/// ["layers.20", "layers.40"]: where each part but the first begins.
void Translator::torchtitan_parts(const sim::Catalogue& catalogue) {
  const std::string* points = find("parallelism.pipeline_parallel_split_points");
  const sim::TomlValue* model = facts_.find("model.name");
  auto layers = facts_.integer("model.layers");
  if (!layers && model != nullptr && catalogue.has("models", *model->text())) {
    const sim::TomlValue entry = catalogue.entry("models", *model->text(), source_);
    if (const sim::TomlValue* said = entry.find("layers"))
      layers = std::get<std::int64_t>(said->data);
  }
  if (points == nullptr || !layers) return;
  std::vector<std::int64_t> ends = numbers_in(*points), all;
  if (ends.empty()) return;
  ends.push_back(*layers);
  for (std::int64_t begin = 0; const std::int64_t end : ends) {
    all.push_back(end - begin);
    begin = end;
  }
  set_parts(facts_, all, source_);
}

/// "selective" with a number recomputes every n-th layer in full.
void Translator::torchtitan_recompute() {
  const std::string* mode = find("activation_checkpoint.mode");
  if (mode == nullptr) return;
  const auto every = integer("activation_checkpoint.selective_ac_option");
  const bool layers = *mode == "selective" && every;
  set("plan.recompute", layers ? std::string("full") : *mode);
  if (layers) set("plan.recompute_every", *every);
}

/// Where torchtitan's keys stood in 2024 (config_manager.py, 0011fb90).
Settings with_names_of_2025(Settings settings) {
  constexpr std::pair<const char*, const char*> moved[] = {
      {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
      {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
      {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
      {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
      {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
      {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
      {"experimental.pipeline_parallel_split_points", "parallelism.pipeline_parallel_split_points"},
      {"experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches"},
      {"training.compile", "compile.enable"},
  };
  for (const auto& [old, now] : moved)
    if (const std::string* said = settings.find(old)) settings.set_usual(now, *said);
  return settings;
}

}  // namespace

void add_facts(Facts& facts, const Settings& settings, const sim::Catalogue& catalogue,
               const std::string& source) {
  const auto says = [&](const char* name) { return settings.find(name) != nullptr; };
  if (says("num_layers") || says("tensor_model_parallel_size"))
    Translator(facts, settings, "", source).megatron();
  else if (says("model.num_layers") || says("model.tensor_model_parallel_size"))
    Translator(facts, settings, "model.", source).megatron();
  else if (says("init_device_mesh.tp"))
    add_fsdp_facts(facts, settings, source);
  else if (says("train_micro_batch_size_per_gpu") || says("zero_optimization.stage"))
    add_deepspeed_facts(facts, settings, source);
  else if (says("training.seq_len") || says("model.flavor"))
    Translator(facts, with_names_of_2025(settings), "", source).torchtitan(catalogue);
}

}  // namespace stepcast::validate
