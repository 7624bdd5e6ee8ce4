// torchtitan's configuration, and what its log says of mesh and model.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/check.hpp"
#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/launch/torchtitan_registry.hpp"

namespace stepcast::sim {
namespace {

/// The catalogue's name of a flavor that is called otherwise there.
std::string entry_of(const std::string& module, const std::string& flavor,
                     const std::string& usual) {
  if (const TomlModel known = toml_model_of(module, flavor); !known.model.empty())
    return std::string(known.model);
  for (const RegisteredModel& one : torchtitan_registry())
    if (one.module == module && one.flavor == flavor) return std::string(one.model);
  return usual;
}

/// How many layers each list within a list has.
std::vector<std::int64_t> layers_of_lists(const std::string& list) {
  std::vector<std::int64_t> out;
  for (std::size_t at = list.find('[', 1); at != std::string::npos; at = list.find('[', at + 1)) {
    const std::string part = list.substr(at, list.find(']', at) - at);
    std::int64_t here = 0;
    for (std::size_t one = part.find("layers."); one != std::string::npos;
         one = part.find("layers.", one + 1))
      ++here;
    out.push_back(here);
  }
  return out;
}

class TorchtitanFacts : public Translator {
 public:
  using Translator::Translator;
  void add(const Catalogue& catalogue);

