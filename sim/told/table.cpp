// Sweeps as tables.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/text_table.hpp"
#include "sim/scenario/default_software.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/search/knobs.hpp"
#include "sim/told/row_members.hpp"
#include "sim/told/shared_sentences.hpp"
#include "sim/told/text.hpp"

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
  std::string heading, unit, key;
  TableCell (*cell)(const PointRow&);  // none: what the plan says under `key`
};

/// A part of the step in percent of it; the file has the share.
TableCell share(const PointRow& row, std::string_view part) {
  const double value = row.number(part).value_or(0.0) / row.number("step_time_s").value_or(0.0);
  return {three_digits(100 * value), value};
}

TableCell number(const PointRow& row, std::string_view key, double scale = 1.0) {
  const double value = row.number(key).value_or(0.0);
  return {three_digits(value * scale), value};
}

/// "-" where a point does not have it.
TableCell known(const PointRow& row, std::string_view key, double scale = 1.0) {
  return row.number(key) ? number(row, key, scale) : TableCell("-");
}

TableCell count(const PointRow& row, std::string_view key) {
  return counted(static_cast<std::int64_t>(row.number(key).value_or(0.0)));
}

/// "0.78 to 1.01"; the file has both ends in columns of their own.
TableCell bar(const PointRow& row, std::string_view low, std::string_view high,
              double scale = 1.0) {
  const auto from = row.number(low), to = row.number(high);
  return from && to
             ? TableCell(three_digits(*from * scale) + " to " + three_digits(*to * scale), *from)
             : TableCell("-");
}

std::string word(const PointRow& row, std::string_view key) { return row.text(key).value_or("-"); }

/// A refused row still says what was asked.
bool holds(const PointRow& row, std::string_view key) { return row.number(key) || row.text(key); }

using A = const PointRow&;

// clang-format off
const ResultColumn step_columns[] = {
    {"GPUs", "", "gpus", [](A a) { return count(a, "gpus"); }},
    {"step", "s", "step_time_s", [](A a) { return number(a, "step_time_s"); }},
    {"between", "s", "step_time_low_s",
     [](A a) { return bar(a, "step_time_low_s", "step_time_high_s"); }},
    {"tokens/s", "per GPU", "tokens_per_s_per_gpu",
     [](A a) { return number(a, "tokens_per_s_per_gpu"); }},
    {"TFLOP/s", "per GPU", "model_tflops_per_gpu",
     [](A a) { return number(a, "model_tflops_per_gpu"); }},
    {"MFU", "%", "mfu", [](A a) { return number(a, "mfu", 100.0); }},
    {"compute", "% of step", "compute_share", [](A a) { return share(a, "compute_s"); }},
    {"exposed", "%", "exposed_share",
     [](A a) { return share(a, "exposed_communication_s.total"); }},
    {"bubble", "%", "bubble_share", [](A a) { return share(a, "bubble_s"); }},
    {"wait", "%", "wait_share", [](A a) { return share(a, "wait_s"); }},
    {"host", "%", "host_share", [](A a) { return share(a, "host_s"); }},
    {"memory", "GiB", "memory_gib_per_gpu", [](A a) { return number(a, "memory_gib_per_gpu"); }},
    {"power", "W/GPU", "power_w_per_gpu", [](A a) { return number(a, "power_w_per_gpu"); }},
    {"tokens/J", "", "tokens_per_joule", [](A a) { return number(a, "tokens_per_joule"); }},
};
/// Where [run_goal] or a price is there.
const ResultColumn goal_columns[] = {
    {"days", "", "run.days", [](A a) { return number(a, "run.days"); }},
    {"between", "", "run.days_low", [](A a) { return bar(a, "run.days_low", "run.days_high"); }},
    {"energy", "MWh", "run.energy_mwh", [](A a) { return number(a, "run.energy_mwh"); }},
    {"CO2e", "t", "run.co2_t", [](A a) { return number(a, "run.co2_t"); }},
    {"cost", "k USD", "run.usd", [](A a) { return known(a, "run.usd", 1e-3); }},
    {"between", "k USD", "run.usd_low",
     [](A a) { return bar(a, "run.usd_low", "run.usd_high", 1e-3); }},
};
const ResultColumn token_columns[] = {
    {"USD per", "M tokens", "run.usd_per_million_tokens",
     [](A a) { return known(a, "run.usd_per_million_tokens"); }},
    {"J/token", "at meter", "run.joules_per_token",
     [](A a) { return number(a, "run.joules_per_token"); }},
};
const ResultColumn collective_columns[] = {
    {"time", "us", "time_us", [](A a) { return number(a, "time_us"); }},
    {"between", "us", "time_low_us", [](A a) { return bar(a, "time_low_us", "time_high_us"); }},
    {"algbw", "GB/s", "algbw_gb_per_s", [](A a) { return number(a, "algbw_gb_per_s"); }},
    {"busbw", "GB/s", "busbw_gb_per_s", [](A a) { return number(a, "busbw_gb_per_s"); }},
    {"algorithm", "", "algorithm", [](A a) { return TableCell(word(a, "algorithm")); }},
    {"protocol", "", "protocol", [](A a) { return TableCell(word(a, "protocol")); }},
    {"channels", "", "channels", [](A a) { return count(a, "channels"); }},
    {"provenance", "", "provenance", [](A a) { return TableCell(word(a, "provenance")); }},
};
// clang-format on

