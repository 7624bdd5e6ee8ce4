// The study's scenarios, answered when first asked for, all under one set of assumptions.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/study/answer.hpp"
#include "validate/study/sets.hpp"

namespace stepcast::validate {

using Choose = std::function<bool(const sim::Scenario&)>;

/// A signal came before all points were answered.
class Interrupted : public std::exception {};

class StudyRuns {
 public:
  /// `session` is borrowed.
  StudyRuns(sim::Session& session, StudySet set, unsigned threads);

  const StudySet& set() const { return set_; }
  /// The points of the set's file of this name in its order, those that were refused too.
  const std::vector<sim::Answer>& answers(const std::string& study);
  /// The first step that `choose` picks; one that was refused, or none: BrokenPromise.
  const sim::StepReport& step(const std::string& study, const Choose& choose);
  const sim::CollectiveReport& collective(const std::string& study, const Choose& choose);
  /// The steps of those that `choose` picks.
  std::vector<const sim::StepReport*> steps(const std::string& study, const Choose& choose);
  /// A scenario that no file holds, of one that was taken from here.
  sim::StepReport again(const sim::Scenario& scenario) { return session_.step(scenario); }

 private:
  sim::Session& session_;
  StudySet set_;
  unsigned threads_;
  std::map<std::string, std::vector<sim::Answer>> answers_;
};

}  // namespace stepcast::validate
