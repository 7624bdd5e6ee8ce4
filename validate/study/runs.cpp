#include "validate/study/runs.hpp"

#include <optional>
#include <variant>

#include "engine/check.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::validate {

StudyRuns::StudyRuns(sim::Session& session, std::vector<std::pair<std::string, std::string>> nccl,
                     unsigned threads)
    : session_(session), nccl_(std::move(nccl)), threads_(threads) {}

const std::vector<sim::Answer>& StudyRuns::answers(const std::string& study) {
  if (const auto known = answers_.find(study); known != answers_.end()) return known->second;
  const sim::Catalogue& catalogue = session_.catalogue();
  const std::string file = catalogue.directory() + "/" + study + ".toml";
  sim::TomlValue document = sim::read_toml_file(file);
  for (const auto& [name, value] : nccl_)
    sim::set_path(document, "nccl." + name, sim::toml_text(value, file));
  const sim::Study points = sim::read_study(std::move(document));
  std::vector<std::optional<sim::Answer>> made(points.num_points());
  sim::for_each_index(made.size(), threads_, sim::stop_requested(), [&](std::size_t i) {
    made[i] = sim::answer(sim::read_scenario(points.document_of(points.point(i)), catalogue),
                          simulator_of(session_));
  });
  if (sim::stop_requested()) throw Interrupted();
  std::vector<sim::Answer>& out = answers_[study];
  for (auto& answer : made) out.push_back(std::move(*answer));
  return out;
}

const sim::StepReport& StudyRuns::step(const std::string& study, const Choose& choose) {
  for (const sim::Answer& answer : answers(study))
    if (const auto* report = std::get_if<sim::StepReport>(&answer))
      if (choose(report->scenario)) return *report;
  throw BrokenPromise("a step of " + study + " that the study's statements need");
}

const sim::CollectiveReport& StudyRuns::collective(const std::string& study, const Choose& choose) {
  for (const sim::Answer& answer : answers(study))
    if (const auto* report = std::get_if<sim::CollectiveReport>(&answer))
      if (choose(report->scenario)) return *report;
  throw BrokenPromise("a collective of " + study + " that the study's statements need");
}

std::vector<const sim::StepReport*> StudyRuns::steps(const std::string& study,
                                                     const Choose& choose) {
  std::vector<const sim::StepReport*> out;
  for (const sim::Answer& answer : answers(study))
    if (const auto* report = std::get_if<sim::StepReport>(&answer))
      if (choose(report->scenario)) out.push_back(report);
  return out;
}

}  // namespace stepcast::validate
