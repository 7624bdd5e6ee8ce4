#include "sim/confidence/residuals.hpp"

#include <fmt/format.h>

#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {
namespace {

const std::vector<std::string> residual_columns{
    "source", "row", "log_ratio", "generation", "family", "reach", "host", "unmeasured", "kind"};
const std::vector<std::string> pair_columns{"source", "gap", "pairs", "in_order"};

double number(const CsvLine& line, const char* column) {
  const auto value = number_in<double>(line.stated(column));
  if (!value) line.fail("'" + line.text(column) + "' in column " + column + " is no number");
  return *value;
}

std::string header(const std::vector<std::string>& columns) {
  return fmt::format("{}\n", fmt::join(columns, ","));
}

/// Calls `add` for every line of a file of these columns.
template <class Add>
void for_each_line(const std::string& path, const std::vector<std::string>& known, Add add) {
  const CsvFile file = read_csv(path);
  const CsvColumns columns = columns_of(file, known);
  for (const CsvRow& row : file.rows) add(CsvLine(file, columns, row));
}

}  // namespace

std::vector<Residual> read_residuals(const std::string& path) {
  std::vector<Residual> out;
  for_each_line(path, residual_columns, [&](const CsvLine& line) {
    out.push_back({line.stated("source"),
                   line.text("row"),
                   number(line, "log_ratio"),
                   {line.stated("generation"), line.stated("family"), line.stated("reach"),
                    number(line, "host"), number(line, "unmeasured"),
                    line.text("kind").empty() ? dense_16_bit : line.text("kind")}});
  });
  return out;
}

std::string residuals_csv(const std::vector<Residual>& residuals) {
  std::string out = header(residual_columns);
  for (const Residual& r : residuals)
    out +=
        fmt::format("{},{},{:.4f},{},{},{},{:.4f},{:.4f},{}\n", csv_cell(r.source), csv_cell(r.row),
                    r.log_ratio, csv_cell(r.of.generation), csv_cell(r.of.family),
                    csv_cell(r.of.reach), r.of.host, r.of.unmeasured, csv_cell(r.of.kind));
  return out;
}

std::vector<PairCount> read_pairs(const std::string& path) {
  std::vector<PairCount> out;
  for_each_line(path, pair_columns, [&](const CsvLine& line) {
    out.push_back({line.stated("source"), number(line, "gap"), number(line, "pairs"),
                   number(line, "in_order")});
  });
  return out;
}

std::string pairs_csv(const std::vector<PairCount>& pairs) {
  std::string out = header(pair_columns);
  for (const PairCount& p : pairs)
    out += fmt::format("{},{:g},{:g},{:g}\n", csv_cell(p.source), p.gap, p.pairs, p.in_order);
  return out;
}

}  // namespace stepcast::sim
