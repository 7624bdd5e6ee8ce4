#include "validate/command/points.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/check.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/installation.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "validate/trainer/ranks/process.hpp"
#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;
using sim::Arguments;

std::string label_of(const sim::SweepPoint& point) {
  std::string label;
  for (const sim::Setting& setting : point)
    label += (label.empty() ? "" : ", ") + setting.path.substr(setting.path.rfind('.') + 1) + " " +
             sim::write_toml_value(setting.value);
  std::erase(label, '"');
  return label;
}

/// The file that the measurements go to: the scenario's last table that is not the shipped one.
std::string table_of(const Arguments& arguments, const sim::Scenario& scenario) {
  std::string table = arguments.get("table");
  for (const std::string& name : scenario.tables)
    if (arguments.get("table").empty() && name != "published") table = name;
  if (table.empty()) table = trains_on_gpus(scenario) ? "gpu" : "host";
  return fs::path(table).has_extension() ? fs::absolute(table).string()
                                         : sim::beside_program(table + ".h5");
}

}  // namespace

std::vector<Point> points_of(const sim::Verb& verb, const Arguments& arguments,
                             const fs::path& folder, const sim::Catalogue& catalogue) {
  const std::string& file = arguments.first("which scenario?");
  sim::TomlValue document = sim::read_toml_file(file);
  for (const auto& [key, value] : sim::settings_of(verb, arguments))
    sim::override_key(document, key, value);
  const sim::Study study = sim::read_study(std::move(document));
  std::vector<Point> points;
  for (std::size_t i = 0; i < study.num_points(); ++i) {
    const sim::SweepPoint at = study.point(i);
    Point point{label_of(at), sim::read_scenario(study.document_of(at), catalogue),
                folder / "points" / fmt::format("{:04}", points.size() + 1)};
    point.scenario.tables = {table_of(arguments, point.scenario)};
    if (point.label.empty()) point.label = point.scenario.title;
    points.push_back(std::move(point));
  }
  return points;
}

void write_points(const std::vector<Point>& points) {
  for (const Point& point : points)
    sim::write_whole(point.file(".toml"), sim::write_toml(sim::resolved_document(point.scenario)));
}

int run_sister(const std::string& name, std::vector<std::string> words) {
  const std::string program = sim::beside_program(name);
  if (!fs::exists(program)) throw InputError(program, "is missing");
  return run_program(program, words);
}

int calibrate_points(const Arguments& arguments, const std::vector<Point>& points) {
  if (arguments.has("as-calibrated")) return sim::exit_ok;
  const char* device = trains_on_gpus(points.front().scenario) ? "cuda" : "host";
  std::vector<std::string> words{
      "run", "--device", device, "--out", points.front().scenario.tables.front(), "--resume"};
  if (arguments.has("quick")) words.emplace_back("--quick");
  for (const Point& point : points) {
    words.emplace_back("--for");
    words.push_back(point.file(".toml"));
  }
  return run_sister("stepcast-calibrate", std::move(words));
}

sim::HandoutFiles page_files(const Arguments& arguments) {
  sim::HandoutFiles out = sim::handout_files(arguments);
  if (!out.report.ends_with(".html")) out.report.clear();
  return out;
}

}  // namespace stepcast::validate
