#include "sim/run/residuals.hpp"

#include <fmt/format.h>

#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"

namespace stepcast::sim {
namespace {

const std::vector<std::string> residual_columns{
    "source", "row", "log_ratio", "generation", "family", "reach", "host", "unmeasured", "kind"};
const std::vector<std::string> pair_columns{"source", "gap", "pairs", "in_order"};

double number(const CsvLine& line, const CsvColumn& column) {
  const auto value = number_in<double>(line.stated(column));
  if (!value)
    line.fail("'" + line.text(column) + "' in column " + std::string(column.name) +
              " is no number");
  return *value;
}

std::string header(const std::vector<std::string>& columns) {
  return fmt::format("{}\n", fmt::join(columns, ","));
}

/// Makes one of every line of a file of these columns.
template <class Made, class Reader>
std::vector<Made> each_line(const std::string& path, const std::vector<std::string>& known) {
  CsvLines lines(path, known);
  const Reader reader(lines.columns());
  std::vector<Made> out;
  while (const auto line = lines.next()) out.push_back(reader.read(*line));
  return out;
}

class ResidualReader {
 public:
  explicit ResidualReader(const CsvColumns& columns) : columns_(columns) {}

  Residual read(const CsvLine& line) const {
    const std::string& kind = line.text(kind_);
    return {line.stated(source_),
            line.text(row_),
            number(line, log_ratio_),
            {line.stated(generation_), line.stated(family_), line.stated(reach_),
             number(line, host_), number(line, unmeasured_), kind.empty() ? dense_16_bit : kind}};
  }

 private:
  CsvColumn column(const char* name) const { return {columns_, name}; }

  const CsvColumns& columns_;
  CsvColumn source_ = column("source"), row_ = column("row"), log_ratio_ = column("log_ratio"),
            generation_ = column("generation"), family_ = column("family"),
            reach_ = column("reach"), host_ = column("host"), unmeasured_ = column("unmeasured"),
            kind_ = column("kind");
};

class PairReader {
 public:
  explicit PairReader(const CsvColumns& columns)
      : source_(columns, "source"),
        gap_(columns, "gap"),
        pairs_(columns, "pairs"),
        in_order_(columns, "in_order") {}

  PairCount read(const CsvLine& line) const {
    return {line.stated(source_), number(line, gap_), number(line, pairs_),
            number(line, in_order_)};
  }

 private:
  CsvColumn source_, gap_, pairs_, in_order_;
};

}  // namespace

std::vector<Residual> read_residuals(const std::string& path) {
  return each_line<Residual, ResidualReader>(path, residual_columns);
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
  return each_line<PairCount, PairReader>(path, pair_columns);
}

std::string pairs_csv(const std::vector<PairCount>& pairs) {
  std::string out = header(pair_columns);
  for (const PairCount& p : pairs)
    out += fmt::format("{},{:g},{:g},{:g}\n", csv_cell(p.source), p.gap, p.pairs, p.in_order);
  return out;
}

}  // namespace stepcast::sim
