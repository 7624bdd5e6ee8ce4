#include "sim/program/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace stepcast::sim {
namespace {

bool wants_colour() {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (none == nullptr || *none == '\0') &&
         (terminal == nullptr || std::string(terminal) != "dumb");
}

}  // namespace

ProgressLine::ProgressLine(std::string prefix, Style style, std::FILE* out, Clock::duration pause)
    : prefix_(std::move(prefix)),
      style_(style),
      out_(out),
      pause_(style == Style::bar ? std::chrono::milliseconds(100) : pause),
      last_(Clock::now()) {}

bool ProgressLine::due(Clock::time_point now) const {
  return style_ != Style::none && now - last_ >= pause_;
}

void ProgressLine::show(const std::string& text, Clock::time_point now) {
  if (style_ == Style::none) return;
  last_ = now;
  drawn_ = style_ == Style::bar;
  if (drawn_)
    fmt::print(out_, "\r{}\033[K", text);
  else
    fmt::print(out_, "{}{}\n", prefix_, text);
  std::fflush(out_);
}

void ProgressLine::wipe() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

ProgressLine::Style ProgressLine::style_for(bool quiet) {
  if (quiet) return Style::none;
  return isatty(STDERR_FILENO) != 0 ? Style::bar : Style::lines;
}

Progress::Progress(std::size_t total, Style style, std::FILE* out)
    : total_(total), line_("stepcast: ", style, out), begin_(Clock::now()) {}

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
  if (!line_.due(now)) return;
  const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - begin_);
  line_.show(line_.style() == Style::bar
                 ? bar_text(done, total_, elapsed, wants_colour())
                 : fmt::format("{} of {} points after {} s", done, total_, elapsed.count()),
             now);
}

}  // namespace stepcast::sim
