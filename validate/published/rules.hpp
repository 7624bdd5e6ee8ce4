// When a rule of the published defaults applies: patterns on the words of a row, a span of dates,
// the GPU and the shape of its node. Knows not what rules say.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_table.hpp"
#include "validate/published/defaults.hpp"
#include "validate/rows/pattern.hpp"

namespace stepcast::validate {

/// What rules look at: a row and what has been found out about it so far.
struct RowFacts {
  RowFacts(const PublishedRow& row, YearMonth date, std::string gpu);

  const PublishedRow& row;
  YearMonth date;
  std::string gpu;    // of the catalogue; empty before it is known
  std::string words;  // all text of the row
};

/// The table `when` of a rule. Patterns are regular expressions (ECMAScript, letter case does not
/// count) that must be found in a column; all that are given must hold.
class Condition {
 public:
  Condition() = default;
  explicit Condition(const sim::TomlValue& table);
  bool holds(const RowFacts& facts) const;
  bool always() const;

 private:
  struct Demand {
    std::string PublishedRow::*column;  // null: all words
    Pattern pattern;
  };
  std::vector<Demand> demands_;
  std::vector<std::string> gpus_;
  std::vector<std::int64_t> gpus_per_node_;
  std::optional<YearMonth> from_, until_;         // from <= date < until
  std::optional<double> least_params_b_;          // 1e9; a row that states none does not fit
  std::optional<double> most_sequence_;           // tokens; likewise
  std::optional<double> least_gbps_, most_gbps_;  // of a node; a row that states none does not fit
  std::optional<bool> several_nodes_;             // more GPUs than one node holds
  std::optional<bool> model_parallel_;            // tensor or pipeline parallel
  std::optional<bool> interleaved_;               // several model chunks per pipeline stage
  std::optional<bool> experts_;                   // a mixture of experts
  std::optional<bool> adapters_;                  // trains adapters (LoRA)
  std::optional<bool> expert_degree_;             // is stated
  std::optional<bool> compiled_;                  // as stated; a row that says nothing does not fit
};

/// "2023-09" or "2023". Throws InputError where it stands.
YearMonth date_of(const std::string& text, const std::string& where);

/// Software versions and their dates, from the data file: "torch 2.3" -> 2024-04.
struct Release {
  Pattern words;
  YearMonth date;
};
/// The month in which a row's software was current, where its framework, source, address or notes
/// say so: a known release, an NVIDIA container or NeMo tag (23.06), an arXiv number, a year.
std::optional<YearMonth> stated_date(const PublishedRow& row, const std::vector<Release>& releases);

}  // namespace stepcast::validate