 private:
  void recipe();
  void ffn();
  std::int64_t data();  // replicas; 0 where nobody says
  void batch(std::int64_t replicas);
  void parts(const Catalogue& catalogue);
  void recompute();
  void experts();
  void optimizer();
};

void TorchtitanFacts::add(const Catalogue& catalogue) {
  take(torchtitan_words());
  const std::string *model = find("model.name"), *flavor = find("model.flavor");
  if (model != nullptr && flavor != nullptr) {
    std::string entry = *model + "-" + *flavor;
    for (char& c : entry) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    entry = entry_of(*model, *flavor, entry);
    if (!set_debug_model(facts_, *model, *flavor, catalogue, source_)) {
      set("model.name", entry);
      if (!catalogue.has("models", entry)) ffn();
    }
    if (*model == "qwen3_5") {
      set("model.tied_embeddings", false);  // its head is its own (models/qwen3_5/__init__.py)
      note("The encoder of images is not forecast.");
    }
  }
  if (on("args.moe_enabled"))
    throw InputError(source_, "moe_enabled: a mixture of experts", "no scenario can say that yet");
  if (on("args.enable_weight_tying")) set("model.tied_embeddings", true);
  batch(data());
  parts(catalogue);
  recompute();
  experts();
  optimizer();
  // SequenceParallel of the norms is part of its tensor plan (models/llama3/parallelize.py).
  if (facts_.integer("plan.tensor").value_or(1) > 1) set("plan.sequence_parallel", true);
  const auto compiled = settings_.flag("compile.enable");
  const std::string parts = word("compile.components");
  const bool model_too = parts.empty() || parts.find("model") != std::string::npos;
  if (find("compile.enable") ? compiled == false || !model_too : find("gpu") != nullptr)
    set("software.fusion", std::string("eager"));
  else if (compiled == true)
    set("software.fusion", std::string("compiled"));
  without_further_tokens(facts_, catalogue, source_);
  const std::string* schedule = find("parallelism.pipeline_parallel_schedule");
  if (schedule != nullptr) {
    const std::string word = schedule_of_torch(*schedule);
    if (word != "1f1b") set("plan.schedule", word);
  }
  if (const std::string* csv = find("parallelism.pipeline_parallel_schedule_csv"))
    set("plan.schedule", *csv);
  const auto type = [](const std::string& torch) {
    return torch == "float32" ? std::string("fp32") : torch == "float16" ? "fp16" : "bf16";
  };
  if (const std::string* compute = find("training.mixed_precision_param"))
    set("precision.compute", type(*compute));
  if (const std::string* reduce = find("training.mixed_precision_reduce"))
    set("precision.gradient_reduce", type(*reduce));
  recipe();
  set("software.framework", std::string("torchtitan"));
  if (settings_.has("training.tensor_parallel_degree"))
    set("software.version", std::string("2024"));
  if (const std::string* gpu = find("gpu")) facts_.gpu = *gpu, facts_.gpu_source = source_;
}

/// torchao's converters: [float8] with one scale per tensor unless it names another recipe, [mx].
void TorchtitanFacts::recipe() {
  const std::string* converters = find("model.converters");
  const auto converts = [&](const char* word) {
    return converters != nullptr && converters->find(word) != std::string::npos;
  };
  if (converts("mx")) set("precision.recipe", std::string("mxfp8"));
  for (const char* name : {"quantize.linear.mx.recipe_name", "mx.recipe_name"})
    if (const std::string other = word(name); !other.empty() && !other.starts_with("mxfp8"))
      note(std::string(name) + " = " + other + ": products are taken as mxfp8.");
  for (const char* name : {"quantize.linear.float8.filter_fqns", "quantize.linear.mx.filter_fqns"})
    if (const std::string left = word(name); left.find(',') != std::string::npos)
      note(std::string(name) + ": the head alone is taken to stay in 16 bits.");
  if (!converts("float8") && !on("float8.enable_float8_linear")) return;
  set("precision.recipe", std::string("fp8_current"));
  set("precision.fp8_parameters", on("float8.enable_fsdp_float8_all_gather") ||
                                      on("quantize.linear.float8.enable_fsdp_float8_all_gather"));
  const std::string* kind = find("quantize.linear.float8.recipe_name");
  if (kind == nullptr) kind = find("float8.recipe_name");
  if (kind != nullptr && *kind != "tensorwise")
    note("float8.recipe_name = " + *kind + ": scales per row are taken as one per tensor.");
}

/// torchtitan/models/llama3/model: int(2 * 4 * dim / 3), times ffn_dim_multiplier, rounded up to
/// multiple_of. All its dense models are Llama's blocks.
void TorchtitanFacts::ffn() {
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
std::int64_t TorchtitanFacts::data() {
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
void TorchtitanFacts::batch(std::int64_t replicas) {
  const auto local = facts_.integer("batch.micro_batch");
  if (local && replicas > 0 && !facts_.integer("batch.global"))
    set("batch.global", *local * replicas);                         // of 2024: no accumulation
  if (local && replicas == 0 && !facts_.integer("batch.global")) {  // -1: as the ranks leave it
    double others = 1;
    for (const char* key : {"plan.tensor", "plan.pipeline", "plan.context"})
      others *= static_cast<double>(facts_.integer(key).value_or(1));
    facts_.set("batch.local", {static_cast<double>(*local) / others, ""}, source_);
  }
  if (facts_.integer("plan.pipeline").value_or(1) < 2) return;
  const auto num = integer("parallelism.pipeline_parallel_microbatches");
  if (num && local && *num > 0 && *local % *num == 0)
    set("batch.micro_batch", *local / *num);
  else
    set("batch.micro_batch", integer("parallelism.pipeline_parallel_microbatch_size").value_or(1));
}

/// ["layers.20", "layers.40"]: where each part but the first begins; since v0.2.0 the modules of
/// each part, ["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"].
void TorchtitanFacts::parts(const Catalogue& catalogue) {
  const std::string modules = word("parallelism.module_fqns_per_model_part");
  if (!modules.empty()) return set_parts(facts_, layers_of_lists(modules), source_);
  const std::string* points = find("parallelism.pipeline_parallel_split_points");
  const TomlValue* model = facts_.find("model.name");
  auto layers = facts_.integer("model.layers");
  if (!layers && model != nullptr && catalogue.has("models", *model->text())) {
    const TomlValue entry = catalogue.entry("models", *model->text(), source_);
    if (const TomlValue* said = entry.find("layers")) layers = std::get<std::int64_t>(said->data);
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

void TorchtitanFacts::experts() {
  const std::string backend = word("parallelism.expert_parallel_comm_backend");
  if (backend == "standard") set("plan.dispatcher", std::string("all_to_all"));
  if (backend == "deepep") set("plan.dispatcher", std::string("node_aware"));
  if (backend == "hybridep") set("plan.dispatcher", std::string("nvlink_domain"));
  if (on("debug.moe_force_load_balance") || on("training.debug_moe_force_load_balance"))
    set("routing.kind", std::string("balanced"));
  for (const char* setting :
       {"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"})
    if (on(setting)) set("plan.tensor_overlap", std::string("async_tp"));
}

/// components/optimizer.py: Adam and AdamW alone up to 2026, then a list of groups, of which one
/// may name DistMuon.
void TorchtitanFacts::optimizer() {
  if (const std::string* name = find("optimizer.name")) optimizer_called(*name);
  const std::string groups = word("optimizer.param_groups");
  if (groups.find("DistMuon") != std::string::npos) set("plan.optimizer", std::string("muon"));
  if (on("optimizer.early_step_in_backward")) set("plan.optimizer_in_backward", true);
  const std::string kind = word("optimizer.implementation");
  for (const auto& [theirs, ours] : {std::pair{"fused", "fused"},
                                     {"fused_opt_states_bf16", "fused"},
                                     {"foreach", "foreach"},
                                     {"for-loop", "per_tensor"}})
    if (kind == theirs) set("software.optimizer", std::string(ours));
  if (kind == "fused_opt_states_bf16") set("precision.moments", std::string("bf16"));
}

/// "selective" with a number recomputes every n-th layer in full.
void TorchtitanFacts::recompute() {
  const std::string* mode = find("activation_checkpoint.mode");
  if (mode == nullptr) return;
  const auto every = integer("activation_checkpoint.selective_ac_option");
  const bool layers = *mode == "selective" && every;
  set("plan.recompute", layers ? std::string("full") : *mode);
  if (layers) set("plan.recompute_every", *every);
}

/// Under the names of 2025, where a word of 2024 is called otherwise since.
Settings with_names_of_2025(Settings settings) {
  constexpr int renamed = 2025;
  for (const LaunchWord& old : torchtitan_words())
    for (const LaunchWord& now : torchtitan_words())
      if (old.until == renamed && old.key == now.key &&
          (now.since == renamed || (now.since == 0 && now.name.starts_with("parallelism."))))
        if (const std::string* said = settings.find(std::string(old.name)))
          settings.set_usual(std::string(now.name), *said);
  return settings;
}

}  // namespace

void add_torchtitan_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                          const std::string& source) {
  const Settings renamed = with_names_of_2025(settings);
  TorchtitanFacts(facts, renamed, "", source).add(catalogue);
}

}  // namespace stepcast::sim
