#include "calibrate/measurement.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "engine/check.hpp"
#include "sim/suggest.hpp"

namespace stepcast::calibrate {
namespace {

const std::vector<std::string> needed_columns = {
    "gpu", "kind", "dtype", "value", "unit", "source", "confidence", "url_or_repo_path"};
const std::vector<std::string> known_columns = {"gpu",
                                                "kind",
                                                "shape_or_bytes",
                                                "shape",
                                                "ranks",
                                                "nodes",
                                                "dtype",
                                                "gpus_per_node",
                                                "value",
                                                "unit",
                                                "source",
                                                "fabric",
                                                "url_or_repo_path",
                                                "confidence",
                                                "inter_node_gbps_per_node",
                                                "nccl",
                                                "timing",
                                                "processes",
                                                "implementation",
                                                "data",
                                                "min_bytes_moved",
                                                "implied_GB_per_s"};

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

const std::vector<std::string>& columns_of_run() {
  static const std::vector<std::string> columns = {"pass",
                                                   "width",
                                                   "cache",
                                                   "choice",
                                                   "accumulate",
                                                   "algorithm",
                                                   "protocol",
                                                   "spread",
                                                   "samples",
                                                   "throttled",
                                                   "error",
                                                   "kernel",
                                                   "collective",
                                                   "kernel_alone",
                                                   "kernel_beside",
                                                   "collective_alone",
                                                   "collective_beside",
                                                   "device",
                                                   "driver",
                                                   "runtime",
                                                   "gemm_library",
                                                   "collective_library",
                                                   "clocks",
                                                   "date",
                                                   "command"};
  return columns;
}

Columns::Columns(const CsvFile& file) {
  const std::string where = file.path + ":1";
  std::vector<std::string> known = known_columns;
  known.insert(known.end(), columns_of_run().begin(), columns_of_run().end());
  for (std::size_t i = 0; i < file.header.size(); ++i) {
    const std::string& name = file.header[i];
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto near = sim::closest(name, known);
      throw InputError(where, "unknown column \"" + name + "\"",
                       near ? "did you mean \"" + *near + "\"?" : "see calibrate/import.hpp");
    }
    if (!index_.emplace(name, i).second) throw InputError(where, "column \"" + name + "\" twice");
  }
  for (const std::string& name : needed_columns)
    if (!has(name)) throw InputError(where, "lacks the column \"" + name + "\"");
  if (has("shape") == has("shape_or_bytes"))
    throw InputError(where, "needs one column \"shape_or_bytes\" (or \"shape\")");
}

const std::string& Measurement::text(std::string_view column) const {
  static const std::string nothing;
  return columns_.has(column) ? row_.cells[columns_.at(column)] : nothing;
}

const std::string& Measurement::stated(std::string_view column) const {
  const std::string& cell = text(column);
  if (cell.empty()) fail("the column \"" + std::string(column) + "\" is empty");
  return cell;
}

double Measurement::positive(std::string_view column) const {
  const std::string& cell = stated(column);
  const auto value = whole_number<double>(cell);
  if (!value || !std::isfinite(*value) || *value <= 0)
    fail(std::string(column) + " \"" + cell + "\" is not a positive number");
  return *value;
}

std::int64_t Measurement::count_in(std::string_view name, std::string_view text) const {
  const auto value = whole_number<std::int64_t>(text);
  // Sizes are multiplied with each other later: 2^40 of them leaves room.
  if (!value || *value <= 0 || *value > (std::int64_t{1} << 40))
    fail(std::string(name) + " \"" + std::string(text) + "\" is not a positive whole number");
  return *value;
}

std::int64_t Measurement::count(std::string_view column) const {
  return count_in(column, stated(column));
}

std::int64_t Measurement::count_if_stated(std::string_view column) const {
  const std::string& cell = text(column);
  return cell.empty() || cell == "multi" ? 0 : count_in(column, cell);
}

std::int64_t Measurement::count_or_zero(std::string_view column) const {
  const std::string& cell = text(column);
  return cell.empty() || cell == "0" ? 0 : count_in(column, cell);
}

double Measurement::not_negative(std::string_view column) const {
  const std::string& cell = text(column);
  return cell.empty() || cell == "0" ? 0.0 : positive(column);
}

sim::Quality Measurement::quality() const {
  return {.spread = not_negative("spread"),
          .samples = count_or_zero("samples"),
          .throttled = count_or_zero("throttled"),
          .error = not_negative("error")};
}

const std::string& Measurement::shape_text() const {
  return stated(columns_.has("shape") ? "shape" : "shape_or_bytes");
}

std::map<std::string, std::string> Measurement::shape(const std::vector<std::string>& keys) const {
  std::map<std::string, std::string> values;
  std::string_view rest = shape_text();
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      fail("shape \"" + shape_text() + "\" is not key=value;...");
    const std::string name(part.substr(0, equals));
    if (std::find(keys.begin(), keys.end(), name) == keys.end())
      fail("unknown key \"" + name + "\" in shape \"" + shape_text() + "\"");
    if (!values.emplace(name, part.substr(equals + 1)).second)
      fail("key \"" + name + "\" twice in shape \"" + shape_text() + "\"");
  }
  return values;
}

sim::RowSource Measurement::source() const {
  const std::string& confidence = stated("confidence");
  if (confidence != "high" && confidence != "medium" && confidence != "low")
    fail("confidence \"" + confidence + "\" is none of high, medium, low");
  return {.source = stated("source"),
          .reference = stated("url_or_repo_path"),
          .confidence = confidence,
          .on = {.device = text("device"),
                 .driver = text("driver"),
                 .runtime = text("runtime"),
                 .gemm_library = text("gemm_library"),
                 .collective_library = text("collective_library"),
                 .clocks = text("clocks"),
                 .date = text("date"),
                 .command = text("command")}};
}

void Measurement::fail(const std::string& what, const std::string& hint) const {
  throw InputError(file_.path + ":" + std::to_string(row_.line), what, hint);
}

}  // namespace stepcast::calibrate
