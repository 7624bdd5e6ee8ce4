#include "studies.hpp"

#include <algorithm>
#include <thread>

#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

validate::StudyRuns& runs() {
  static validate::StudyRuns all(session(), validate::StudySet{},
                                 std::max(1U, std::thread::hardware_concurrency()));
  return all;
}

}  // namespace

const StepReport& StudyResults::step(const Choose& choose) const {
  return runs().step(name, choose);
}

const CollectiveReport& StudyResults::collective(const Choose& choose) const {
  return runs().collective(name, choose);
}

std::vector<const StepReport*> StudyResults::steps(
    const std::function<bool(const StepReport&)>& choose) const {
  std::vector<const StepReport*> out = runs().steps(name, [](const Scenario&) { return true; });
  std::erase_if(out, [&](const StepReport* report) { return !choose(*report); });
  return out;
}

double tokens_per_second_per_gpu(const StepReport& report) {
  return report.tokens_per_second / static_cast<double>(report.scenario.gpus);
}

double exposed_share(const StepReport& report) {
  return seconds(report.exposed.total()) / seconds(report.step_time);
}

double change(double before, double after) { return 100 * (after / before - 1); }

}  // namespace stepcast::sim
