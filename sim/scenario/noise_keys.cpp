#include "sim/scenario/noise_keys.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/split.hpp"

namespace stepcast::sim {
namespace {

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

void read_stragglers(TableReader& table, Scenario& scenario) {
  const TomlValue* list = table.value("straggler");
  if (list == nullptr) return;
  if (list->array() == nullptr)
    table.fail("straggler", "'straggler' in [noise] must be written [[noise.straggler]]");
  for (const TomlValue& item : *list->array())
    scenario.noise.stragglers.push_back(read_straggler(item, scenario));
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
    for (const std::string_view word : split(text, ',')) words.emplace_back(word);
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

TomlValue stragglers_list(const Noise& noise) {
  TomlValue::Array list;
  for (const Straggler& straggler : noise.stragglers) {
    TomlValue item = toml_table({});
    item.set(straggler.node ? "node" : "rank", {straggler.index, {}});
    item.set("slowdown", {straggler.slowdown, {}});
    list.push_back(std::move(item));
  }
  return {std::move(list), {}};
}

}  // namespace stepcast::sim
