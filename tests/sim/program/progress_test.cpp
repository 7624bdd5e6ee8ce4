#include "sim/program/progress.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

using stepcast::sim::clock_text;
using stepcast::sim::Progress;
using stepcast::sim::ProgressLine;
using namespace std::chrono_literals;

namespace {

/// What was written to a file that is nobody's.
std::string written(std::FILE* file) {
  std::rewind(file);
  std::string out(1000, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), file));
  return out;
}

}  // namespace

TEST_CASE("lines stay, begin with the prefix, and are due after the pause") {
  std::FILE* file = std::tmpfile();
  const auto begin = ProgressLine::Clock::now();
  {
    ProgressLine line("program: ", ProgressLine::Style::lines, file, 5s);
    CHECK_FALSE(line.due(begin + 4s));
    CHECK(line.due(begin + 6s));
    line.show("1 of 9", begin + 6s);
    CHECK_FALSE(line.due(begin + 10s));
    line.show("2 of 9", begin + 11s);
  }
  CHECK(written(file) == "program: 1 of 9\nprogram: 2 of 9\n");
  std::fclose(file);
}

TEST_CASE("a bar is written over, and wiped once") {
  std::FILE* file = std::tmpfile();
  const auto begin = ProgressLine::Clock::now();
  {
    ProgressLine line("program: ", ProgressLine::Style::bar, file);
    CHECK(line.due(begin + 1s));
    line.show("1 of 9", begin + 1s);
    line.wipe();
  }
  CHECK(written(file) == "\r1 of 9\033[K\r\033[K");
  std::fclose(file);
}

TEST_CASE("without a style nothing is due, and nothing written") {
  std::FILE* file = std::tmpfile();
  ProgressLine line("program: ", ProgressLine::Style::none, file);
  CHECK_FALSE(line.due(ProgressLine::Clock::now() + 60s));
  line.show("1 of 9", ProgressLine::Clock::now());
  CHECK(written(file).empty());
  std::fclose(file);
}

TEST_CASE("the progress bar is full only at the end") {
  CHECK(Progress::bar_text(0, 4, false) == "[>                             ]");
  CHECK(Progress::bar_text(2, 4, false) == "[===============>              ]");
  CHECK(Progress::bar_text(4, 4, false) == "[==============================]");
}

TEST_CASE("progress says how fast, and how long still") {
  const Progress four(4, Progress::Style::none);
  CHECK(four.count_text(0, 9s) == "0 of 4 points");
  // Two in ten seconds are one in five; two more take ten.
  CHECK(four.count_text(2, 10s) == "2 of 4 points, 5.00 s each, 10 s left");
  CHECK(four.count_text(4, 10s) == "4 of 4 points, 2.50 s each");
  const Progress rows(3000, Progress::Style::none, "rows");
  CHECK(rows.count_text(30, 10s) == "30 of 3000 rows, 3.00 rows/s, 16 min 30 s left");
  CHECK(clock_text(59.4) == "59 s");
  CHECK(clock_text(59.6) == "1 min 00 s");
  CHECK(clock_text(3 * 3600 + 20 * 60 + 7) == "3 h 20 min");
}

TEST_CASE("work of less than two seconds says nothing, longer work ever more rarely in a log") {
  std::FILE* file = std::tmpfile();
  const auto begin = ProgressLine::Clock::now();
  Progress progress(1000, Progress::Style::lines, "points", file);
  progress.show(1, begin + 1s);
  CHECK(written(file).empty());
  progress.show(2, begin + 3s);   // the first
  progress.show(3, begin + 12s);  // ten seconds after it, not before
  progress.show(4, begin + 14s);
  progress.show(5, begin + 400s);
  progress.show(6, begin + 430s);  // a tenth of 400 s after it, not before
  progress.show(7, begin + 450s);
  std::string counts;
  std::istringstream lines(written(file));
  for (std::string line; std::getline(lines, line) && line.starts_with("stepcast: ");)
    counts += line.substr(10, 2);
  CHECK(counts == "2 4 5 7 ");
  std::fclose(file);
}
