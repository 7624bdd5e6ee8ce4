#include "validate/goodput/rows.hpp"

#include "sim/files/numbers.hpp"

namespace stepcast::validate {
namespace {

std::optional<double> number_of(const sim::CsvLine& line, const char* column, double scale = 1.0) {
  const std::string& cell = line.text(column);
  if (cell.empty()) return std::nullopt;
  const auto number = sim::number_in<double>(cell);
  if (!number || !(*number > 0.0)) line.fail("'" + cell + "' under " + column + " is no number");
  return *number * scale;
}

double needed(const sim::CsvLine& line, const char* column) {
  line.stated(column);
  return *number_of(line, column);
}

GoodputRow goodput_row(const sim::CsvLine& line) {
  GoodputRow row;
  row.id = line.stated("id");
  row.kind = line.stated("kind");
  row.source = line.stated("source");
  row.url = line.text("url");
  row.gpus = needed(line, "gpus");
  row.gpus_per_node = needed(line, "gpus_per_node");
  row.days = number_of(line, "days");
  row.interruptions = number_of(line, "interruptions");
  row.between_h = number_of(line, "between_h");
  row.per_1000_node_days = number_of(line, "per_1000_node_days");
  row.ettr = number_of(line, "ettr_pct", 0.01);
  const std::string& bound = line.text("bound");
  if (!bound.empty() && bound != "equal" && bound != "at_least")
    line.fail("'" + bound + "' under bound", "equal or at_least");
  row.at_least = bound == "at_least";
  row.restart_s = number_of(line, "restart_min", 60.0);
  row.checkpoint_s = number_of(line, "checkpoint_s");
  row.assumed = line.text("assumed");
  row.notes = line.text("notes");
  if (row.interruptions && !row.days) line.fail("interruptions without days");
  if (row.ettr && (!row.restart_s || !row.checkpoint_s))
    line.fail("ettr_pct without restart_min and checkpoint_s", "name them under assumed");
  return row;
}

}  // namespace

std::optional<double> GoodputRow::rate() const {
  if (per_1000_node_days) return per_1000_node_days;
  if (interruptions && days) return *interruptions / (nodes() * *days) * 1000.0;
  if (between_h) return 24.0 / *between_h / nodes() * 1000.0;
  return std::nullopt;
}

std::vector<GoodputRow> goodput_rows(const sim::CsvFile& file) {
  static const std::string known[] = {"id",          "kind",
                                      "source",      "url",
                                      "gpus",        "gpus_per_node",
                                      "days",        "interruptions",
                                      "between_h",   "per_1000_node_days",
                                      "ettr_pct",    "bound",
                                      "restart_min", "checkpoint_s",
                                      "assumed",     "notes"};
  const sim::CsvColumns columns = sim::columns_of(file, known);
  std::vector<GoodputRow> out;
  for (const sim::CsvRow& row : file.rows) out.push_back(goodput_row({file, columns, row}));
  return out;
}

}  // namespace stepcast::validate
