// The text of a trace, cut between its events: windows of whole events, and what stands around
// them. Looks at brackets, quotes and commas alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/trace/records/file.hpp"

namespace stepcast::validate {

/// Events are the elements of "traceEvents" of the outermost object, or of an outermost array.
class EventWindows {
 public:
  /// Events as an array, "[{...}, {...}]"; `room_behind` more bytes may be read behind it.
  struct Window {
    std::string_view text;
    std::int64_t at = 0;  // unpacked bytes of the file before it
  };
  static constexpr std::size_t room_behind = 64;  // as simdjson wants it

  EventWindows(std::string path, TraceFile& file) : path_(std::move(path)), file_(file) {}

  /// The next window, good until the next call; none at the end of the file. Throws InputError,
  /// naming the byte, for text that is cut off or whose brackets do not match.
  std::optional<Window> next();

  bool seen_events() const { return !left_out_.empty(); }
  /// After the last window: all other text, with an empty array in place of the events.
  const std::string& around() const { return around_; }
  /// Which byte of the file, counted from 1, that one of `around` is.
  std::int64_t place_of(std::int64_t byte_around) const;

 private:
  void read_around();
  void read_events();
  void mark(char c, std::size_t index);
  void close(char bracket, std::size_t index);
  bool begins_events() const;
  std::size_t after_string(std::size_t from);
  void begin_window();
  Window window();
  void keep_rest();
  void consume(std::size_t size);
  [[noreturn]] void fail(std::int64_t byte, const std::string& what, const char* hint) const;

  std::string path_;
  TraceFile& file_;
  std::string_view block_;   // of the file, not yet looked at
  std::int64_t before_ = 0;  // bytes of the file before the block

  std::string open_;  // brackets
  bool in_string_ = false, escaped_ = false;
  std::string around_;
  std::vector<std::pair<std::int64_t, std::int64_t>> left_out_;  // bytes, after those of `around_`

  std::string window_;
  std::int64_t window_at_ = 0, events_at_ = 0;
  std::size_t level_ = 0;  // brackets open around an event; 0: not among events
  std::size_t comma_ = 0;  // in the window, behind its last whole event; 0: none
  bool ended_ = false;     // the window ends with the events
  bool given_ = false;
};

}  // namespace stepcast::validate