/// The keys that say "best" in a scenario.
std::vector<std::string_view> keys_at_best(const TomlValue& document) {
  std::vector<std::string_view> out;
  for (const Knob& knob : knobs()) {
    const TomlValue* value = find_path(document, knob.key);
    if (value != nullptr && value->text() != nullptr && *value->text() == "best")
      out.emplace_back(knob.key);
  }
  return out;
}

/// Of every key that says "best" at some point of the study what was chosen; of the two degrees
/// always both.
std::vector<std::string_view> chosen_keys(const Study& study) {
  std::set<std::string_view> asked;
  const auto note = [&](const SweepPoint& point) {
    for (const std::string_view key : keys_at_best(study.document_of(point))) asked.insert(key);
  };
  for (const SweepPoint& point : study.joint) note(point);
  for (const Setting& axis : study.axes)
    for (const TomlValue& value : *axis.value.array()) note({{axis.path, value}});
  if (asked.contains("plan.tensor") || asked.contains("plan.pipeline"))
    asked.insert({"plan.tensor", "plan.pipeline"});
  std::vector<std::string_view> out;
  for (const Knob& knob : knobs())
    if (asked.contains(knob.key)) out.emplace_back(knob.key);
  return out;
}

ResultColumn chosen_column(std::string_view key) {
  const bool of_plan = !key.starts_with("software.");
  const std::string heading = swept_heading(std::string(key));
  return {heading, "chosen", of_plan ? "plan." + heading : std::string(key), nullptr};
}

/// A value of any type, from the row's plan or its changed keys.
TableCell chosen(const PointRow& row, const std::string& key) {
  const bool of_plan = key.starts_with("plan.");
  const std::string place = of_plan ? key : "changed." + key;
  for (const auto& [path, value] : row.leaves(of_plan ? "plan" : "changed")) {
    if (path != place) continue;
    if (const auto whole = number_in<std::int64_t>(value)) return counted(*whole);
    if (const auto number = number_in<double>(value)) return rounded(number);
    return value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
  }
  return "-";
}

std::vector<ResultColumn> columns_of(const Results& results) {
  if (results.study.base.find("collective") != nullptr)
    return {std::begin(collective_columns), std::end(collective_columns)};
  std::vector<ResultColumn> out;
  for (const std::string_view key : chosen_keys(results.study)) out.push_back(chosen_column(key));
  out.insert(out.end(), std::begin(step_columns), std::end(step_columns));
  const auto any_sets = [&](std::initializer_list<const char*> paths) {
    const auto swept = [&](const char* path) {
      return std::ranges::count(results.study.keys, path) > 0 ||
             find_path(results.study.base, path) != nullptr;
    };
    return std::ranges::any_of(paths, swept);
  };
  const bool goal = any_sets({"run_goal.tokens", "run_goal.samples", "run_goal.days"});
  if (goal) out.insert(out.end(), std::begin(goal_columns), std::end(goal_columns));
  if (goal || any_sets({"cost.price", "cost.own", "cost.capex"}))
    out.insert(out.end(), std::begin(token_columns), std::end(token_columns));
  return out;
}

TableCell probability_cell(double p) { return {fmt::format("{:.2f}", p), p}; }

/// Of every point, how sure it is that the fastest of the same model, GPUs and tokens is faster
/// than it: "first" is that one. None where nothing is to be chosen.
std::vector<std::optional<TableCell>> order_cells(const Results& results) {
  std::vector<std::optional<TableCell>> out(results.rows.size());
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
      key += "/" + count(row, path).value();
    choices[key].push_back({i, row.number("step_time_s").value_or(0.0)});
  }
  for (auto& [key, plans] : choices) {
    if (plans.size() < 2) continue;
    const Plan first = *std::ranges::min_element(plans, {}, &Plan::step);
    for (const Plan& plan : plans)
      out[plan.point] = plan.point == first.point
                            ? TableCell("first", std::numeric_limits<double>::quiet_NaN())
                            : probability_cell(results.order->probability(first.step, plan.step));
  }
  return out;
}

std::string order_text(const Results& results, const TextTable& table) {
  if (!table.find("P(first)")) return {};
  return "P(first): that the first of the same model, GPUs and tokens is faster; from\n" +
         results.order->origin() + "\n";
}

/// Members of a row that no column shows.
std::vector<RowMember> details_of(const TextTable& table, const Results& results,
                                  const TableView& view) {
  if (!view.wants_details()) return {};
  std::vector<RowMember> out = row_members(results.study.base.find("collective") != nullptr);
  const std::vector<std::string> shown = table.keys();
  std::erase_if(
      out, [&](const RowMember& member) { return std::ranges::count(shown, member.path) > 0; });
  return out;
}

