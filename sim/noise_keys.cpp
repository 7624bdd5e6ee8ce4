#include "sim/noise_keys.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/names.hpp"

namespace stepcast::sim {
namespace {

constexpr Names<engine::Distribution, 2> distribution_names{{
    {"lognormal", engine::Distribution::lognormal},
    {"exponential", engine::Distribution::exponential},
}};

/// A standard deviation as a share: 0.02.
double read_sigma(TableReader& table, const char* key) {
  const double sigma = table.number(key, Range::not_negative).value_or(0.0);
  if (sigma > 1.0)
    table.fail(key, "'" + std::string(key) + "' in [noise] is more than 1",
               "it is a share of the duration: 0.02 is two percent");
  return sigma;
}

Straggler read_straggler(const TomlValue& value, const Scenario& scenario) {
  TableReader table(value, "noise.straggler");
  const auto rank = table.integer("rank", 0);
  const auto node = table.integer("node", 0);
  const double slowdown = table.required("slowdown", table.number("slowdown"));
  table.finish();
  if (rank && node) table.fail("node", "both 'rank' and 'node' in [[noise.straggler]]");
  if (!rank && !node) table.missing("rank", "or 'node'");
  if (slowdown < 1.0 || slowdown > 1000.0)
    table.fail("slowdown", "'slowdown' in [[noise.straggler]] is not between 1 and 1000",
               "1.2 makes kernels take 20 % longer");
  const std::int64_t count = rank ? scenario.gpus : scenario.nodes;
  const std::int64_t index = rank ? *rank : *node;
  const char* key = rank ? "rank" : "node";
  if (index >= count)
    table.fail(key,
               "there is no " + std::string(key) + " " + std::to_string(index) + " among " +
                   std::to_string(count),
               "they are counted from 0");
  return {node.has_value(), index, slowdown};
}

}  // namespace

void read_noise(TableReader& table, Scenario& scenario) {
  for (const char* key :
       {"distribution", "kernel_sigma", "gpu_sigma", "pace_sigma", "steps", "straggler"})
    table.value(key);
  Noise noise;
  noise.distribution =
      table.choice("distribution", distribution_names).value_or(engine::Distribution::lognormal);
  noise.kernel_sigma = read_sigma(table, "kernel_sigma");
  noise.gpu_sigma = read_sigma(table, "gpu_sigma");
  noise.pace_sigma = read_sigma(table, "pace_sigma");
  noise.steps = table.integer("steps").value_or(noise.steps);
  if (noise.steps > 100'000) table.fail("steps", "'steps' in [noise] is too large");
  if (const TomlValue* list = table.value("straggler")) {
    if (list->array() == nullptr)
      table.fail("straggler", "'straggler' in [noise] must be written [[noise.straggler]]");
    for (const TomlValue& item : *list->array())
      noise.stragglers.push_back(read_straggler(item, scenario));
  }
  scenario.noise = std::move(noise);
  table.finish();
}

Ablation read_without(TableReader& run) {
  const TomlValue* found = run.value("without");
  if (found == nullptr) return {};
  std::vector<std::string> words;
  if (found->array() != nullptr) {
    words = *run.texts("without");
  } else {
    std::string text = *run.text("without");
    std::erase(text, ' ');
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      words.push_back(text.substr(start, comma - start));
      start = comma + 1;
    }
    if (words == std::vector<std::string>{"none"}) return {};
  }
  Ablation out;
  for (const std::string& word : words) {
    const auto* const at =
        std::ranges::find(ablation_names, word, [](const auto& entry) { return entry.first; });
    std::vector<std::string> known;
    for (const auto& [name, member] : ablation_names) known.emplace_back(name);
    if (at == ablation_names.end())
      run.fail("without", "'without' in [run] cannot be '" + word + "'", suggestion(word, known));
    out.*(at->second) = true;
  }
  return out;
}

TomlValue noise_table(const Noise& noise) {
  TomlValue table = toml_table({});
  table.set("distribution", toml_text(word_for(distribution_names, noise.distribution), {}));
  table.set("kernel_sigma", {noise.kernel_sigma, {}});
  table.set("gpu_sigma", {noise.gpu_sigma, {}});
  if (noise.pace_sigma > 0.0) table.set("pace_sigma", {noise.pace_sigma, {}});
  table.set("steps", {noise.steps, {}});
  TomlValue::Array list;
  for (const Straggler& straggler : noise.stragglers) {
    TomlValue item = toml_table({});
    item.set(straggler.node ? "node" : "rank", {straggler.index, {}});
    item.set("slowdown", {straggler.slowdown, {}});
    list.push_back(std::move(item));
  }
  if (!list.empty()) table.set("straggler", {std::move(list), {}});
  return table;
}

}  // namespace stepcast::sim
