#include "sim/results_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "engine/check.hpp"
#include "sim/hdf5_file.hpp"
#include "sim/metrics.hpp"
#include "sim/names.hpp"
#include "sim/report_json.hpp"
#include "sim/scenario_file.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(partial, path, error);
  if (!file || error) throw InputError("--out", "cannot write " + path.string());
}

/// The finished answers, with their points.
struct Row {
  const SweepPoint& point;
  const Answer& answer;
};

std::vector<Row> finished_rows(const Results& results) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < results.answers.size(); ++i)
    if (results.answers[i]) rows.push_back({results.study.points[i], *results.answers[i]});
  return rows;
}

const TomlValue* setting_of(const SweepPoint& point, const std::string& path) {
  for (const Setting& setting : point)
    if (setting.path == path) return &setting.value;
  return nullptr;
}

/// Swept integers as integers, everything else as it was written.
void write_swept(Hdf5Writer& file, const std::vector<Row>& rows, const std::string& key) {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  for (const Row& row : rows) {
    const TomlValue* value = setting_of(row.point, key);
    if (value == nullptr) continue;
    if (const auto* integer = std::get_if<std::int64_t>(&value->data)) integers.push_back(*integer);
    texts.push_back(value->text() != nullptr ? *value->text() : write_toml_value(*value));
  }
  const std::string dataset = "/points/sweep." + key;
  if (integers.size() == rows.size())
    file.column(dataset, std::span<const std::int64_t>(integers), "");
  else if (texts.size() == rows.size())
    file.column(dataset, std::span<const std::string>(texts));
}

template <class Text>
void write_texts(Hdf5Writer& file, const std::vector<Row>& rows, const std::string& name,
                 Text text) {
  std::vector<std::string> values;
  for (const Row& row : rows) values.push_back(text(row.answer));
  file.column("/points/" + name, std::span<const std::string>(values));
}

template <class Count>
void write_counts(Hdf5Writer& file, const std::vector<Row>& rows, const std::string& name,
                  Count count) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(count(scenario_of(row.answer)));
  file.column("/points/" + name, std::span<const std::int64_t>(values), "");
}

void write_metrics(Hdf5Writer& file, const std::vector<Row>& rows, bool collective) {
  for (const Metric& metric : metrics()) {
    if (collective ? metric.of_collective == nullptr : metric.of_step == nullptr) continue;
    if (metric.key == "gpus" || metric.key == "nodes") continue;  // integers, below
    std::vector<double> values;
    for (const Row& row : rows)
      values.push_back(
          value_of(metric, row.answer).value_or(std::numeric_limits<double>::quiet_NaN()));
    file.column("/points/" + std::string(metric.key), std::span<const double>(values),
                std::string(metric.unit));
  }
}

void write_descriptions(Hdf5Writer& file, const std::vector<Row>& rows, bool collective) {
  write_texts(file, rows, "gpu", [](const Answer& a) { return scenario_of(a).node.gpu.name; });
  write_counts(file, rows, "gpus", [](const Scenario& s) { return s.gpus; });
  write_counts(file, rows, "nodes", [](const Scenario& s) { return s.nodes; });
  if (collective) {
    const auto time = [](const Answer& a) { return std::get<CollectiveReport>(a).time; };
    write_texts(file, rows, "algorithm",
                [&](const Answer& a) { return std::string(name_of(time(a).algorithm)); });
    write_texts(file, rows, "protocol",
                [&](const Answer& a) { return std::string(name_of(time(a).protocol)); });
    return;
  }
  write_texts(file, rows, "model", [](const Answer& a) { return scenario_of(a).model.name; });
  write_counts(file, rows, "plan.tensor", [](const Scenario& s) { return s.plan.tensor; });
  write_counts(file, rows, "plan.pipeline", [](const Scenario& s) { return s.plan.pipeline; });
  write_counts(file, rows, "plan.data_degree",
               [](const Scenario& s) { return s.plan.data_degree; });
  write_texts(file, rows, "refused", [](const Answer& a) {
    const auto* refused = std::get_if<Refused>(&a);
    return refused != nullptr ? refused->reason : std::string();
  });
}

}  // namespace

void prepare_output(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory))
    throw InputError("--out", "cannot make the folder '" + directory + "'");
  const fs::path probe = fs::path(directory) / ".stepcast-probe";
  std::ofstream file(probe);
  file << "x";
  file.close();
  const bool written = static_cast<bool>(file);
  fs::remove(probe, error);
  if (!written) throw InputError("--out", "cannot write into '" + directory + "'");
}

void write_hdf5(const std::string& path, const Results& results) {
  const std::vector<Row> rows = finished_rows(results);
  const bool collective = results.study.base.find("collective") != nullptr;
  Hdf5Writer file(path);
  file.attribute("/", "schema_version", std::int64_t{1});
  file.attribute("/", "scenario", write_toml(results.study.base));
  file.attribute("/", "interrupted", std::int64_t{results.interrupted ? 1 : 0});
  file.group("/points");
  for (const std::string& key : results.study.keys) write_swept(file, rows, key);
  write_metrics(file, rows, collective);
  write_descriptions(file, rows, collective);
  file.finish();
}

void write_output(const std::string& directory, const Results& results) {
  const fs::path folder(directory);
  if (results.study.is_sweep) {
    std::error_code error;
    fs::create_directories(folder / "points", error);
    write_text(folder / "scenario.toml", write_toml(results.study.whole));
    for (std::size_t i = 0; i < results.answers.size(); ++i)
      if (results.answers[i])
        write_text(folder / "points" / fmt::format("{:04}.toml", i + 1),
                   write_toml(resolved_document(scenario_of(*results.answers[i]))));
  } else if (results.answers[0]) {
    write_text(folder / "scenario.toml",
               write_toml(resolved_document(scenario_of(*results.answers[0]))));
  }
  write_text(folder / "results.json", to_json(results) + "\n");
  write_hdf5((folder / "results.h5").string(), results);
}

}  // namespace stepcast::sim
