// What each of several changes of one scenario brings: alone, and its share of what all bring
// together. Knows no key: a change is a function on a document, an outcome is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/compare/shapley.hpp"
#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

struct NamedChange {
  std::string name;
  std::string from{}, to{};  // what it says before and after, where that is more than the name
  std::function<void(TomlValue&)> make{};
};

/// The step of a document in picoseconds, or why there is none.
struct Outcome {
  std::optional<std::int64_t> step_ps;
  std::string reason{};
  bool fits = true;  // in memory; where it does not, its step counts all the same
};
using Outcomes = std::function<std::vector<Outcome>(const std::vector<TomlValue>&)>;

struct ChangeEffect {
  std::string name, from, to;
  std::optional<std::int64_t> alone_ps;  // with this one made alone, less the step without any
  bool fits_alone = true;                // in memory
  std::string impossible;                // why it cannot be made alone
  std::optional<std::int64_t> share_ps;  // of what all bring together
  double error_ps = 0;                   // standard error of the share, where orders were drawn
  /// Neither alone nor beside the others.
  bool without_effect() const { return fits_alone && alone_ps == 0 && share_ps.value_or(0) == 0; }
};

struct Attribution {
  std::int64_t from_ps = 0, to_ps = 0;
  std::vector<ChangeEffect> changes;
  std::size_t runs = 0, unfit = 0;    // points asked for, and of them those beyond memory
  std::size_t orders = 0, asked = 0;  // as Shares says; no order: none can be made step by step
  bool exact = true;

  /// What all bring, less the sum of what each brings alone; none where one cannot be alone.
  std::optional<std::int64_t> interaction_ps() const;
};

struct OrderDraw {
  std::size_t orders = 50;
  std::uint64_t seed = 1;
};

/// `changes`: one or more, at most most_changes. Those that are impossible alone and possible
/// together are one change, "plan.data + software". None where none or all of them have no outcome.
std::optional<Attribution> attribute(const TomlValue& base, const std::vector<NamedChange>& changes,
                                     const Outcomes& outcomes, const OrderDraw& draw);

}  // namespace stepcast::sim
