#include "sim/program/progress.hpp"

#include <catch2/catch.hpp>

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
