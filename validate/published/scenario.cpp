#include "validate/published/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/scenario/file.hpp"
#include "topology/rack.hpp"
#include "validate/published/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::Scenario;
using sim::TomlValue;
using workloads::Recompute;

/// A table of the scenario in the making.
class Table {
 public:
  explicit Table(const std::string& where) : value_(sim::toml_table(where)) {}
  Table(TomlValue value, const std::string& where) : value_(std::move(value)) {
    value_.where = where;
  }
  void put(const char* key, const std::string& text) {
    value_.set(key, sim::toml_text(text, value_.where));
  }
  void put(const char* key, std::int64_t number) { value_.set(key, {number, value_.where}); }
  void put_flag(const char* key, bool flag) { value_.set(key, {flag, value_.where}); }
  void put(const char* key, TomlValue value) { value_.set(key, std::move(value)); }
  TomlValue take() { return std::move(value_); }

 private:
  TomlValue value_;
};

void demand_sizes(const PublishedRow& row) {
  if (!row.gpus || *row.gpus < 1) throw RefusedRow{"the number of GPUs is not stated"};
  if (!row.seq_len || *row.seq_len < 1) throw RefusedRow{"the sequence length is not stated"};
  if (!row.global_batch_seqs || *row.global_batch_seqs < 1)
    throw RefusedRow{"the global batch is not stated"};
}

std::int64_t degree(const std::optional<std::int64_t>& stated) {
  return std::max<std::int64_t>(1, stated.value_or(1));
}

TomlValue cluster_table(const PublishedRow& row, const ClusterDefaults& cluster,
                        const std::string& nccl, std::int64_t gpus_per_node, std::int64_t domain,
                        const std::string& where) {
  Table table(where);
  table.put("node", cluster.node);
  if (cluster.fabric.text() != nullptr || cluster.fabric.table() != nullptr)
    table.put("fabric", cluster.fabric);
  const std::int64_t nodes = ceil_div(*row.gpus, gpus_per_node);
  if (nodes > 1 && *row.gpus % gpus_per_node != 0)
    throw RefusedRow{fmt::format("{} GPUs are no whole nodes of {}", *row.gpus, gpus_per_node)};
  table.put("nodes", nodes);
  if (nodes > 1 && domain > 0) table.put("gpus_per_domain", domain);
  if (*row.gpus < gpus_per_node) table.put("gpus", *row.gpus);
  table.put("nccl", nccl);
  return table.take();
}

bool overlaps_experts(const PublishedRow& row, const FrameworkDefaults& framework) {
  return stated_expert_overlap(row) && !framework.later_recipe;
}

/// What the row says of experts; the rest is the framework's.
void put_expert_plan(const PublishedRow& row, const FrameworkDefaults& framework, Table& plan) {
  plan.put("expert", degree(row.ep));
  if (row.etp) plan.put("expert_tensor", degree(row.etp));
  const std::string text = lower(row.dispatcher);
  for (const auto& [word, dispatcher] : {std::pair{"hybridep", "nvlink_domain"},
                                         {"deepep", "node_aware"},
                                         {"alltoall", "all_to_all"},
                                         {"all-to-all", "all_to_all"},
                                         {"allgather", "all_gather"}})
    if (has_word(text, {word})) plan.put("dispatcher", std::string(dispatcher));
  if (overlaps_experts(row, framework)) plan.put_flag("expert_overlap", true);
  if (lower(row.ep_overlap) == "no") plan.put_flag("expert_overlap", false);
}

/// Streams that run beside each other need more connections than tensor_overlap leaves them.
void put_connections(const PublishedRow& row, const FrameworkDefaults& framework, Table& software) {
  if (overlaps_experts(row, framework)) software.put_flag("tensor_overlap", false);
}

/// What CUDA graphs replay; a whole iteration has no host between its layers.
void put_graphs(const PublishedRow& row, const FrameworkDefaults& framework, Table& software) {
  const std::string text = lower(row.cuda_graph);
  const bool iteration = has_word(text, {"full iteration", "full_iteration"});
  if (iteration && !framework.later_recipe) {
    software.put("cuda_graphs", std::string("iteration"));
    if (row.has_experts()) software.put("host_sync", std::string("none"));
  } else if (iteration || has_word(text, {"attn", "moe_router", "layer"})) {
    software.put("cuda_graphs", std::string("layers"));
  }
}

