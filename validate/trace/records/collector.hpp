// The events of one trace file, gathered into a RankTrace with a clock of its own. Knows no JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "validate/trace/records/events.hpp"

namespace stepcast::validate {

/// What a user whose file is no trace should do.
inline constexpr const char* profile_hint =
    "record with torch.profiler, activities CPU and CUDA, and export_chrome_trace";

/// What runs on a GPU, by Kineto's category of its events.
bool is_gpu(std::string_view category);
/// A call of the host that starts such.
bool is_launch(std::string_view category);

/// An event as it is read, whatever the order of its keys. Times in ns, as Kineto writes them.
struct TraceEvent {
  std::string_view list = "traceEvents";  // it stands there, at the index
  std::size_t index = 0;
  std::string_view name, category, phase;
  std::optional<std::int64_t> begin, duration, thread, stream, correlation;
  std::int64_t device = 0;
  bool has_facts = false;
  CollectiveFacts facts;
};

/// What the events of a file come to, before they share a clock of their own.
class TraceCollector {
 public:
  explicit TraceCollector(std::string path) { trace_.file = std::move(path); }

  RankTrace& trace() { return trace_; }
  void add(TraceEvent& event);
  /// A step as the host's thread passed it; times in ns.
  void add_host_mark(std::int64_t number, std::int64_t begin, std::int64_t duration) {
    marks_.push_back({number, begin, duration, false});
  }
  RankTrace finish();

 private:
  struct RawKernel {
    std::int64_t begin, duration, device;
    TraceKernel kernel;
  };
  struct RawMark {
    std::int64_t number, begin, duration;
    bool gpu;
  };
  struct RawLaunch {
    std::int64_t correlation, at;
  };

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  [[noreturn]] void fail(const TraceEvent& event, const std::string& what) const;
  std::uint32_t name_index(std::string_view name);
  std::int64_t facts_index(CollectiveFacts& facts);
  void add_kernel(TraceEvent& event);
  void add_mark(const TraceEvent& event);
  void keep_main_device();
  std::int64_t first() const;

  RankTrace trace_;
  std::vector<RawKernel> kernels_;
  std::vector<RawMark> marks_;
  std::vector<RawLaunch> launches_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> name_indexes_;
};

}  // namespace stepcast::validate
