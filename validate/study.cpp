#include "validate/study.hpp"

#include <fmt/format.h>

#include "sim/interrupt.hpp"
#include "sim/progress.hpp"
#include "sim/report_text.hpp"
#include "sim/scenario_file.hpp"
#include "sim/simulate.hpp"

namespace stepcast::validate {

std::vector<std::string> study_files(const sim::Catalogue& catalogue) {
  return {catalogue.directory() + "/weak_scaling.toml",
          catalogue.directory() + "/collectives.toml"};
}

sim::Results run_study(const std::string& path, const sim::Catalogue& catalogue, unsigned threads,
                       bool quiet) {
  sim::Results results{sim::read_study(sim::read_toml_file(path)), {}, false};
  std::vector<sim::Scenario> scenarios;
  for (const sim::SweepPoint& point : results.study.points)
    scenarios.push_back(sim::read_scenario(results.study.document_of(point), catalogue));
  sim::Progress progress(scenarios.size(), sim::Progress::style_for(quiet));
  sim::Batched batch =
      sim::answer_all(scenarios, {sim::simulate, sim::simulate_collective}, threads,
                      sim::stop_requested(), [&](std::size_t done) { progress.show(done); });
  results.answers = std::move(batch.answers);
  results.interrupted = batch.interrupted;
  return results;
}

std::string study_text(const sim::Results& results) {
  const sim::TomlValue* title = results.study.base.find("title");
  const std::string tables = sim::references_text(results);
  return fmt::format("{}\n{}", title != nullptr && title->text() ? *title->text() : "untitled",
                     tables.empty() ? "\nno known figure at the simulated points\n" : tables);
}

}  // namespace stepcast::validate
