#include "studies.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

StudyResults::StudyResults(const std::string& name) : name_(name) {
  const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  const Study study = read_study(read_toml_file(catalogue.directory() + "/" + name + ".toml"));
  const std::atomic<bool> stop = false;
  std::vector<std::optional<Answer>> answers(study.num_points());
  for_each_index(answers.size(), std::max(1U, std::thread::hardware_concurrency()), stop,
                 [&](std::size_t i) {
                   answers[i] = answer(read_scenario(study.document_of(study.point(i)), catalogue),
                                       simulator_of(session()));
                 });
  for (auto& answer : answers) answers_.push_back(std::move(*answer));
}

const StepReport& StudyResults::step(const Choose& choose) const {
  for (const Answer& answer : answers_) {
    if (!choose(scenario_of(answer))) continue;
    if (const auto* report = std::get_if<StepReport>(&answer)) return *report;
    throw std::runtime_error(name_ + " refuses: " + std::get<Refused>(answer).reason);
  }
  throw std::runtime_error(name_ + " has no such point");
}

const CollectiveReport& StudyResults::collective(const Choose& choose) const {
  for (const Answer& answer : answers_)
    if (choose(scenario_of(answer))) return std::get<CollectiveReport>(answer);
  throw std::runtime_error(name_ + " has no such point");
}

std::vector<const StepReport*> StudyResults::steps(
    const std::function<bool(const StepReport&)>& choose) const {
  std::vector<const StepReport*> out;
  for (const Answer& answer : answers_)
    if (const auto* report = std::get_if<StepReport>(&answer); report != nullptr && choose(*report))
      out.push_back(report);
  return out;
}

const StudyResults& study(const std::string& name) {
  static std::map<std::string, std::unique_ptr<StudyResults>> results;
  auto& entry = results[name];
  if (!entry) entry = std::make_unique<StudyResults>(name);
  return *entry;
}

double tokens_per_second_per_gpu(const StepReport& report) {
  return report.tokens_per_second / static_cast<double>(report.scenario.gpus);
}

double exposed_share(const StepReport& report) {
  return seconds(report.exposed.total()) / seconds(report.step_time);
}

double change(double before, double after) { return 100 * (after / before - 1); }

}  // namespace stepcast::sim