TomlValue routing_table(const PublishedRow& row, const std::string& where) {
  Table routing(where);
  const bool natural = has_word(lower(row.routing), {"natural", "random"});
  routing.put("kind", std::string(natural ? "uniform" : "balanced"));
  return routing.take();
}

/// Megatron demands equal parts or a layout. Where the layers alone do not make them, embedding and
/// head count as a layer each (account_for_embedding_in_pipeline_split and its like for the loss):
/// Llama 405B has its 126 layers for that, recipes of Qwen3 use it. Else all parts but the last are
/// full, which has the rest, MTP and head, or the first has the rest where there are so few
/// (set_deepseek_v3_pipeline_model_parallel_layout of Megatron-Bridge, read 2026-11). Empty where
/// nothing of that is needed.
std::string megatron_layout(const PublishedRow& row, const FrameworkDefaults& framework) {
  const std::int64_t parts = degree(row.pp) * degree(row.virtual_pp);
  const std::int64_t layers = row.layers.value_or(0);
  if (!framework.interleaves || degree(row.pp) == 1 || layers % parts == 0) return {};
  const auto layout = [&](std::int64_t first, std::int64_t part, std::int64_t last) {
    const auto layers_of = [](std::int64_t n) {
      return std::string(static_cast<std::size_t>(n), 't');
    };
    const std::string mtp(static_cast<std::size_t>(row.mtp_layers.value_or(0)), 'm');
    const std::string middle = parts > 2 ? fmt::format("({}|)*{}", layers_of(part), parts - 2) : "";
    return "E" + layers_of(first) + "|" + middle + layers_of(last) + mtp + "L";
  };
  if ((layers + 2) % parts == 0 && !row.mtp_layers) {
    const std::int64_t part = (layers + 2) / parts;
    return layout(part - 1, part, part - 1);
  }
  const std::int64_t part = (layers + parts - 1) / parts;
  const std::int64_t first_rest = layers - part * (parts - 2), last_rest = first_rest - part;
  if (first_rest < 0) return {};
  return last_rest >= 0 ? layout(part, part, last_rest) : layout(first_rest, part, 0);
}

TomlValue plan_table(const PublishedRow& row, const FrameworkDefaults& framework,
                     std::int64_t gpus_per_node, std::int64_t data_degree,
                     const std::string& where) {
  Table plan(framework.plan, where);
  if (row.has_experts()) put_expert_plan(row, framework, plan);
  TomlValue::Array modules;
  for (const std::string& module : stated_modules(row))
    modules.push_back(sim::toml_text(module, where));
  if (!modules.empty()) plan.put("recompute_modules", {.data = std::move(modules), .where = where});
  plan.put("data", sim::word_for(sim::data_parallel_names, framework.data));
  plan.put("tensor", degree(row.tp));
  plan.put("pipeline", degree(row.pp));
  plan.put("schedule", sim::word_for(sim::schedule_names, framework.schedule));
  if (degree(row.virtual_pp) > 1 && degree(row.pp) > 1) plan.put("virtual_stages", *row.virtual_pp);
  if (const std::string layout = megatron_layout(row, framework); !layout.empty())
    plan.put("stages", layout);
  if (degree(row.cp) > 1) plan.put("context", *row.cp);
  const std::int64_t in_node = gpus_per_node / std::min(gpus_per_node, degree(row.tp));
  if (row.shard_degree)
    plan.put("shard_degree", *row.shard_degree);
  else if (framework.shards_in_node && in_node > 1 && data_degree > in_node)
    plan.put("shard_degree", in_node);
  const std::string sp = lower(row.sp);
  const bool sequence =
      has_word(sp, {"yes", "true", "on"}) || (sp.empty() && framework.sequence_parallel);
  plan.put_flag("sequence_parallel", sequence && degree(row.tp) > 1);
  return plan.take();
}

/// A batch that does not divide (trainers that let the last micro-batch be smaller) is the nearest
/// that does, if that is near.
std::int64_t sequences_of_a_replica(const PublishedRow& row, std::int64_t data_degree,
                                    std::vector<std::string>& assumed) {
  constexpr double near = 0.05;
  const double exact =
      static_cast<double>(*row.global_batch_seqs) / static_cast<double>(data_degree);
  const std::int64_t whole = std::max<std::int64_t>(1, std::llround(exact));
  if (std::abs(static_cast<double>(whole) - exact) > near * exact)
    throw RefusedRow{"the global batch does not divide over the replicas"};
  if (whole * data_degree != *row.global_batch_seqs)
    assumed.push_back(fmt::format("global batch {}, the nearest that divides over the replicas",
                                  whole * data_degree));
  return whole;
}

