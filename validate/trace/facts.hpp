// What logs and traces say of the run, as keys of a scenario: to write the scenario, or to hold it
// against one that was given. Knows no times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/trace/records/events.hpp"
#include "validate/trace/settings.hpp"

namespace stepcast::validate {

struct Fact {
  std::string key;  // "plan.tensor"
  sim::TomlValue value;
  std::string source;  // "the log"
};

struct Facts {
  std::vector<Fact> all;  // a key once
  std::optional<std::int64_t> ranks;
  std::string ranks_source;
  std::string gpu;  // CUDA's name
  std::string gpu_source;
  std::int64_t gpus_per_node = 0;
  std::vector<std::string> notes;  // what the run did that a scenario cannot say

  const sim::TomlValue* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  /// Replaces what was said before.
  void set(const std::string& key, sim::TomlValue value, const std::string& source);
};

/// Of a configuration of Megatron-LM, NeMo or torchtitan; `source` is its file.
void add_facts(Facts& facts, const Settings& settings, const sim::Catalogue& catalogue,
               const std::string& source);
void add_facts(Facts& facts, const RankTrace& trace, const sim::Catalogue& catalogue);

/// Sentences on every fact that the scenario says otherwise, both values in each.
std::vector<std::string> contradictions(const Facts& facts, const sim::Scenario& scenario);

/// The scenario that the facts make, `settings` over them. Throws InputError naming every key that
/// nobody said.
sim::TomlValue document_of(const Facts& facts,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::Catalogue& catalogue);

/// A sentence on what matters and the document leaves to the defaults; empty where nothing is.
std::string left_open(const sim::TomlValue& document, const sim::Scenario& scenario);

}  // namespace stepcast::validate
