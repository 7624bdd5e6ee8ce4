#include "validate/study/runs.hpp"

#include <filesystem>
#include <optional>
#include <variant>

#include "engine/check.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::validate {

namespace {

std::string file_of(const StudySet& set, const std::string& study, const std::string& directory) {
  const std::string preset = directory + "/study/" + study + ".toml";
  if (set.preset && std::filesystem::exists(preset)) return preset;
  return directory + "/" + study + ".toml";
}

/// With the machines of the set in the place of others.
sim::TomlValue on_nodes_of(const StudySet& set, sim::TomlValue document) {
  const sim::TomlValue* node = sim::find_path(document, "cluster.node");
  if (node == nullptr || node->text() == nullptr) return document;
  const sim::TomlValue other = sim::toml_text(set.node(*node->text()), node->where);
  sim::set_path(document, "cluster.node", other);
  return document;
}

}  // namespace

StudyRuns::StudyRuns(sim::Session& session, StudySet set, unsigned threads)
    : session_(session), set_(std::move(set)), threads_(threads) {}

const std::vector<sim::Answer>& StudyRuns::answers(const std::string& study) {
  if (const auto known = answers_.find(study); known != answers_.end()) return known->second;
  const sim::Catalogue& catalogue = session_.catalogue();
  sim::TomlValue document = sim::read_toml_file(file_of(set_, study, catalogue.directory()));
  for (const auto& [path, value] : set_.keys) sim::set_path(document, path, value);
  if (set_.local_batch && study == "weak_scaling")
    for (const char* key : {"batch.local", "batch.micro_batch"})
      sim::set_path(document, key, *set_.local_batch);
  const sim::Study points = sim::read_study(std::move(document));
  std::vector<std::optional<sim::Answer>> made(points.num_points());
  sim::for_each_index(made.size(), threads_, sim::stop_requested(), [&](std::size_t i) {
    const sim::TomlValue point = on_nodes_of(set_, points.document_of(points.point(i)));
    made[i] = sim::answer(sim::read_scenario(point, catalogue), simulator_of(session_));
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
