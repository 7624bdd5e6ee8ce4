// Arguments of Megatron-LM and its forks, printed by a run or as they are given to it, and NeMo's
// YAML, which has the same names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "engine/check.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/scenario/stage_layout.hpp"

namespace stepcast::sim {
namespace {

bool is_latent(const LaunchWord& word) { return word.key.starts_with("model.latent_"); }
bool is_delta(const LaunchWord& word) { return word.key.starts_with("model.delta_"); }
bool is_of_experts(const LaunchWord& word) {
  return !is_latent(word) && !is_delta(word) && !word.key.starts_with("model.ssm_");
}

/// Python's list of zeros and ones, parts of it repeated; of at most as many layers as a model has.
std::vector<bool> layer_list(const std::string& text) {
  constexpr std::size_t most = 10'000;
  std::vector<bool> out, part;
  for (std::size_t i = 0; i < text.size() && out.size() < most; ++i) {
    if (text[i] == '[') part.clear();
    if (text[i] == '0' || text[i] == '1') part.push_back(text[i] == '1');
    if (text[i] != ']') continue;
    std::size_t times = 1, at = text.find_first_not_of(' ', i + 1);
    if (at != std::string::npos && text[at] == '*') {
      at = text.find_first_not_of(' ', at + 1);
      const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
      times = static_cast<std::size_t>(integer_in(text.substr(at, end - at)).value_or(1));
      i = end - 1;
    }
    for (; times > 0 && out.size() < most; --times) out.insert(out.end(), part.begin(), part.end());
    part.clear();
  }
  return out;
}

class MegatronFacts : public Translator {
 public:
  using Translator::Translator;
  void add();

