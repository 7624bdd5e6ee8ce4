#include "sim/program/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/files/colour.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {
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
    fmt::print(out_, "\r{}\033[K", printable(text));
  else
    tell(out_, fmt::format("{}{}\n", prefix_, text));
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

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

Progress::Progress(std::size_t total, Style style, std::string what, std::FILE* out)
    : total_(total),
      what_(std::move(what)),
      line_("stepcast: ", style, out),
      begin_(Clock::now()),
      next_(begin_ + std::chrono::seconds(2)) {}

std::string Progress::bar_text(std::size_t done, std::size_t total, bool colour) {
  constexpr std::size_t width = 30;
  const std::size_t filled = total == 0 ? width : width * std::min(done, total) / total;
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  if (colour) bar = "\033[32m" + bar + "\033[0m";
  return "[" + bar + "]";
}

std::string Progress::count_text(std::size_t done, Clock::duration elapsed) const {
  std::string out = fmt::format("{} of {} {}", done, total_, what_);
  const double passed = std::chrono::duration<double>(elapsed).count();
  if (done == 0 || passed <= 0) return out;
  const double rate = static_cast<double>(done) / passed;
  out += rate < 1 ? fmt::format(", {} s each", three_digits(1 / rate))
                  : fmt::format(", {} {}/s", three_digits(rate), what_);
  if (done < total_)
    out += fmt::format(", {} left", clock_text(static_cast<double>(total_ - done) / rate));
  return out;
}

void Progress::show(std::size_t done, Clock::time_point now) {
  if (now < next_) return;
  const auto elapsed = now - begin_;
  const std::string text = count_text(done, elapsed);
  if (line_.style() == Style::bar) {
    line_.show(bar_text(done, total_, may_colour(stderr)) + " " + text, now);
    next_ = now + std::chrono::milliseconds(100);
  } else {
    line_.show(text, now);
    next_ = now + std::max<Clock::duration>(std::chrono::seconds(10), elapsed / 10);
  }
}

}  // namespace stepcast::sim
