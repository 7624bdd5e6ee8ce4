// Sweeps as tables.
#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/default_software.hpp"
#include "sim/metrics.hpp"
#include "sim/names.hpp"
#include "sim/report_text.hpp"
#include "sim/text_table.hpp"

namespace stepcast::sim {

std::string swept_heading(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string swept_cell(const TomlValue& value) {
  if (const auto* text = value.text()) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return grouped(*integer);
  if (const auto* number = std::get_if<double>(&value.data)) return three_digits(*number);
  return write_toml_value(value);
}

namespace {

const TomlValue* setting_of(const SweepPoint& point, const std::string& path) {
  for (const Setting& setting : point)
    if (setting.path == path) return &setting.value;
  return nullptr;
}

struct ResultColumn {
  std::string heading, unit;
  std::string (*cell)(const Answer&);
};

const StepReport& step_of(const Answer& answer) { return std::get<StepReport>(answer); }
const CollectiveTime& time_of(const Answer& answer) {
  return std::get<CollectiveReport>(answer).time;
}

/// A part of the step in percent of it.
std::string share(const Answer& answer, Duration part) {
  return three_digits(100 * seconds(part) / seconds(step_of(answer).step_time));
}

std::string number(const Answer& answer, std::string_view key, double scale = 1.0) {
  const Metric* metric = find_metric(key);
  expects(metric != nullptr, "columns name metrics");
  return three_digits(value_of(*metric, answer).value_or(0.0) * scale);
}

using A = const Answer&;

// clang-format off
const ResultColumn step_columns[] = {
    {"GPUs", "", [](A a) { return grouped(step_of(a).scenario.gpus); }},
    {"step", "s", [](A a) { return number(a, "step_time_s"); }},
    {"tokens/s", "per GPU", [](A a) { return number(a, "tokens_per_s_per_gpu"); }},
    {"TFLOP/s", "per GPU", [](A a) { return number(a, "model_tflops_per_gpu"); }},
    {"MFU", "%", [](A a) { return number(a, "mfu", 100.0); }},
    {"compute", "% of step", [](A a) { return share(a, step_of(a).compute); }},
    {"exposed", "%", [](A a) { return share(a, step_of(a).exposed.total()); }},
    {"bubble", "%", [](A a) { return share(a, step_of(a).bubble); }},
    {"wait", "%", [](A a) { return share(a, step_of(a).wait); }},
    {"host", "%", [](A a) { return share(a, step_of(a).host); }},
    {"memory", "GiB", [](A a) { return number(a, "memory_gib_per_gpu"); }},
    {"power", "W/GPU", [](A a) { return number(a, "power_w_per_gpu"); }},
    {"tokens/J", "", [](A a) { return number(a, "tokens_per_joule"); }},
};
const ResultColumn degree_columns[] = {
    {"tensor", "chosen", [](A a) { return grouped(step_of(a).scenario.plan.tensor); }},
    {"pipeline", "chosen", [](A a) { return grouped(step_of(a).scenario.plan.pipeline); }},
};
const ResultColumn collective_columns[] = {
    {"time", "us", [](A a) { return number(a, "time_us"); }},
    {"algbw", "GB/s", [](A a) { return number(a, "algbw_gb_per_s"); }},
    {"busbw", "GB/s", [](A a) { return number(a, "busbw_gb_per_s"); }},
    {"algorithm", "", [](A a) { return std::string(name_of(time_of(a).algorithm)); }},
    {"protocol", "", [](A a) { return std::string(name_of(time_of(a).protocol)); }},
    {"channels", "", [](A a) { return grouped(time_of(a).channels); }},
    {"provenance", "", [](A a) { return std::string(name_of(time_of(a).provenance)); }},
};
// clang-format on

/// "best" anywhere in the file: the table shows what was chosen.
bool chooses_degrees(const Study& study) {
  return std::any_of(study.points.begin(), study.points.end(), [&](const SweepPoint& point) {
    const TomlValue document = study.document_of(point);
    const TomlValue* plan = document.find("plan");
    if (plan == nullptr) return false;
    for (const char* key : {"tensor", "pipeline"})
      if (const TomlValue* degree = plan->find(key); degree != nullptr && degree->text() != nullptr)
        return true;
    return false;
  });
}

std::vector<ResultColumn> columns_of(const Results& results) {
  if (results.study.base.find("collective") != nullptr)
    return {std::begin(collective_columns), std::end(collective_columns)};
  std::vector<ResultColumn> out;
  if (chooses_degrees(results.study))
    out.assign(std::begin(degree_columns), std::end(degree_columns));
  out.insert(out.end(), std::begin(step_columns), std::end(step_columns));
  return out;
}

std::string sweep_table(const Results& results) {
  const std::vector<ResultColumn> columns = columns_of(results);
  TextTable table;
  for (const std::string& key : results.study.keys) table.column(swept_heading(key));
  for (const ResultColumn& column : columns) table.column(column.heading, column.unit);

  for (std::size_t i = 0; i < results.answers.size(); ++i) {
    if (!results.answers[i]) continue;
    const Answer& answer = *results.answers[i];
    std::vector<std::string> cells;
    for (const std::string& key : results.study.keys) {
      const TomlValue* value = setting_of(results.study.points[i], key);
      cells.push_back(value != nullptr ? swept_cell(*value) : "-");
    }
    if (const auto* refused = std::get_if<Refused>(&answer)) {
      table.sentence(std::move(cells), "refused: " + refused->reason);
      continue;
    }
    for (const ResultColumn& column : columns) cells.push_back(column.cell(answer));
    table.row(std::move(cells));
  }
  return table.text();
}

/// "pytorch-fsdp2 2.3; NCCL 2.20": what all points ran with, each once, and why if nobody said.
std::string software_line(const Results& results) {
  std::vector<std::string> frameworks, nccl;
  const auto add = [](std::vector<std::string>& words, const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const auto& answer : results.answers) {
    if (!answer) continue;
    const Scenario& s = scenario_of(*answer);
    if (!s.collective) add(frameworks, s.software.framework + " " + s.software.version);
    add(nccl, s.nccl);
  }
  if (nccl.empty()) return {};
  const std::string why = framework_by_default(results.study.base);
  return fmt::format("{}{}{}NCCL {}\n\n", fmt::join(frameworks, ", "),
                     why.empty() ? "" : ", " + why, frameworks.empty() ? "" : "; ",
                     fmt::join(nccl, ", "));
}

/// Warnings of all points, each once, with how many points it concerns.
std::string warnings_text(const Results& results) {
  std::vector<std::pair<std::string, int>> counted;
  for (const auto& answer : results.answers) {
    const auto* step = answer ? std::get_if<StepReport>(&*answer) : nullptr;
    if (step == nullptr) continue;
    for (const std::string& warning : step->warnings) {
      const auto found = std::find_if(counted.begin(), counted.end(),
                                      [&](const auto& entry) { return entry.first == warning; });
      if (found == counted.end())
        counted.emplace_back(warning, 1);
      else
        ++found->second;
    }
  }
  std::string out;
  for (const auto& [warning, count] : counted)
    out += fmt::format("warning: {}{}\n", warning,
                       count > 1 ? fmt::format(" ({} points)", count) : "");
  return out;
}

}  // namespace

std::string report_text(const Results& results) {
  std::string out;
  if (!results.study.is_sweep) {
    expects(results.answers.size() == 1, "a single run has one point");
    out = results.answers[0] ? report_text(*results.answers[0]) : "interrupted\n";
  } else {
    if (const TomlValue* title = results.study.base.find("title"); title && title->text())
      out = *title->text() + "\n";
    out += software_line(results) + sweep_table(results) + warnings_text(results);
    if (results.interrupted)
      out += "interrupted: the points above are finished, others are missing\n";
  }
  return out + references_text(results);
}

}  // namespace stepcast::sim
