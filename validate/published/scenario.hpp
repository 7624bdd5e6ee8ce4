// From a published row to a scenario: what the row states, and the documented defaults of its
// framework, GPU and model where it says nothing. No row and no source is treated by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/published/defaults.hpp"
#include "validate/published/model.hpp"
#include "validate/rows/row.hpp"

namespace stepcast::validate {

struct RowScenario {
  PublishedRow row;                       // completed (completed.hpp)
  std::optional<sim::Scenario> scenario;  // memory is not asked for: the row ran
  sim::TomlValue document;                // the same as a scenario file
  std::string refused;                    // why there is none
  std::vector<std::string> assumed;       // sentences
  bool tokens_open = false;               // how many tokens a GPU has at once at most is not stated
  bool batch_open = false;                // how many micro-batches a step has is not stated
  bool virtual_open = false;  // four stages or more that may be interleaved, the row does not say
};

/// What a row is scored with: dense models in 16 bits on V100, A100, H100 or H200; or experts, low
/// precision, Blackwell.
enum class Bucket : std::uint8_t { none, dense, modern };

/// Precision and GPU of a row as far as the scope of the score goes.
struct RowScope {
  std::string gpu_kind{};  // "V100", "A100", "H100", "H200", else the row's own word
  std::string kind{};      // "dense 16 bit", "dense mxfp8", "MoE fp8", ...
  Bucket bucket = Bucket::none;
};
RowScope scope_of(const PublishedRow& row);

class ScenarioMaker {
 public:
  explicit ScenarioMaker(sim::Session& session);

  /// Never throws for a row; `where` names it in messages.
  RowScenario scenario_of(const PublishedRow& row, const std::string& where) const;
  /// Its GPU is of a kind that is counted apart.
  bool aside(const PublishedRow& row) const { return defaults_.aside(row); }

 private:
  RowScenario of_row(const PublishedRow& row, const std::string& where) const;
  RowScenario of_open_row(const PublishedRow& row, const std::string& where) const;
  void make(const PublishedRow& row, const std::string& where, RowScenario& out) const;

  sim::Session& session_;
  PublishedDefaults defaults_;
  PublishedModels models_;
};

}  // namespace stepcast::validate
