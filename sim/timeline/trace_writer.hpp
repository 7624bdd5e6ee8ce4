// A trace as viewers know it: processes with tracks of slices that nest, counters, arrows. One
// writer for each file format; they append to a text that the caller empties.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "engine/units.hpp"

namespace stepcast::sim {

/// What is told of a slice or a process beside its name.
struct TraceArg {
  std::string_view name;
  std::variant<std::int64_t, double, bool, std::string_view, Duration> value;  // Duration: in us
};

struct TraceSlice {
  std::int64_t process = 0, track = 0;
  std::string_view name, category;
  Duration start{}, duration{};
  std::span<const TraceArg> args{};
  std::span<const std::uint64_t> leaving{}, arriving{};  // arrows, by their numbers
};

/// From within a slice to within another, which both were written.
struct TraceArrow {
  std::uint64_t number = 0;
  std::string_view name, category;
  std::int64_t from_process = 0, from_track = 0;
  Duration from{};
  std::int64_t to_process = 0, to_track = 0;
  Duration to{};
};

class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  virtual void process(std::int64_t process, std::string_view name,
                       std::span<const TraceArg> args) = 0;
  virtual void track(std::int64_t process, std::int64_t track, std::string_view name) = 0;
  /// Those of a track in the order of their starts.
  virtual void slice(const TraceSlice& slice) = 0;
  /// A counter of a process: `index` tells it from the process's others.
  virtual void counter(std::int64_t process, std::int64_t index, std::string_view name,
                       std::string_view unit) = 0;
  virtual void value(std::int64_t process, std::int64_t index, Duration when, double value) = 0;
  virtual void arrow(const TraceArrow& arrow) = 0;
  virtual void finish() = 0;
};

/// Chrome's trace events (JSON). `facts`: members of otherData, "\"step_us\":{...}".
std::unique_ptr<TraceWriter> chrome_trace(std::string& out, const std::string& facts);
/// Perfetto's protocol buffers.
std::unique_ptr<TraceWriter> perfetto_trace(std::string& out);

}  // namespace stepcast::sim