/// Tokens of a sequence that are computed. Half of the positions of 512 hold no token in BERT's
/// Wikipedia sentences (arXiv 2107.02027, 2021), of 128 few; code that removes padding sorts
/// sequences into bins of 64 (NVIDIA's LDDL; that 21.11 does so is inferred, 2026-11) and fills up
/// half a bin on average.
std::int64_t sequence_of(const PublishedRow& row, const FrameworkDefaults& framework,
                         std::vector<std::string>& assumed) {
  constexpr std::int64_t long_sequence = 512;
  constexpr double filled = 0.5;
  constexpr std::int64_t half_bin = 32;
  if (!framework.removes_padding || *row.seq_len < long_sequence) return *row.seq_len;
  assumed.emplace_back("padding removed: half of the positions hold a token");
  return static_cast<std::int64_t>(filled * static_cast<double>(*row.seq_len)) + half_bin;
}

/// Stated, or from the accumulation steps; none: open.
std::optional<std::int64_t> stated_micro_batch(const PublishedRow& row, std::int64_t sequences) {
  if (row.micro_batch_seqs && *row.micro_batch_seqs > 0) {
    std::int64_t size = std::min(*row.micro_batch_seqs, sequences);
    while (sequences % size != 0) --size;  // the last one of a step is smaller there
    return size;
  }
  if (row.grad_accum && *row.grad_accum > 0 && sequences % *row.grad_accum == 0)
    return sequences / *row.grad_accum;
  return std::nullopt;
}

/// What a row states ran; memory is predicted within a fifth (reserved over allocated,
/// recalled, 2026).
bool may_fit(Scenario scenario) {
  scenario.node.gpu.memory = Bytes(scenario.node.gpu.memory.value * 6 / 5);
  return sim::fits(scenario);
}

Scenario with(const Scenario& scenario, Recompute recompute, std::int64_t micro_batch) {
  Scenario out = scenario;
  out.plan.recompute = recompute;
  if (recompute != Recompute::full) out.plan.recompute_every = 1;
  out.micro.micro_batch = micro_batch;
  return sim::with_degrees(out, out.plan.tensor, out.plan.pipeline);
}

/// With a pipeline the largest micro-batch has the largest bubble: the fastest one that fits.
std::int64_t fastest_micro_batch(const Scenario& scenario, Recompute recompute,
                                 std::int64_t sequences, sim::Session& session) {
  std::int64_t best = 1;
  Duration least{};
  for (const std::int64_t size : {1, 2, 4, 8}) {
    if (sequences % size != 0) break;
    Scenario candidate = with(scenario, recompute, size);
    if (size > 1 && !sim::fits(candidate)) break;
    candidate.run.ignore_memory = true;
    const Duration step = session.step(candidate).step_time;
    if (size == 1 || step < least) best = size, least = step;
  }
  return best;
}

std::int64_t largest_micro_batch(const Scenario& scenario, Recompute recompute,
                                 std::int64_t sequences) {
  std::int64_t best = 1;
  for (std::int64_t size = 2; size <= sequences; ++size)
    if (sequences % size == 0) {
      if (!sim::fits(with(scenario, recompute, size))) break;
      best = size;
    }
  return best;
}

struct Choice {
  std::optional<Recompute> recompute;  // none: open
  std::int64_t selective_every = 0;    // of "selective": every n-th layer; 0: attention alone
  std::optional<std::int64_t> micro_batch;
  std::int64_t sequences = 1;  // of a replica and step
};

