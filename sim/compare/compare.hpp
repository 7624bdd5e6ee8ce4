// The two comparisons that can be asked for: sides that are given, and changes of one scenario.
// Knows no option.
#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison.hpp"
#include "sim/compare/runner.hpp"

namespace stepcast::sim {

/// Beside each other, and the way from the first that has an answer to each of the others.
Comparison compare_sides(std::vector<Asked> asked, Runner& runner, const OrderDraw& draw);

/// Changes of one scenario, each alone and all together. Degrees that are "best" are those of the
/// scenario without any. Throws NoFeasiblePlan where that has no answer.
Comparison compare_changes(const TomlValue& document, const std::string& name,
                           const std::vector<NamedChange>& changes, About about, Runner& runner,
                           const OrderDraw& draw);

/// One change per text of --what-if. Throws InputError.
std::vector<NamedChange> what_if_changes(const std::vector<std::string>& texts);
/// One change per effect that is left out; "all" leaves out each. Throws InputError.
std::vector<NamedChange> ablation_changes(const std::string& words);

}  // namespace stepcast::sim
