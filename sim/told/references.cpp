// Known figures beside the simulated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/text_table.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

/// The first finished point whose point has all these settings; keys that the sweep does not have
/// are looked up in the base document.
std::optional<PointRow> find_point(const Results& results, const SweepPoint& wanted) {
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    if (!results.rows.has(i)) continue;
    const TomlValue document = results.study.document_of(results.study.point(i));
    const bool all = std::all_of(wanted.begin(), wanted.end(), [&](const Setting& setting) {
      const TomlValue* value = &document;
      std::string_view path = setting.path;
      while (value != nullptr && !path.empty()) {
        value = value->find(path.substr(0, path.find('.')));
        path = path.find('.') == std::string_view::npos ? "" : path.substr(path.find('.') + 1);
      }
      return value != nullptr && same_value(*value, setting.value);
    });
    if (all) return results.rows.row(i);
  }
  return std::nullopt;
}

/// "+1.2", "0.0", "-37.2"
std::string signed_text(double value) {
  const double rounded = std::round(value * 10) / 10;
  return rounded == 0 ? "0.0" : fmt::format("{:+.1f}", rounded);
}

/// `point` with other settings where `settings` has them.
SweepPoint changed(SweepPoint point, const SweepPoint& settings) {
  std::erase_if(point, [&](const Setting& old) {
    return std::ranges::any_of(settings, [&](const Setting& s) { return s.path == old.path; });
  });
  point.insert(point.end(), settings.begin(), settings.end());
  return point;
}

/// What a reference compares: a value, or its change from another point in percent.
std::optional<double> compared(const Results& results, const Reference& reference,
                               const Metric& metric, const SweepPoint& point) {
  const auto at = find_point(results, point);
  const std::optional<double> value = at ? value_of(metric, *at) : std::nullopt;
  if (!reference.change_from || !value) return value;
  const auto from = find_point(results, changed(point, *reference.change_from));
  const double start = from ? value_of(metric, *from).value_or(0.0) : 0.0;
  if (start == 0) return std::nullopt;
  return 100 * (*value / start - 1);
}

/// The rows whose points were simulated; none when there is no such point.
std::optional<TextTable> reference_table(const Results& results, const Reference& reference,
                                         const Metric& metric) {
  const bool change = reference.change_from.has_value();
  const bool collective = results.study.base.find("collective") != nullptr;
  TextTable table;
  for (const Setting& setting : reference.rows.empty() ? SweepPoint{} : reference.rows[0].at)
    table.column(swept_heading(setting.path));
  table.column("simulated", change ? "%" : std::string(metric.unit));
  table.column("published", change ? "%" : std::string(metric.unit));
  table.column("difference", change ? "points" : "%");
  if (collective) table.column("provenance");  // measured: the figure itself is in the table
  bool any = false;
  for (const Reference::Row& row : reference.rows) {
    const auto ours = compared(results, reference, metric, row.at);
    if (!ours) continue;
    std::vector<std::string> cells;
    for (const Setting& setting : row.at) cells.push_back(swept_cell(setting.value));
    cells.push_back(three_digits(*ours));
    if (row.value) {
      const double difference = change ? *ours - *row.value : 100 * (*ours / *row.value - 1);
      cells.insert(cells.end(), {three_digits(*row.value), signed_text(difference)});
    } else {
      cells.insert(cells.end(), {"-", "-"});
    }
    if (collective) cells.push_back(find_point(results, row.at)->text("provenance").value_or("-"));
    table.row(std::move(cells));
    any = true;
  }
  return any ? std::optional(std::move(table)) : std::nullopt;
}

std::string reference_text(const Results& results, const Reference& reference) {
  const Metric* metric = find_metric(reference.metric);
  expects(metric != nullptr, "references are checked when they are read");
  const auto table = reference_table(results, reference, *metric);
  if (!table) return {};
  std::string out =
      fmt::format("\n{} beside published figures ({})\n", reference.metric, reference.source);
  if (reference.change_from)
    for (const Setting& setting : *reference.change_from)
      out += fmt::format("change from {} = {}\n", setting.path, swept_cell(setting.value));
  if (!reference.note.empty()) out += reference.note + "\n";
  return out + table->text();
}

}  // namespace

std::string references_text(const Results& results) {
  std::string out;
  for (const Reference& reference : results.study.references)
    out += reference_text(results, reference);
  return out;
}

}  // namespace stepcast::sim
