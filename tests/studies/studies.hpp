// The study's experiments, answered once per program: every point of a file in scenarios/, read and
// simulated as `stepcast run` does. The tests beside it hold the study's trends against them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/study/answer.hpp"

namespace stepcast::sim {

using Choose = std::function<bool(const Scenario&)>;

class StudyResults {
 public:
  explicit StudyResults(const std::string& name);

  /// The first point that `choose` picks. Throws when there is none, or when it was refused.
  const StepReport& step(const Choose& choose) const;
  const CollectiveReport& collective(const Choose& choose) const;
  /// The steps that `choose` picks, in the order of the file; refused points left out.
  std::vector<const StepReport*> steps(const std::function<bool(const StepReport&)>& choose) const;

 private:
  std::string name_;
  std::vector<Answer> answers_;
};

/// The results of scenarios/<name>.toml.
const StudyResults& study(const std::string& name);

/// What weak scaling compares.
double tokens_per_second_per_gpu(const StepReport& report);
/// Part of the step in which bytes move and no kernel runs.
double exposed_share(const StepReport& report);
/// From `before` to `after`, in percent.
double change(double before, double after);

}  // namespace stepcast::sim