/// What the row leaves open is chosen as its users would: the least recompute that may fit, then
/// the largest micro-batch that fits.
void choose(Scenario& scenario, const Choice& choice, std::vector<std::string>& assumed,
            sim::Session& session) {
  auto [recompute, selective_every, micro_batch, sequences] = choice;
  constexpr std::array<Recompute, 3> by_cost = {Recompute::none, Recompute::selective,
                                                Recompute::full};
  // The share of blocks that some code calls selective is open where the row does not state it:
  // none where that fits, else the code's default, every one.
  const bool every_block = selective_every == 1 && !sim::fits(with(scenario, Recompute::selective,
                                                                   micro_batch.value_or(1)));
  if (recompute == Recompute::selective && (selective_every > 1 || every_block)) {
    recompute = Recompute::full;
    scenario.plan.recompute_every = selective_every;
    assumed.push_back(fmt::format("recompute of 1 layer in {}", selective_every));
  }
  if (!recompute) {
    // The exchange cannot overlap and be sent once more.
    const Recompute most = scenario.plan.expert.overlap ? Recompute::selective : Recompute::full;
    recompute = most;
    for (const Recompute candidate : by_cost)
      if (candidate <= most && may_fit(with(scenario, candidate, micro_batch.value_or(1)))) {
        recompute = candidate;
        break;
      }
    assumed.push_back(fmt::format("recompute {}, the least that fits",
                                  sim::word_for(sim::recompute_names, *recompute)));
  }
  if (!micro_batch) {
    const bool pipeline = scenario.plan.pipeline > 1;
    micro_batch = pipeline ? fastest_micro_batch(scenario, *recompute, sequences, session)
                           : largest_micro_batch(scenario, *recompute, sequences);
    assumed.push_back(fmt::format("micro-batch {}, the {} that fits", *micro_batch,
                                  pipeline ? "fastest" : "largest"));
  }
  scenario = with(scenario, *recompute, *micro_batch);
}

/// Stated, or the framework's; open where that could not have run.
std::optional<Recompute> recompute_of(const PublishedRow& row, const FrameworkDefaults& framework,
                                      const Scenario& scenario, std::int64_t micro_batch) {
  if (const auto stated = stated_recompute(row)) return stated;
  if (framework.recompute == Recompute::none &&
      !may_fit(with(scenario, Recompute::none, micro_batch)))
    return std::nullopt;
  return framework.recompute;
}

/// Equal GPUs of five clusters lie 8 % apart between the whiskers, 5.4 standard deviations of a
/// normal distribution: 1.5 % (Sinha et al., SC 2022, arXiv 2208.11035). A run waits for its
/// slowest.
TomlValue noise_of_fleets(const std::string& where) {
  TomlValue noise = sim::toml_table(where);
  noise.set("pace_sigma", {0.015, where});
  return noise;
}

}  // namespace

RowScope scope_of(const PublishedRow& row) {
  RowScope out{row.gpu};
  const std::string gpu = lower(row.gpu);
  bool known = false;
  for (const auto& [word, kind] : {std::pair{"v100", "V100"}, {"a100", "A100"}, {"h100", "H100"}})
    if (gpu.find(word) != std::string::npos) out.gpu_kind = kind, known = true;
  if (gpu.find("h200") != std::string::npos && gpu.find("gh200") == std::string::npos)
    out.gpu_kind = "H200", known = true;
  bool sixteen_bits = false;
  try {
    sixteen_bits = stated_precision(row).has_value();
  } catch (const RefusedRow&) {
  }
  out.kind = kind_of(row);
  const bool dense = out.kind == "dense 16 bit";
  out.bucket = known && sixteen_bits && dense                                ? Bucket::dense
               : sixteen_bits && (!dense || has_word(gpu, {"b200", "b300"})) ? Bucket::modern
                                                                             : Bucket::none;
  return out;
}

ScenarioMaker::ScenarioMaker(sim::Session& session)
    : session_(session),
      defaults_(PublishedDefaults::standard(session.catalogue())),
      models_(session.catalogue().directory() + "/../validate/published_models.toml") {}

RowScenario ScenarioMaker::scenario_of(const PublishedRow& row, const std::string& where) const {
  RowScenario out;
  try {
    make(row, where, out);
  } catch (const RefusedRow& refused) {
    out.refused = refused.why;
  } catch (const InputError& error) {
    out.refused = error.problem();
    const std::string name = "model '" + row.model + "': ";
    if (out.refused.starts_with(name)) out.refused.erase(0, name.size());
  }
  return out;
}

