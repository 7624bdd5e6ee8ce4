#include "calibrate/import/nccl_tests_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>

#include "sim/files/collective_words.hpp"
#include "sim/files/names.hpp"

namespace stepcast::calibrate {
namespace {

constexpr double csv_rounding = 0.005;  // as the text has them: two decimals

const std::string nccl_csv_columns[] = {
    "numCycle",    "collective", "nodes", "ranks",  "ranksPerNode", "rankspernode", "gpusPerRank",
    "gpusperrank", "size",       "count", "type",   "redop",        "root",         "inplace",
    "time",        "algbw",      "busbw", "#wrong", "wrong"};

double number_under(const sim::CsvLine& line, const char* column) {
  const std::string& text = line.stated(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0 || value > 1e15)
    line.fail("\"" + text + "\" under " + column + " is no number");
  return value;
}

std::int64_t whole_under(const sim::CsvLine& line, const char* column) {
  const double value = number_under(line, column);
  if (value != std::floor(value)) line.fail(std::string(column) + " is no whole number");
  return static_cast<std::int64_t>(value);
}

/// "AllReduce" as the program that measures it; empty where the file does not say.
std::string program_of(const sim::CsvLine& line) {
  std::string letters;
  for (const char c : line.text("collective")) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (small >= 'a' && small <= 'z') letters += small;
  }
  if (letters.empty()) return {};
  const auto kind = sim::collective_within(letters);
  if (!kind) line.fail("unknown collective \"" + line.text("collective") + "\"");
  return std::string(sim::word_for(sim::collective_names, *kind)) + "_perf";
}

void set_once(const sim::CsvLine& line, const char* column, std::optional<std::int64_t>& out) {
  if (line.text(column).empty()) return;
  const std::int64_t value = whole_under(line, column);
  if (value < 1 || value > 1'000'000) line.fail(std::string(column) + " is no number of them");
  if (out.value_or(value) != value) line.fail(std::string(column) + " differ between rows");
  out = value;
}

NcclTestsFigure figure_of(const sim::CsvLine& line) {
  NcclTestsFigure out;
  const auto printed = [&](const char* column) {
    return NcclTestsNumber{number_under(line, column), csv_rounding};
  };
  out.time_us = printed("time");
  if (out.time_us.value <= 0) line.fail("a time of nothing");
  out.algbw = printed("algbw");
  out.busbw = printed("busbw");
  for (const char* column : {"#wrong", "wrong"})
    if (const std::string& wrong = line.text(column); !wrong.empty() && wrong != "N/A")
      out.wrong = number_under(line, column);
  return out;
}

}  // namespace

bool is_nccl_tests_csv(const sim::CsvFile& file) {
  return std::ranges::all_of(
      std::initializer_list<const char*>{"size", "time", "algbw", "busbw"},
      [&](const char* column) { return std::ranges::count(file.header, column) > 0; });
}

NcclTestsCsv parse_nccl_tests_csv(const sim::CsvFile& file) {
  const sim::CsvColumns columns = sim::columns_of(file, nccl_csv_columns);
  NcclTestsCsv out;
  std::map<std::string, std::size_t> places;  // of the runs
  for (const sim::CsvRow& one : file.rows) {
    const sim::CsvLine line(file, columns, one);
    set_once(line, "ranks", out.ranks);
    set_once(line, "nodes", out.nodes);
    const std::string program = program_of(line);
    const auto [at, added] = places.try_emplace(program, out.runs.size());
    if (added) {
      NcclTestsRun& run = out.runs.emplace_back();
      run.path = file.path;
      run.line = one.line;
      run.program = program;
    }
    NcclTestsRow row;
    row.line = one.line;
    row.bytes = whole_under(line, "size");
    row.type = line.stated("type");
    const std::string& in_place = line.text("inplace");
    (in_place == "1" || in_place == "true" ? row.in_place : row.out_of_place) = figure_of(line);
    out.runs[at->second].rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace stepcast::calibrate
