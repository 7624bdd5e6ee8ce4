// The events of one trace file, gathered into a RankTrace with a clock of its own. Knows no JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "validate/trace/events.hpp"

namespace stepcast::validate {

/// What a user whose file is no trace should do.
inline constexpr const char* profile_hint =
    "record with torch.profiler, activities CPU and CUDA, and export_chrome_trace";

/// An event as it is read, whatever the order of its keys. Times in ns, as Kineto writes them.
struct TraceEvent {
  std::string name, category, phase;
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
  void add(TraceEvent& event, std::size_t index);
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

  [[noreturn]] void fail(std::size_t index, const std::string& what) const;
  std::uint32_t name_index(const std::string& name);
  std::int64_t facts_index(CollectiveFacts& facts);
  void add_kernel(TraceEvent& event, std::size_t index);
  void add_mark(const TraceEvent& event);
  void keep_main_device();
  std::int64_t first() const;

  RankTrace trace_;
  std::vector<RawKernel> kernels_;
  std::vector<RawMark> marks_;
  std::vector<RawLaunch> launches_;
  std::unordered_map<std::string, std::uint32_t> name_indexes_;
};

}  // namespace stepcast::validate
