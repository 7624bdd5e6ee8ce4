#include "validate/command/study.hpp"

#include <fmt/format.h>

#include "sim/output/study_run.hpp"
#include "sim/program/interrupt.hpp"
#include "sim/program/progress.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/text.hpp"

namespace stepcast::validate {

std::vector<std::string> study_files(const sim::Catalogue& catalogue) {
  return {catalogue.directory() + "/weak_scaling.toml",
          catalogue.directory() + "/collectives.toml"};
}

sim::Results run_study(const std::string& path, const sim::Catalogue& catalogue, unsigned threads,
                       bool quiet) {
  sim::Study study = sim::read_study(sim::read_toml_file(path));
  sim::Session session(catalogue);
  sim::Progress progress(study.num_points(), sim::Progress::style_for(quiet));
  const auto read = [&](const sim::TomlValue& point) {
    return sim::read_scenario(point, catalogue);
  };
  return sim::run_study(std::move(study), {.read = read,
                                           .simulator = simulator_of(session),
                                           .threads = threads,
                                           .stop = sim::stop_requested(),
                                           .finished = [&](std::size_t d) { progress.show(d); }});
}

std::string study_text(const sim::Results& results) {
  const sim::TomlValue* title = results.study.base.find("title");
  const std::string tables = sim::references_text(results);
  return fmt::format("{}\n{}", title != nullptr && title->text() ? *title->text() : "untitled",
                     tables.empty() ? "\nno known figure at the simulated points\n" : tables);
}

}  // namespace stepcast::validate
