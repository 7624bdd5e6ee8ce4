// The events of a window, read into a collector. Knows what Kineto calls things.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "engine/check.hpp"
#include "validate/trace/records/collector.hpp"
#include "validate/trace/records/event_windows.hpp"

namespace stepcast::validate {

/// simdjson walks the text: values that no figure needs are stepped over, not looked at.
class EventReader {
 public:
  EventReader(std::string path, TraceCollector& collector);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// Throws InputError, naming the byte or the event, for what is no JSON or no time.
  void read(const EventWindows::Window& window);

 private:
  class Walk;
  std::string path_;
  std::unique_ptr<Walk> walk_;
};

/// What nlohmann's parser finds wrong, in its words, at a byte of the file counted from 1.
InputError no_json(const std::string& path, std::int64_t byte, std::string_view what);

}  // namespace stepcast::validate
