// Progress of long work on standard error: a bar on a terminal, else a line every ten seconds.
// Nothing for work that ends at once, nothing on standard output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace stepcast::sim {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Style : std::uint8_t { none, bar, lines };

  Progress(std::size_t total, Style style, std::FILE* out = stderr);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done, Clock::time_point now = Clock::now());

  /// `quiet` -> none; a terminal -> bar; else lines.
  static Style style_for(bool quiet);
  /// "[=====>    ] 5 of 9 points, 3 s left"
  static std::string bar_text(std::size_t done, std::size_t total, std::chrono::seconds elapsed,
                              bool colour);

 private:
  std::size_t total_;
  Style style_;
  std::FILE* out_;
  Clock::time_point begin_, last_;
  bool drawn_ = false;
};

}  // namespace stepcast::sim
