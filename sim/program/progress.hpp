// Progress of long work on standard error: one line that is written over on a terminal, else a line
// now and then. Nothing for work that ends at once, nothing on standard output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace stepcast::sim {

/// What any long work says of itself, not more often than can be read.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Style : std::uint8_t { none, bar, lines };

  /// `prefix` begins each line that stays, "stepcast: ". `pause`: between two of those.
  ProgressLine(std::string prefix, Style style, std::FILE* out = stderr,
               Clock::duration pause = std::chrono::seconds(10));
  ~ProgressLine() { wipe(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Is it time for a line?
  bool due(Clock::time_point now) const;
  void show(const std::string& text, Clock::time_point now);
  /// Takes a line that would be written over off the terminal.
  void wipe();
  Style style() const { return style_; }

  /// `quiet` -> none; a terminal -> bar; else lines.
  static Style style_for(bool quiet);

 private:
  std::string prefix_;
  Style style_;
  std::FILE* out_;
  Clock::duration pause_;
  Clock::time_point last_;
  bool drawn_ = false;
};

/// "40 s", "12 min 05 s", "3 h 20 min"
std::string clock_text(double seconds);

/// Points of a sweep, rows of a table: how many, how fast, how long still. A bar on a terminal;
/// lines ever more rarely. Nothing in the first two seconds.
class Progress {
 public:
  using Clock = ProgressLine::Clock;
  using Style = ProgressLine::Style;

  /// `what` is counted: "points".
  Progress(std::size_t total, Style style, std::string what = "points", std::FILE* out = stderr);

  void show(std::size_t done, Clock::time_point now = Clock::now());

  static Style style_for(bool quiet) { return ProgressLine::style_for(quiet); }
  /// "5 of 9 points, 2.50 points/s, 2 s left"
  std::string count_text(std::size_t done, Clock::duration elapsed) const;
  /// "[=====>    ]"
  static std::string bar_text(std::size_t done, std::size_t total, bool colour);

 private:
  std::size_t total_;
  std::string what_;
  ProgressLine line_;
  Clock::time_point begin_, next_;
};

}  // namespace stepcast::sim