void ScenarioMaker::make(const PublishedRow& row, const std::string& where,
                         RowScenario& out) const {
  const auto precision = stated_precision(row);
  const FrameworkDefaults framework = defaults_.framework(row);
  if (!framework.refused.empty()) throw RefusedRow{framework.refused};
  PublishedModel model = models_.of(row, framework.vocab_multiple * degree(row.tp));
  if (!model.refused.empty()) throw RefusedRow{model.refused};
  demand_sizes(row);
  const ClusterDefaults cluster = defaults_.cluster(row, framework.date);
  if (!cluster.refused.empty()) throw RefusedRow{cluster.refused};
  out.assumed = model.assumed;
  if (!cluster.assumption.empty()) out.assumed.push_back(cluster.assumption);

  const topology::NodeSpec node = session_.catalogue().node(cluster.node);
  // As many GPUs of each rack as make whole ones.
  const std::int64_t domain =
      node.gpus_per_tray > 0 && *row.gpus > node.gpus ? topology::even_domain(node, *row.gpus) : 0;
  if (domain > 0 && domain != node.gpus)
    out.assumed.push_back(fmt::format("{} GPUs of each rack of {} in use", domain, node.gpus));
  const std::int64_t gpus_per_node = domain > 0 ? domain : node.gpus;
  const std::int64_t model_ranks = degree(row.tp) * degree(row.pp) * degree(row.cp);
  if (*row.gpus % model_ranks != 0)
    throw RefusedRow{"tensor x pipeline x context do not divide the GPUs"};
  const std::int64_t data_degree = *row.gpus / model_ranks;
  const std::int64_t sequences = sequences_of_a_replica(row, data_degree, out.assumed);

  TomlValue document = sim::toml_table(where);
  document.set("title", sim::toml_text(row.id + " " + row.model, where));
  model.table.set("sequence", {sequence_of(row, framework, out.assumed), where});
  if (framework.dropout) model.table.set("dropout", {true, where});
  document.set("model", model.table);
  document.set("cluster",
               cluster_table(row, cluster, framework.nccl, gpus_per_node, domain, where));
  document.set("plan", plan_table(row, framework, gpus_per_node, data_degree, where));
  Table batch(where);
  batch.put("global", sequences * data_degree);
  const auto micro_batch = stated_micro_batch(row, sequences);
  batch.put("micro_batch", micro_batch.value_or(framework.micro_batch.value_or(1)));
  document.set("batch", batch.take());
  Table types(framework.precision, where);
  const sim::GpuIdentity* gpu = session_.catalogue().gpus().find(cluster.gpu);
  const bool volta = gpu != nullptr && gpu->gpu.architecture == topology::Architecture::volta;
  const auto compute = precision.value_or(volta ? workloads::Dtype::fp16 : workloads::Dtype::bf16);
  if (!precision) out.assumed.push_back("precision " + sim::word_for(sim::dtype_names, compute));
  types.put("compute", sim::word_for(sim::dtype_names, compute));
  types.put("gradient_reduce", sim::word_for(sim::dtype_names, framework.gradient_reduce));
  const std::string recipe = stated_recipe(row);
  if (recipe == "fp8" && framework.precision.find("recipe") == nullptr)
    throw RefusedRow{"precision fp8 whose scaling is not stated"};
  if (!recipe.empty() && recipe != "fp8") types.put("recipe", recipe);
  if (recipe == "fp8_block") types.put_flag("fp8_parameters", false);  // gathered in 16 bits
  if (recipe.empty() && framework.precision.find("recipe") != nullptr)
    types.put("recipe", std::string("none"));
  document.set("precision", types.take());
  if (row.has_experts()) document.set("routing", routing_table(row, where));
  Table software(framework.software, where);
  if (framework.optimizer == "lamb") software.put("optimizer", framework.optimizer);
  put_graphs(row, framework, software);
  put_connections(row, framework, software);
  document.set("software", software.take());
  document.set("noise", noise_of_fleets(where));

  Scenario scenario = sim::read_scenario(document, session_.catalogue());
  choose(scenario,
         {recompute_of(row, framework, scenario, micro_batch.value_or(1)),
          framework.selective_every, micro_batch ? micro_batch : framework.micro_batch, sequences},
         out.assumed, session_);
  if (!sim::fits(scenario))
    out.assumed.emplace_back("recompute and micro-batch as stated, although they should not fit");
  out.virtual_open = framework.interleaves && degree(row.pp) >= 4 && !row.virtual_pp;
  scenario.run.ignore_memory = true;
  out.document = sim::resolved_document(scenario);
  out.scenario = std::move(scenario);
}

}  // namespace stepcast::validate