 private:
  void model();
  void usual_width(bool gated);
  void old_batch();
  void experts(std::int64_t count, bool gated);
  void dispatcher();
  void expert_layers(const std::string& frequency);
  void parts();
  void data();
  void recompute();
  void recompute_blocks(std::int64_t layers);
  void precision();
  bool update(std::string& data);
  void recipe();
};

void MegatronFacts::add() {
  take(megatron_words());
  model();
  parts();
  data();
  recompute();
  add_megatron_plan_parts(facts_, settings_, prefix_, source_);
  precision();
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

void MegatronFacts::model() {
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
  const bool gated = on("swiglu") || on("quick_geglu") ||
                     (activation != nullptr && activation->find("swiglu") != std::string::npos);
  if (gated || find("swiglu") != nullptr || activation != nullptr)
    set("model.activation", std::string(gated ? "swiglu" : "gelu"));
  if (on("squared_relu")) set("model.activation", std::string("squared_relu"));
  if (const auto apart = settings_.flag(name("untie_embeddings_and_output_weights")))
    set("model.tied_embeddings", !*apart);
  if (const auto shared = settings_.flag(name("share_embeddings_and_output_weights")))
    set("model.tied_embeddings", *shared);
  if (const std::string* positions = find("position_embedding_type")) {
    const bool turned = *positions == "rope" || *positions == "yarn";
    const bool none = *positions == "none" || (!turned && on("no_position_embedding"));
    const bool rope = turned || none;
    if (none) note("position_embedding_type = none: queries and keys are taken as rotated.");
    set("model.rope", rope);
    const auto most = integer("max_position_embeddings");
    if (!rope && most) set("model.max_positions", *most);
  }
  if (const auto dropout = settings_.number(name("hidden_dropout")))
    set("model.dropout", *dropout > 0);
  const auto sizes = numbers_in(word("step_batch_size_schedule"));
  if (!integer("global_batch_size") && !sizes.empty() && sizes.back() > 0)
    set("batch.global", sizes.back());
  old_batch();
  for (const char* setting : {"num_experts", "num_moe_experts"})
    if (const auto number = integer(setting); number && *number > 1) experts(*number, gated);
  if (on("multi_latent_attention")) {
    take_part(megatron_words(), is_latent);
    facts_.erase("model.qk_norm");  // of its low ranks, which are always there
    set("model.rope", true);        // whatever positions the embedding has: a part of each head
    facts_.erase("model.max_positions");
    if (const TomlValue* biases = facts_.find("model.biases");
        biases != nullptr && std::get<bool>(biases->data)) {
      note("Biases beside latent attention are left out.");
      set("model.biases", false);
    }
  }
  usual_width(gated);
  add_megatron_parts(facts_, settings_, prefix_, source_);
}

/// Of 2020: batch_size of each data rank, without micro-batches; model_parallel_size is tensor's.
void MegatronFacts::old_batch() {
  const auto each = integer("batch_size"), world = integer("world_size"),
             tensor = integer("model_parallel_size");
  if (tensor && *tensor > 0 && !find("tensor_model_parallel_size")) set("plan.tensor", *tensor);
  const std::int64_t copy = std::max<std::int64_t>(1, tensor.value_or(1));
  if (!each || !world || *each < 1 || *world < 1 || find("global_batch_size")) return;
  set("batch.global", *each * (*world / copy));
  set("batch.micro_batch", *each);
}

/// validate_args(): four times the width, of a gated unit two thirds of that in 64s.
void MegatronFacts::usual_width(bool gated) {
  const auto hidden = integer("hidden_size");
  if (!hidden || *hidden > 1'000'000'000 || find("ffn_hidden_size") ||
      facts_.find("model.ffn_hidden"))
    return;
  set("model.ffn_hidden", gated ? 4 * *hidden * 2 / 3 / 64 * 64 : 4 * *hidden);
}

/// A print of all arguments has those of experts for dense models too, so they are read here alone.
void MegatronFacts::experts(std::int64_t count, bool gated) {
  set("model.experts", count);
  take_part(megatron_words(), is_of_experts);
  if (!integer("moe_ffn_hidden_size")) {
    usual_width(gated);
    if (const auto ffn = facts_.integer("model.ffn_hidden")) set("model.expert_ffn", *ffn);
  }
  if (word("moe_router_score_function") == "sigmoid") set("model.router", std::string("sigmoid"));
  if (const auto factor = settings_.number(name("moe_expert_capacity_factor"));
      factor && *factor > 0)
    facts_.set("plan.capacity_factor", {*factor, ""}, source_);
  if (on("moe_router_force_load_balancing")) set("routing.kind", std::string("balanced"));
  dispatcher();
  expert_layers(word("moe_layer_freq"));
  const bool everywhere = !facts_.find("model.dense_layers") && !facts_.find("model.expert_every");
  if (everywhere) set("model.ffn_hidden", std::int64_t{0});
}

void MegatronFacts::dispatcher() {
  const std::string type = word("moe_token_dispatcher_type");
  const std::string backend = word("moe_flex_dispatcher_backend");
  const std::string found = type == "allgather"     ? "all_gather"
                            : type == "alltoall"    ? "all_to_all"
                            : type != "flex"        ? ""
                            : backend == "hybridep" ? "nvlink_domain"
                                                    : "node_aware";
  if (!found.empty()) set("plan.dispatcher", found);
}

/// "2": every second layer; "[0,1,1]", "[0]*3+[1]*58": of each layer whether it has experts.
void MegatronFacts::expert_layers(const std::string& frequency) {
  if (frequency.find('[') == std::string::npos) {
    const auto every = integer("moe_layer_freq");
    if (every && *every > 1) set("model.expert_every", *every);
    return;
  }
  const std::vector<bool> has = layer_list(frequency);
  const auto first = std::find(has.begin(), has.end(), true);
  if (first == has.end()) return;
  const auto second = std::find(first + 1, has.end(), true);
  const auto every = second == has.end() ? 1 : second - first;
  for (auto i = first; i != has.end(); ++i)
    if (*i != ((i - first) % every == 0))
      throw InputError(source_, "moe_layer_freq " + frequency,
                       "experts in every n-th of the layers after the first ones can be said");
  if (first != has.begin()) set("model.dense_layers", std::int64_t{first - has.begin()});
  if (every > 1) set("model.expert_every", std::int64_t{every});
}

/// Where a launch says parts in another way than as virtual_pipeline_model_parallel_size.
void MegatronFacts::parts() {
  const auto stages = integer("pipeline_model_parallel_size").value_or(1);
  const auto layers = integer("num_layers");
  if (const auto lettered = layers_of_letters(settings_, prefix_); lettered.size() > 1)
    return set_parts(facts_, lettered, source_);
  if (!layers || stages < 2) return;
  if (const std::string* layout = find("pipeline_model_parallel_layout"))
    return set_parts(facts_, parse_stage_layout(*layout, source_).layers, source_);
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

void MegatronFacts::data() {
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
      facts_.copies = instances;
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
  const bool updates = update(data);
  // Before there was a distributed optimizer nothing names it.
  if (updates || said || (prefix_.empty() && find("num_layers"))) set("plan.data", data);
}

/// --optimizer; dist_muon, of 0.16 and 0.17, is Muon whose owners sum all gradients and gather all
/// parameters at once, without the distributed optimizer (layer_wise_optimizer.py, read 2026-11).
bool MegatronFacts::update(std::string& data) {
  const std::string* name = find("optimizer");
  if (name == nullptr || *name == "adam" || *name == "Adam") return false;
  const bool owners = *name == "dist_muon";
  if (*name == "muon" || *name == "sgd" || owners)
    set("plan.optimizer", owners ? std::string("muon") : *name);
  else
    note(fmt::format("optimizer = {}: another optimizer than Adam, which is taken.", *name));
  if (!owners || data != "ddp") return false;
  data = "zero1";
  set("software.reduce_scatter", false);
  set("software.gather_whole", true);
  return true;
}

void MegatronFacts::recompute() {
  const bool nemo = !prefix_.empty();
  const char* key = nemo ? "activations_checkpoint_granularity" : "recompute_granularity";
  const std::string* kind = find(key);
  if (!settings_.has(name("num_layers"))) return;
  // Megatron-LM of 2021 and Megatron-DeepSpeed print a switch; only whole layers can be meant.
  const bool switched = kind == nullptr && on("checkpoint_activations");
  set("plan.recompute", switched          ? std::string("full")
                        : kind == nullptr ? std::string("none")
                                          : *kind);
  if (kind == nullptr || *kind != "full") return;
  const std::string method = word(nemo ? "activations_checkpoint_method" : "recompute_method");
  const auto layers =
      integer(nemo ? "activations_checkpoint_num_layers" : "recompute_num_layers").value_or(1);
  if (method == "block") return recompute_blocks(layers);
  if (layers > 1)
    note(fmt::format(
        "Layers are recomputed {} at a time: each is taken to be recomputed on its own.", layers));
}

/// The first so many layers of each part: as many as every n-th.
void MegatronFacts::recompute_blocks(std::int64_t layers) {
  const auto degree = [&](const char* key) { return facts_.integer(key).value_or(1); };
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t all = std::clamp<std::int64_t>(integer("num_layers").value_or(1), 1, most);
  const std::int64_t parts = std::clamp<std::int64_t>(degree("plan.pipeline"), 1, most) *
                             std::clamp<std::int64_t>(degree("plan.virtual_stages"), 1, most);
  std::int64_t part = (all + parts - 1) / parts;
  if (const TomlValue* said = facts_.find("plan.stage_layers"); said != nullptr)
    for (const TomlValue& one : *said->array())
      part = std::max(part, std::get<std::int64_t>(one.data));
  if (layers < 1) return set("plan.recompute", std::string("none"));
  const auto of = [&](std::int64_t every) { return (part + every - 1) / every; };
  std::int64_t nearest = 1;
  for (std::int64_t every = 1; every <= part; ++every)
    if (std::abs(of(every) - layers) < std::abs(of(nearest) - layers)) nearest = every;
  if (nearest > 1) set("plan.recompute_every", nearest);
  if (of(nearest) != std::min(layers, part))
    note(fmt::format(
        "recompute_method = block: of {} layers of a stage {} are recomputed, {} are taken.", part,
        layers, of(nearest)));
}

/// --fp8-recipe, which says nothing by itself: --fp8-format turns it on, "delayed" is its default.
void MegatronFacts::recipe() {
  const auto is_on = [&](const char* setting) {
    const std::string* value = find(setting);
    return value != nullptr && *value != "False" && *value != "false";
  };
  const bool four = is_on("fp4") || is_on("fp4_format"), eight = is_on("fp8");
  const std::string* moments = find("exp_avg_dtype");
  if (on("use_precision_aware_optimizer") && moments != nullptr)
    set("precision.moments",
        std::string(moments->find("bf") != std::string::npos ? "bf16" : "fp32"));
  if (on("use_precision_aware_optimizer") && word("exp_avg_sq_dtype") != word("exp_avg_dtype"))
    note("exp_avg_sq_dtype is another type than exp_avg_dtype: both are taken as the latter.");
  if (!four && !eight) return;
  const std::string* recipe = find("fp8_recipe");
  const std::string word = recipe == nullptr ? "delayed" : *recipe;
  set("precision.recipe", std::string(four                   ? "nvfp4"
                                      : word == "tensorwise" ? "fp8_current"
                                      : word == "blockwise"  ? "fp8_block"
                                      : word == "mxfp8"      ? "mxfp8"
                                                             : "fp8_delayed"));
  const TomlValue* data = facts_.find("plan.data");
  const bool sharded = data != nullptr && (*data->text() == "zero2" || *data->text() == "zero3");
  for (const char* setting : {"fp8_param_gather", "fp4_param_gather", "fp8_params"})
    if (on(setting) && sharded)
      note(std::string(setting) + " under FSDP: its gathers are taken in 16 bits.");
    else if (on(setting))
      set("precision.fp8_parameters", true);
  if (!on("first_last_layers_bf16")) return;
  set("precision.bf16_first_layers", integer("num_layers_at_start_in_bf16").value_or(1));
  set("precision.bf16_last_layers", integer("num_layers_at_end_in_bf16").value_or(1));
}

void MegatronFacts::precision() {
  const std::string* trainer = settings_.find("trainer.precision");
  const bool bf16 = on("bf16") || (trainer != nullptr && trainer->starts_with("bf16"));
  const bool fp16 = on("fp16") || (trainer != nullptr && trainer->starts_with("16"));
  if (!bf16 && !fp16 && trainer == nullptr && find("bf16") == nullptr) return;
  set("precision.compute", std::string(bf16 ? "bf16" : fp16 ? "fp16" : "fp32"));
  recipe();
  if (on("deepspeed")) return;  // its configuration says in what gradients are summed
  if (const auto wide = settings_.flag(name("accumulate_allreduce_grads_in_fp32")))
    set("precision.gradient_reduce", std::string(*wide || !(bf16 || fp16) ? "fp32"
                                                 : bf16                   ? "bf16"
                                                                          : "fp16"));
}

}  // namespace

void add_megatron_facts(Facts& facts, const Settings& settings, const std::string& prefix,
                        const std::string& source) {
  Settings all = settings;
  const auto lettered = layers_of_letters(settings, prefix);
  if (!lettered.empty())
    all.set(prefix + "num_layers",
            std::to_string(std::accumulate(lettered.begin(), lettered.end(), std::int64_t{0})));
  MegatronFacts(facts, all, prefix, source).add();
}

}  // namespace stepcast::sim