TableCell detail(const PointRow& row, const RowMember& member) {
  using Kind = RowMember::Kind;
  if (member.kind == Kind::text) return word(row, member.path);
  if (member.kind == Kind::list || member.kind == Kind::number)
    return row.written(member.path).value_or("-");
  if (member.kind == Kind::flag) {
    const auto flag = row.flag(member.path);
    return flag ? kept(*flag, *flag ? "yes" : "no") : TableCell("-");
  }
  const auto value = row.number(member.path);
  if (!value) return "-";
  return member.kind == Kind::count ? counted(static_cast<std::int64_t>(*value)) : rounded(value);
}

TableCell swept(const SweepPoint& point, const std::string& key) {
  const TomlValue* value = setting_of(point, key);
  if (value == nullptr) return "-";
  if (const auto* integer = std::get_if<std::int64_t>(&value->data)) return counted(*integer);
  if (const auto* real = std::get_if<double>(&value->data)) return rounded(*real);
  return swept_cell(*value);
}

TableCells first_of(TableCells cells, std::size_t count) {
  cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(count), cells.end());
  return cells;
}

/// The table of a sweep, as it is filled row by row.
class SweepTable {
 public:
  SweepTable(const Results& results, const TableView& view)
      : results_(results), columns_(columns_of(results)), order_(order_cells(results)) {
    ordered_ = std::ranges::any_of(order_, [](const auto& cell) { return cell.has_value(); });
    for (const std::string& key : results.study.keys)
      table_.column(swept_heading(key), "", TextTable::Align::right, key);
    for (const ResultColumn& column : columns_)
      table_.column(column.heading, column.unit, TextTable::Align::right, column.key);
    if (ordered_) table_.column("P(first)", "faster", TextTable::Align::right, "p_first_faster");
    table_.set_minor({"compute_share", "exposed_share", "bubble_share", "wait_share", "host_share",
                      "tokens_per_joule", "model_tflops_per_gpu"});
    details_ = details_of(table_, results, view);
    for (const RowMember& member : details_) table_.detail(member.path);
    if (!details_.empty())
      for (const char* key : {"memory_over_gib", "warnings", "p_first_faster"})
        if (!table_.find(key)) table_.detail(key);
  }

  void add(std::size_t index) {
    const PointRow row = results_.rows.row(index);
    const SweepPoint point = results_.study.point(index);
    const auto reason = row.unanswered();
    TableCells cells;
    for (const std::string& key : results_.study.keys) cells.push_back(swept(point, key));
    for (const ResultColumn& column : columns_)
      cells.push_back(reason && !holds(row, column.key) ? TableCell("-")
                      : column.cell != nullptr          ? column.cell(row)
                                                        : chosen(row, column.key));
    if (ordered_) cells.push_back(order_[index].value_or("-"));
    for (const RowMember& member : details_) cells.push_back(detail(row, member));
    if (!details_.empty()) {
      cells.push_back(rounded(row.number("memory_over_gib")));
      cells.push_back(fmt::format("{}", fmt::join(row.texts("warnings"), "; ")));
    }
    if (results_.rows.state(index) == PointRows::State::refused)
      table_.folded(std::move(cells), results_.study.keys.size(), *reason);
    else if (reason)
      table_.sentence(first_of(std::move(cells), results_.study.keys.size()), *reason);
    else
      table_.row(std::move(cells));
  }

  /// The rows that were added.
  TextTable taken() { return std::move(table_); }
  std::string csv_head() const { return table_.csv_head(); }
  /// Of one row alone: no table is kept of thousands.
  std::string csv_row(std::size_t index) {
    table_.clear_rows();
    add(index);
    return table_.csv_rows();
  }

 private:
  const Results& results_;
  std::vector<ResultColumn> columns_;
  std::vector<std::optional<TableCell>> order_;
  bool ordered_ = false;
  std::vector<RowMember> details_;
  TextTable table_;
};

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

}  // namespace

TextTable results_table(const Results& results, const TableView& view) {
  SweepTable table(results, view);
  for (std::size_t i = 0; i < results.rows.size(); ++i)
    if (results.rows.has(i)) table.add(i);
  return table.taken();
}

void write_csv(const Results& results, const TableView& view,
               const std::function<void(std::string_view)>& write) {
  if (!view.arrangement().empty()) return write(view.arranged(results_table(results, view)).csv());
  SweepTable table(results, view);
  write(table.csv_head());
  for (std::size_t i = 0; i < results.rows.size(); ++i)
    if (results.rows.has(i)) write(table.csv_row(i));
}

std::string report_text(const Results& results, const TableView& view) {
  std::string out;
  if (!results.study.is_sweep) {
    out = results.single ? report_text(*results.single) : "interrupted\n";
  } else {
    const TextTable table = view.arranged(results_table(results, view));
    if (const TomlValue* title = results.study.base.find("title"); title && title->text())
      out = *title->text() + "\n";
    out += software_line(results) + view.text(table) + refused_line(results, view) +
           order_text(results, table);
    if (results.interrupted)
      out += "interrupted: the points above are finished, others are missing\n";
  }
  return out + references_text(results);
}

}  // namespace stepcast::sim
