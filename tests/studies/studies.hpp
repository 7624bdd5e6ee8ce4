// The study's experiments, answered once per program by what `validate study --trends` asks
// (validate/study/runs.hpp). The tests beside it hold the study's trends against them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/study/runs.hpp"

namespace stepcast::sim {

using validate::Choose;

/// One of them.
struct StudyResults {
  std::string name;

  /// The first point that `choose` picks. Throws when there is none that was answered.
  const StepReport& step(const Choose& choose) const;
  const CollectiveReport& collective(const Choose& choose) const;
  /// The steps that `choose` picks, in the order of the file; refused points left out.
  std::vector<const StepReport*> steps(const std::function<bool(const StepReport&)>& choose) const;
};

/// The results of scenarios/<name>.toml.
inline StudyResults study(const std::string& name) { return {name}; }

/// What weak scaling compares.
double tokens_per_second_per_gpu(const StepReport& report);
/// Part of the step in which bytes move and no kernel runs.
double exposed_share(const StepReport& report);
/// From `before` to `after`, in percent.
double change(double before, double after);

}  // namespace stepcast::sim
