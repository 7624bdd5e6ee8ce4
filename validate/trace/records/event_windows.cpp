#include "validate/trace/records/event_windows.hpp"

#include <fmt/format.h>

#include <array>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/budget.hpp"
#include "validate/trace/records/collector.hpp"

namespace stepcast::validate {
namespace {

constexpr std::size_t window_size = 1 << 20;

/// Bytes that mean something outside of strings.
constexpr std::array<bool, 256> meaning = [] {
  std::array<bool, 256> out{};
  for (const char c : {'"', '{', '}', '[', ']', ','}) out[static_cast<unsigned char>(c)] = true;
  return out;
}();

constexpr const char* blank = " \t\r\n";

std::string_view without_blanks_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

}  // namespace

void EventWindows::fail(std::int64_t byte, const std::string& what, const char* hint) const {
  throw InputError(fmt::format("{}:byte {}", path_, byte), what, hint);
}

void EventWindows::consume(std::size_t size) {
  block_.remove_prefix(size);
  before_ += static_cast<std::int64_t>(size);
}

void EventWindows::close(char bracket, std::size_t index) {
  const char other = bracket == '}' ? '{' : '[';
  if (open_.empty() || open_.back() != other)
    fail(before_ + static_cast<std::int64_t>(index) + 1,
         fmt::format("is no JSON: '{}' closes no '{}'", bracket, other), profile_hint);
  open_.pop_back();
}

/// From inside a string to behind its end, or to the end of the block.
std::size_t EventWindows::after_string(std::size_t from) {
  const char *p = block_.data() + from, *const end = block_.data() + block_.size();
  if (escaped_ && p != end) ++p, escaped_ = false;
  while (p != end) {
    const char c = *p++;
    if (c == '"') {
      in_string_ = false;
      break;
    }
    if (c != '\\') continue;
    escaped_ = p == end;
    if (!escaped_) ++p;
  }
  return static_cast<std::size_t>(p - block_.data());
}

/// Whether the array that `around_` ends with is that of the events.
bool EventWindows::begins_events() const {
  if (open_ == "[") return true;
  if (open_ != "{[") return false;
  std::string_view before(around_);
  before.remove_suffix(1);
  before = without_blanks_behind(before);
  if (!before.ends_with(':')) return false;
  before.remove_suffix(1);
  before = without_blanks_behind(before);
  return before.ends_with("\"traceEvents\"") && !before.ends_with("\\\"traceEvents\"");
}

/// Up to the first event, or behind the last.
void EventWindows::read_around() {
  std::size_t i = 0;
  while (i < block_.size()) {
    const std::size_t from = i;
    if (in_string_) {
      i = after_string(i);
      around_ += block_.substr(from, i - from);
      continue;
    }
    const char c = block_[i++];
    around_ += c;
    if (c == '"') in_string_ = true;
    if (c == '}' || c == ']') close(c, from);
    if (c != '{' && c != '[') continue;
    open_ += c;
    if (c == '[' && begins_events()) {
      consume(i);
      return begin_window();
    }
  }
  consume(i);
}

void EventWindows::begin_window() {
  window_ = "[";
  window_at_ = events_at_ = before_ - 1;
  level_ = open_.size();
  comma_ = 0;
}

void EventWindows::mark(char c, std::size_t index) {
  if (c == '"')
    in_string_ = true;
  else if (c == '{' || c == '[')
    open_ += c;
  else if (c == ',' && open_.size() == level_)
    comma_ = window_.size() + index;
  else if (c != ',')
    close(c, index);
}

/// Up to the end of the events, or of the block.
void EventWindows::read_events() {
  std::size_t i = 0;
  const std::size_t size = block_.size();
  while (i < size && open_.size() >= level_) {
    if (in_string_) {
      i = after_string(i);
      continue;
    }
    while (i < size && !meaning[static_cast<unsigned char>(block_[i])]) ++i;
    if (i < size) mark(block_[i], i), ++i;
  }
  ended_ = open_.size() < level_;
  window_ += block_.substr(0, i);
  consume(i);
}

EventWindows::Window EventWindows::window() {
  given_ = true;
  window_.reserve(window_.size() + room_behind);
  if (!ended_) {
    window_[comma_] = ']';
    return {std::string_view(window_).substr(0, comma_ + 1), window_at_};
  }
  if (window_at_ > events_at_ && window_.find_first_not_of(blank, 1) + 1 == window_.size())
    fail(before_, "is no JSON: a comma before ']'", profile_hint);
  around_ += ']';
  level_ = 0;
  left_out_.emplace_back(around_.size() - 1, before_ - 1 - (events_at_ + 1));
  return {window_, window_at_};
}

/// What follows the window that was given begins the next.
void EventWindows::keep_rest() {
  given_ = false;
  if (ended_) {
    ended_ = false;
    return window_.clear();
  }
  window_.erase(0, comma_);
  window_[0] = '[';
  window_at_ += static_cast<std::int64_t>(comma_);
  comma_ = 0;
}

std::optional<EventWindows::Window> EventWindows::next() {
  if (given_) keep_rest();
  for (;;) {
    if (block_.empty()) block_ = file_.take();
    if (block_.empty()) break;
    const std::int64_t most = sim::budget.event;
    if (level_ == 0) {
      read_around();
      if (std::ssize(around_) > most)
        fail(before_, "more than " + to_text(Bytes(most)) + " stand around the events",
             profile_hint);
      continue;
    }
    read_events();
    if (comma_ == 0 && std::ssize(window_) > most)
      fail(before_, "an event of more than " + to_text(Bytes(most)), profile_hint);
    if (ended_ || (window_.size() >= window_size && comma_ > 0)) return window();
  }
  if (!open_.empty() || in_string_)
    fail(before_, "the trace ends too early",
         "the profiler may still be writing it, or the copy was cut off");
  return std::nullopt;
}

std::int64_t EventWindows::place_of(std::int64_t byte_around) const {
  std::int64_t out = byte_around;
  for (const auto& [after, bytes] : left_out_)
    if (byte_around > after) out += bytes;
  return out;
}

}  // namespace stepcast::validate
