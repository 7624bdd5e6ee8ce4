#include "sim/program/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace stepcast::sim {
namespace {

using namespace std::chrono_literals;
constexpr auto bar_interval = 100ms;
constexpr auto line_interval = 10s;

bool wants_colour() {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (none == nullptr || *none == '\0') &&
         (terminal == nullptr || std::string(terminal) != "dumb");
}

}  // namespace

Progress::Progress(std::size_t total, Style style, std::FILE* out)
    : total_(total), style_(style), out_(out), begin_(Clock::now()), last_(begin_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", out_);
}

Progress::Style Progress::style_for(bool quiet) {
  if (quiet) return Style::none;
  return isatty(STDERR_FILENO) != 0 ? Style::bar : Style::lines;
}

std::string Progress::bar_text(std::size_t done, std::size_t total, std::chrono::seconds elapsed,
                               bool colour) {
  constexpr std::size_t width = 30;
  const std::size_t filled = total == 0 ? width : width * std::min(done, total) / total;
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  if (colour) bar = "\033[32m" + bar + "\033[0m";
  std::string out = fmt::format("[{}] {} of {} points", bar, done, total);
  if (done > 0 && done < total) {
    const auto left =
        elapsed.count() * static_cast<std::int64_t>(total - done) / static_cast<std::int64_t>(done);
    out += fmt::format(", {} s left", left);
  }
  return out;
}

void Progress::show(std::size_t done, Clock::time_point now) {
  const bool due =
      style_ == Style::bar ? now - last_ >= bar_interval : now - last_ >= line_interval;
  if (style_ == Style::none || !due) return;
  last_ = now;
  const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - begin_);
  if (style_ == Style::bar) {
    fmt::print(out_, "\r{}\033[K", bar_text(done, total_, elapsed, wants_colour()));
    drawn_ = true;
  } else {
    fmt::print(out_, "stepcast: {} of {} points after {} s\n", done, total_, elapsed.count());
  }
  std::fflush(out_);
}

}  // namespace stepcast::sim
