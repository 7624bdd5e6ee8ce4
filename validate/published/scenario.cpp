#include "validate/published/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/run/memory_figures.hpp"
#include "sim/scenario/file.hpp"
#include "topology/rack.hpp"
#include "validate/published/choice.hpp"
#include "validate/published/completed.hpp"
#include "validate/published/open_choices.hpp"
#include "validate/published/row_keys.hpp"
#include "validate/published/scenario_table.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::Scenario;
using sim::TomlValue;

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
  ScenarioTable table(where);
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
  ScenarioTable plan(framework.plan, where);
  if (row.has_experts()) put_expert_plan(row, framework, plan);
  put_memory_plan(row, plan);
  if (stated_adapters(row).rank > 0 && framework.plan.find("tensor_overlap") != nullptr)
    plan.put("tensor_overlap", std::string("none"));  // not modelled beside adapters
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
  CompletedRow full = completed(row, models_, session_.catalogue());
  RowScenario out;
  if (full.row.columns == ColumnSet::what_ran) {
    out = of_open_row(full.row, where);
    out.tokens_open = out.tokens_open || full.uneven;
  } else {
    out = of_row(full.row, where);
    out.row = std::move(full.row);
  }
  out.assumed.insert(out.assumed.begin(), full.assumed.begin(), full.assumed.end());
  return out;
}

RowScenario ScenarioMaker::of_open_row(const PublishedRow& row, const std::string& where) const {
  FrameworkDefaults framework = defaults_.framework(row);
  if (!framework.refused.empty() && !row.ep) {
    PublishedRow shared = row;
    shared.ep = 1;
    framework.expert_degree_open = defaults_.framework(shared).refused.empty();
  }
  std::vector<OpenChoice> open = open_choices(row, framework);
  std::vector<RowScenario> made;
  std::vector<ChoiceForecast> forecasts;
  RowScenario refused;
  for (OpenChoice& choice : open) {
    std::vector<std::string> assumed;
    const bool batch_known = take_batch(choice.row, assumed);
    RowScenario one = of_row(choice.row, where);
    one.row = choice.row;
    one.tokens_open = choice.tokens;
    one.batch_open = !batch_known;
    if (!one.scenario) {
      if (refused.refused.empty()) refused = std::move(one);
      continue;
    }
    one.assumed.insert(one.assumed.begin(), assumed.begin(), assumed.end());
    const auto figures = sim::memory_figures(*one.scenario);
    forecasts.push_back({&choice, figure_of(figures, row.mem_figure),
                         figures.needed() <= one.scenario->node.gpu.memory});
    made.push_back(std::move(one));
  }
  if (made.empty()) return refused;
  if (open.size() == 1) return std::move(made.front());
  const TakenChoice taken = taken_choice(row, forecasts);
  made[taken.index].assumed.push_back(told_open(row, framework) + taken.told);
  return std::move(made[taken.index]);
}

RowScenario ScenarioMaker::of_row(const PublishedRow& row, const std::string& where) const {
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
  const std::vector<std::string> told = told_of_words(row);
  const FrameworkDefaults framework = defaults_.framework(row);
  if (!framework.refused.empty()) throw RefusedRow{framework.refused};
  PublishedModel model = models_.of(row, framework.vocab_multiple * degree(row.tp));
  if (!model.refused.empty()) throw RefusedRow{model.refused};
  demand_sizes(row);
  const ClusterDefaults cluster = defaults_.cluster(row, framework.date);
  if (!cluster.refused.empty()) throw RefusedRow{cluster.refused};
  out.assumed = model.assumed;
  for (const std::string& sentence : told) out.assumed.push_back(sentence);
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
  for (const std::string& sentence : put_adapters(row, framework, model.table, where))
    out.assumed.push_back(sentence);
  document.set("model", model.table);
  document.set("cluster",
               cluster_table(row, cluster, framework.nccl, gpus_per_node, domain, where));
  document.set("plan", plan_table(row, framework, gpus_per_node, data_degree, where));
  ScenarioTable batch(where);
  batch.put("global", sequences * data_degree);
  const auto micro_batch = stated_micro_batch(row, sequences);
  batch.put("micro_batch", micro_batch.value_or(framework.micro_batch.value_or(1)));
  document.set("batch", batch.take());
  ScenarioTable types(framework.precision, where);
  const sim::GpuIdentity* gpu = session_.catalogue().gpus().find(cluster.gpu);
  const bool volta = gpu != nullptr && !gpu->gpu.architecture.bf16;
  const auto compute = precision.value_or(volta ? workloads::Dtype::fp16 : workloads::Dtype::bf16);
  if (!precision) out.assumed.push_back("precision " + sim::word_for(sim::dtype_names, compute));
  types.put("compute", sim::word_for(sim::dtype_names, compute));
  types.put("gradient_reduce", sim::word_for(sim::dtype_names, framework.gradient_reduce));
  const std::string recipe = stated_recipe(row);
  if (recipe == "fp8" && framework.precision.find("recipe") == nullptr)
    throw RefusedRow{"precision fp8 whose scaling is not stated"};
  if (!recipe.empty() && recipe != "fp8") types.put("recipe", recipe);
  if (recipe == "fp8_block") types.put_flag("fp8_parameters", false);  // gathered in 16 bits
  if (has_word(lower(row.fp8_recipe), {"all-gather"})) types.put_flag("fp8_parameters", true);
  if (recipe.empty() && framework.precision.find("recipe") != nullptr)
    types.put("recipe", std::string("none"));
  document.set("precision", types.take());
  if (row.has_experts()) document.set("routing", routing_table(row, where));
  ScenarioTable software(framework.software, where);
  put_software(row, framework, software);
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
