// What a plan may not be, as tables: each row a knob, a predicate and the sentence for its user.
// Who checks a plan throws the sentence; who searches plans asks the predicate alone.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/check.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// One way in which a `Case` (a plan, and what it is held against) cannot be.
template <class Case>
struct Rule {
  std::string_view knob;  // the key to change
  bool (*broken)(const Case&);
  std::string (*what)(const Case&);  // is wrong, when broken
  std::string (*hint)(const Case&);
  /// The last key that `broken` reads, in the order in which a search sets them
  /// (sim/search/space.cpp): it leaves out at once what it would still set after it. Empty: it asks
  /// when all keys are set.
  std::string_view last{};
};

/// The first of `rules` that `of` breaks; null: none. A later rule may rely on the earlier ones.
template <class Case>
const Rule<Case>* broken_rule(std::span<const Rule<Case>> rules, const Case& of) {
  for (const Rule<Case>& rule : rules)
    if (rule.broken(of)) return &rule;
  return nullptr;
}

/// Throws InputError at `where` with the first rule that is broken.
template <class Case>
void check_rules(std::span<const Rule<Case>> rules, const Case& of, const std::string& where) {
  if (const Rule<Case>* rule = broken_rule(rules, of))
    throw InputError(where, rule->what(of), rule->hint(of));
}

/// A plan of positive degrees beside the model and batch that it cuts.
struct PlanCase {
  const TransformerShape& shape;
  const ParallelPlan& plan;
  const Batch& batch;
};

/// "tensor degree 3 does not divide heads 32"; "degrees that do: 1 2 4".
std::string does_not_divide(std::string_view degree_name, std::int64_t degree,
                            std::string_view name, std::int64_t value);
std::string divisors_hint(std::int64_t value);

std::span<const Rule<PlanCase>> plan_rules();
/// About layers of experts and the ranks that share them.
std::span<const Rule<PlanCase>> expert_rules();

}  // namespace stepcast::workloads
