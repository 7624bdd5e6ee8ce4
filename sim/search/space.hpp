// The plans that are tried: the values of every knob, walked with what no rule allows left out and
// plans that come to the same counted once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/search/knobs.hpp"

namespace stepcast::sim {

class SearchSpace {
 public:
  /// Every knob with its usual values. `bases` has the scenario once for each framework that may be
  /// chosen: machine, model and batch are theirs, the plan is not.
  SearchSpace(std::vector<Scenario> bases, bool across_nodes);
  /// The knobs that the scenario leaves open; all else is as it says.
  static SearchSpace of_open_keys(const Scenario& scenario);

  /// The values of a knob, from a TOML array or a single value: numbers or the knob's words.
  /// Throws InputError for an unknown knob or value.
  void set(const std::string& key, const TomlValue& values);
  /// The same for every key of a [space] table, nested or dotted.
  void set_all(const TomlValue& table);

  /// Calls f for every legal plan, in an order that depends on the space alone; f returns whether
  /// to go on.
  using Visit = std::function<bool(const KnobValues&, const DraftPlan&)>;
  /// `tally` counts what rules refuse on the way.
  void walk(const Visit& visit, RuleTally* tally = nullptr) const;
  /// A few of them: all degrees, kinds of data and of sequence parallelism, nothing or everything
  /// recomputed, of every other knob the first value. Where one of them fits it is soon found.
  void walk_few(const Visit& visit) const;
  /// Of all values, legal or not.
  std::size_t combinations() const { return combinations_after(0); }

  /// The first that a walk meets of a framework, the plainest; none: no plan of it is legal.
  std::optional<KnobValues> first_plan(std::int64_t framework) const;

  /// Its framework's scenario, with its recipe and graphs.
  const Scenario& base(const KnobValues& values) const { return variants_.at(variant_of(values)); }
  const std::vector<Scenario>& bases() const { return bases_; }
  /// The scenario that runs this plan.
  Scenario scenario_of(const KnobValues&) const;
  /// "tensor 1 2 4 8", a line per knob that has a choice.
  std::vector<std::string> choices() const;
  const std::vector<std::int64_t>& values_of(const Knob&) const;

 private:
  struct Walk;
  SearchSpace() = default;
  void make_variants();
  static std::size_t variant_of(const KnobValues&);
  using Values = std::vector<std::vector<std::int64_t>>;  // by knob
  bool walk_framework(std::int64_t framework, const Values&, const Visit& visit,
                      RuleTally* tally) const;
  bool walk_knob(std::size_t set, KnobValues& values, const Walk& walk) const;
  bool may_become_a_plan(const Knob&, std::size_t set, const KnobValues& values,
                         const Walk& walk) const;
  bool possible_so_far(std::size_t place, const KnobValues& values) const;
  std::size_t combinations_after(std::size_t set) const;
  bool first_of_its_kind(const KnobValues& values, const DraftPlan& plan) const;

  std::vector<Scenario> bases_;
  std::vector<Scenario> variants_;  // of each base by recipe and graphs
  Values values_;
};

/// The keys of a [space] table, nested or dotted, as one table of dotted keys.
TomlValue dotted_keys(const TomlValue& table);

/// Whatever graphs the two replay.
bool same_framework(const workloads::Software&, const workloads::Software&);

}  // namespace stepcast::sim
