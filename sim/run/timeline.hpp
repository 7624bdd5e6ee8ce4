// One step as events: what each rank's lanes did when. The simulator and the trainer record the
// same; sim/timeline writes files of it. Knows no file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
  double hbm = 0.0;                                 // of a kernel: share of the HBM's bandwidth
  std::int64_t calls = 1;                           // that this is the sum of (Timeline::sums)

  bool is_collective() const { return !group.empty(); }
  friend bool operator==(const TimelineEvent&, const TimelineEvent&) = default;
};

/// Which ranks a timeline is asked to show.
struct RankChoice {
  enum class Kind : std::uint8_t {
    simulated,        // those that the run simulates: of ranks that are provably alike, the first
    representatives,  // the same also where every rank is simulated, and the slowest
    listed,
    all
  } kind = Kind::simulated;
  std::vector<std::int64_t> ranks{};  // listed: ascending
  friend bool operator==(const RankChoice&, const RankChoice&) = default;
};

/// A quantity of a rank over time: from each instant on the value, until the next.
struct TimelineCounter {
  std::int64_t rank = 0;
  std::string name, unit;
  std::vector<std::pair<Duration, double>> values{};
  friend bool operator==(const TimelineCounter&, const TimelineCounter&) = default;
};

struct Timeline {
  std::string title;                             // "simulated", "measured"
  std::map<std::int64_t, std::int64_t> ranks{};  // and how many ranks each stands for
  std::vector<TimelineEvent> events{};
  /// Ranks to show, each with the one of `ranks` that does as it does; empty: all of `ranks`.
  std::map<std::int64_t, std::int64_t> shown{};
  /// The rank that computes longest, which the others wait for; where ranks differ.
  std::optional<std::int64_t> slowest{};
  /// Who receives what a rank sends on a lane, of those to show.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> receivers{};
  std::vector<TimelineCounter> counters{};  // of `ranks`
  /// The critical path, edge by edge in the order of time, where it is known: a track of its own,
  /// and arrows between the events on it. The host's edges have the lane `host_lane`.
  std::vector<TimelineEvent> path{};
  Duration step{};  // from a step to the next: less than all events' span where steps overlap
  /// Asked for before a run: one event for all calls of a kernel or collective on a rank, the first
  /// one's start, all their durations. Takes no memory for long steps of many ranks.
  bool sums = false;
  RankChoice asked{};  // before a run as well

  /// `shown`, or `ranks` as themselves.
  std::map<std::int64_t, std::int64_t> to_show() const;
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// How much a run is about to record, for who would rather not: throws to stop it.
struct TimelineSize {
  std::int64_t ranks = 0, all_ranks = 0, events = 0;
  std::int64_t name_bytes = 0;  // of all events' names
};
using TimelineApproval = std::function<void(const TimelineSize&)>;

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
  /// `hbm`, by kernel: the share of the HBM's bandwidth that it uses; may be empty.
  TimelineRecorder(const workloads::StepProgram& program, Timeline& timeline,
                   std::vector<double> hbm = {})
      : program_(program), timeline_(timeline), hbm_(std::move(hbm)) {}
  /// Of the ranks of the run only these; empty: all.
  void record_only(std::vector<bool> ranks) { only_ = std::move(ranks); }
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
  bool leaves_out(std::uint32_t rank) const { return !only_.empty() && !only_[rank]; }

  const workloads::StepProgram& program_;
  Timeline& timeline_;
  std::vector<double> hbm_;
  std::vector<bool> only_;
  std::vector<std::vector<std::size_t>> sums_;  // [rank][work, then transfer]: event + 1
};

/// In order of start, the first at zero.
void settle(Timeline& timeline);

}  // namespace stepcast::sim
