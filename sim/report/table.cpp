// Sweeps as tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/text_table.hpp"
#include "sim/report/metrics.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/default_software.hpp"

namespace stepcast::sim {

std::string swept_heading(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string swept_cell(const TomlValue& value) {
  if (const auto* text = value.text()) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return grouped(*integer);
  if (const auto* number = std::get_if<double>(&value.data)) return three_digits(*number);
  return write_toml_value(value);
}

namespace {

struct ResultColumn {
  std::string heading, unit;
  std::string (*cell)(const PointRow&);
};

/// A part of the step in percent of it.
std::string share(const PointRow& row, std::string_view part) {
  return three_digits(100 * row.number(part).value_or(0.0) /
                      row.number("step_time_s").value_or(0.0));
}

std::string number(const PointRow& row, std::string_view key, double scale = 1.0) {
  return three_digits(row.number(key).value_or(0.0) * scale);
}

std::string count(const PointRow& row, std::string_view key) {
  return grouped(static_cast<std::int64_t>(row.number(key).value_or(0.0)));
}

/// "0.78 to 1.01"
std::string bar(const PointRow& row, std::string_view low, std::string_view high) {
  const auto from = row.number(low), to = row.number(high);
  return from && to ? three_digits(*from) + " to " + three_digits(*to) : "-";
}

std::string word(const PointRow& row, std::string_view key) { return row.text(key).value_or("-"); }

using A = const PointRow&;

// clang-format off
const ResultColumn step_columns[] = {
    {"GPUs", "", [](A a) { return count(a, "gpus"); }},
    {"step", "s", [](A a) { return number(a, "step_time_s"); }},
    {"between", "s", [](A a) { return bar(a, "step_time_low_s", "step_time_high_s"); }},
    {"tokens/s", "per GPU", [](A a) { return number(a, "tokens_per_s_per_gpu"); }},
    {"TFLOP/s", "per GPU", [](A a) { return number(a, "model_tflops_per_gpu"); }},
    {"MFU", "%", [](A a) { return number(a, "mfu", 100.0); }},
    {"compute", "% of step", [](A a) { return share(a, "compute_s"); }},
    {"exposed", "%", [](A a) { return share(a, "exposed_communication_s.total"); }},
    {"bubble", "%", [](A a) { return share(a, "bubble_s"); }},
    {"wait", "%", [](A a) { return share(a, "wait_s"); }},
    {"host", "%", [](A a) { return share(a, "host_s"); }},
    {"memory", "GiB", [](A a) { return number(a, "memory_gib_per_gpu"); }},
    {"power", "W/GPU", [](A a) { return number(a, "power_w_per_gpu"); }},
    {"tokens/J", "", [](A a) { return number(a, "tokens_per_joule"); }},
};
const ResultColumn degree_columns[] = {
    {"tensor", "chosen", [](A a) { return count(a, "plan.tensor"); }},
    {"pipeline", "chosen", [](A a) { return count(a, "plan.pipeline"); }},
};
const ResultColumn collective_columns[] = {
    {"time", "us", [](A a) { return number(a, "time_us"); }},
    {"between", "us", [](A a) { return bar(a, "time_low_us", "time_high_us"); }},
    {"algbw", "GB/s", [](A a) { return number(a, "algbw_gb_per_s"); }},
    {"busbw", "GB/s", [](A a) { return number(a, "busbw_gb_per_s"); }},
    {"algorithm", "", [](A a) { return word(a, "algorithm"); }},
    {"protocol", "", [](A a) { return word(a, "protocol"); }},
    {"channels", "", [](A a) { return count(a, "channels"); }},
    {"provenance", "", [](A a) { return word(a, "provenance"); }},
};
// clang-format on

bool asks_for_best(const TomlValue& document) {
  const TomlValue* plan = document.find("plan");
  if (plan == nullptr) return false;
  for (const char* key : {"tensor", "pipeline"})
    if (const TomlValue* degree = plan->find(key); degree != nullptr && degree->text() != nullptr)
      return true;
  return false;
}

/// "best" anywhere in the file: the table shows what was chosen.
bool chooses_degrees(const Study& study) {
  const auto sets_best = [&](const SweepPoint& point) {
    return asks_for_best(study.document_of(point));
  };
  if (std::ranges::any_of(study.joint, sets_best)) return true;
  return std::ranges::any_of(study.axes, [&](const Setting& axis) {
    return std::ranges::any_of(*axis.value.array(), [&](const TomlValue& value) {
      return sets_best({{axis.path, value}});
    });
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

/// Of every point, how sure it is that the fastest of the same model, GPUs and tokens is faster
/// than it: "first" is that one. None where nothing is to be chosen.
std::vector<std::optional<std::string>> order_cells(const Results& results) {
  std::vector<std::optional<std::string>> out(results.rows.size());
  if (!results.order || results.study.base.find("collective") != nullptr) return out;
  struct Plan {
    std::size_t point = 0;
    double step = 0;
  };
  std::map<std::string, std::vector<Plan>> choices;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (results.rows.state(i) != PointRows::State::answered) continue;
    const PointRow row = results.rows.row(i);
    std::string key = word(row, "model") + "/" + word(row, "gpu");
    for (const char* path : {"gpus", "plan.global_batch", "plan.sequence"})
      key += "/" + count(row, path);
    choices[key].push_back({i, row.number("step_time_s").value_or(0.0)});
  }
  for (auto& [key, plans] : choices) {
    if (plans.size() < 2) continue;
    const Plan first = *std::ranges::min_element(plans, {}, &Plan::step);
    for (const Plan& plan : plans)
      out[plan.point] =
          plan.point == first.point
              ? "first"
              : fmt::format("{:.2f}", results.order->probability(first.step, plan.step));
  }
  return out;
}

std::string order_text(const Results& results, bool any) {
  if (!any) return {};
  return "P(first): that the first of the same model, GPUs and tokens is faster; from\n" +
         results.order->origin() + "\n";
}

std::string sweep_table(const Results& results) {
  const std::vector<ResultColumn> columns = columns_of(results);
  const auto order = order_cells(results);
  const bool ordered =
      std::ranges::any_of(order, [](const auto& cell) { return cell.has_value(); });
  TextTable table;
  for (const std::string& key : results.study.keys) table.column(swept_heading(key));
  for (const ResultColumn& column : columns) table.column(column.heading, column.unit);
  if (ordered) table.column("P(first)", "faster");

  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (!results.rows.has(i)) continue;
    const PointRow row = results.rows.row(i);
    const SweepPoint point = results.study.point(i);
    std::vector<std::string> cells;
    for (const std::string& key : results.study.keys) {
      const TomlValue* value = setting_of(point, key);
      cells.push_back(value != nullptr ? swept_cell(*value) : "-");
    }
    if (auto reason = row.unanswered()) {
      table.sentence(std::move(cells), *std::move(reason));
      continue;
    }
    for (const ResultColumn& column : columns) cells.push_back(column.cell(row));
    if (ordered) cells.push_back(order[i].value_or("-"));
    table.row(std::move(cells));
  }
  return table.text() + order_text(results, ordered);
}

/// "pytorch-fsdp2 2.3; NCCL 2.20": what all points ran with, each once, and why if nobody said. Of
/// a sweep without an answer, what its points would have run with.
std::string software_line(const Results& results) {
  std::vector<std::string> frameworks, nccl;
  const auto add = [](std::vector<std::string>& words, const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (results.rows.state(i) != PointRows::State::answered) continue;
    const PointRow row = results.rows.row(i);
    if (const auto framework = row.text("plan.framework"))
      add(frameworks, *framework + " " + word(row, "plan.framework_version"));
    if (const auto version = row.text("cluster.nccl")) add(nccl, *version);
  }
  for (const Scenario& asked : results.unanswered) {
    if (!asked.collective) add(frameworks, asked.software.framework + " " + asked.software.version);
    add(nccl, asked.nccl);
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
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (results.rows.state(i) != PointRows::State::answered) continue;
    for (const std::string& warning : results.rows.row(i).texts("warnings")) {
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
    out = results.single ? report_text(*results.single) : "interrupted\n";
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
