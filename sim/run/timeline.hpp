// One step as events: what each rank's lanes did when. The simulator and the trainer write the
// same: Chrome's trace format (JSON), which Perfetto and chrome://tracing show. pid = rank, tid =
// lane, times in microseconds; ranks and lanes have names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/timeline.hpp"
#include "engine/units.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

struct TimelineEvent {
  std::int64_t rank = 0;
  std::int64_t lane = 0;
  std::string name;     // of the kernel or collective in the step program
  std::string kind;     // "gemm", "attention", "adamw"; "all_reduce"
  std::string group{};  // of a collective: "tensor"; empty: a kernel
  Bytes bytes{};
  Duration start{};                                 // since the step began
  Duration duration{};                              // waiting included
  Duration waited{};                                // of it: for the last member of a collective
  std::optional<workloads::KernelFamily> family{};  // of a kernel
  std::int64_t calls = 1;                           // that this is the sum of (Timeline::sums)

  bool is_collective() const { return !group.empty(); }
  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

struct Timeline {
  std::string title;                             // "simulated", "measured"
  std::map<std::int64_t, std::int64_t> ranks{};  // and how many ranks each stands for
  std::vector<TimelineEvent> events{};
  /// The critical path, edge by edge in the order of time, where it is known: a track of its own,
  /// and arrows between the events on it. The host's edges have the lane `host_lane`.
  std::vector<TimelineEvent> path{};
  Duration step{};  // from a step to the next: less than all events' span where steps overlap
  /// Asked for before a run: one event for all calls of a kernel or collective on a rank, the first
  /// one's start, all their durations. Takes no memory for long steps of many ranks.
  bool sums = false;
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Of a rank's host thread, which has no lane of workloads::Lane.
inline constexpr std::int64_t host_lane = -1;

/// What a kernel or collective of a step program is, without its times.
TimelineEvent described(const workloads::Kernel& kernel);
TimelineEvent described(const workloads::Collective& collective);

/// A lane of workloads::Lane, as Perfetto shows it.
std::string lane_name(std::int64_t lane);

/// Fills a timeline from the engine's run.
class TimelineRecorder final : public engine::TimelineSink {
 public:
  TimelineRecorder(const workloads::StepProgram& program, Timeline& timeline)
      : program_(program), timeline_(timeline) {}
  void start() override {
    timeline_.events.clear();
    sums_.clear();
  }
  void work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from, Time to) override;
  void transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer, Time arrived,
                Time started, Time ended) override;
  Timeline& timeline() { return timeline_; }

 private:
  template <class What>
  void add(const What& what, std::uint64_t index, TimelineEvent times);

  const workloads::StepProgram& program_;
  Timeline& timeline_;
  std::vector<std::vector<std::size_t>> sums_;  // [rank][work, then transfer]: event + 1
};

/// In order of start, the first at zero.
void settle(Timeline& timeline);

/// The timelines side by side in one file, packed where its name ends in ".gz". Throws OutputError
/// where it cannot be written.
void write_timelines(const std::string& path, std::span<const Timeline> timelines);
/// What write_timelines wrote.
std::vector<Timeline> read_timelines(const std::string& path);
/// How such a file begins, unpacked.
inline constexpr std::string_view timeline_head =
    R"({"displayTimeUnit":"ms","otherData":{"program":"stepcast",)";

}  // namespace stepcast::sim
