#include "sim/timeline/counters.hpp"

#include <algorithm>
#include <map>

#include "sim/run/power.hpp"

namespace stepcast::sim {
namespace {

/// What begins or ends at an instant.
struct Change {
  Duration when{};
  int tensor = 0, communication = 0;
  double hbm = 0.0, bytes = 0.0;
};

bool on_tensor_cores(const TimelineEvent& e) {
  using enum workloads::KernelFamily;
  return e.family == gemm || e.family == grouped_gemm ||
         (e.family &&
          (workloads::mixes_forward(*e.family) || workloads::mixes_backward(*e.family)));
}

void add_both(std::vector<Change>& changes, Change begin, Duration from, Duration to) {
  begin.when = from;
  changes.push_back(begin);
  changes.push_back({to, -begin.tensor, -begin.communication, -begin.hbm, -begin.bytes});
}

/// A counter for each rank: `begins` says what an event adds while it runs, `value` what the sum of
/// all that do comes to.
template <class Begins, class Value>
void add_counter(Timeline& timeline, const char* name, const char* unit, Begins begins,
                 Value value) {
  std::map<std::int64_t, std::vector<Change>> changes_of;
  for (const auto& [rank, alike] : timeline.ranks) changes_of[rank];
  for (const TimelineEvent& e : timeline.events) begins(e, changes_of[e.rank]);
  for (auto& [rank, changes] : changes_of) {
    std::ranges::stable_sort(changes, {}, &Change::when);
    TimelineCounter counter{rank, name, unit};
    Change sum;
    double last = value(sum);
    counter.values.emplace_back(Duration{}, last);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      sum.tensor += changes[i].tensor;
      sum.communication += changes[i].communication;
      sum.hbm += changes[i].hbm;
      sum.bytes += changes[i].bytes;
      if (i + 1 < changes.size() && changes[i + 1].when == changes[i].when) continue;
      const double now = value(sum);
      if (now == last) continue;
      counter.values.emplace_back(changes[i].when, last = now);
    }
    timeline.counters.push_back(std::move(counter));
  }
}

}  // namespace

void add_power(Timeline& timeline, const topology::GpuSpec& gpu) {
  const auto begins = [](const TimelineEvent& e, std::vector<Change>& changes) {
    Change begin;
    begin.tensor = on_tensor_cores(e) ? 1 : 0;
    begin.communication = e.is_collective() ? 1 : 0;
    begin.hbm = e.hbm;
    add_both(changes, begin, e.start, e.start + e.duration);
  };
  const auto value = [&](const Change& sum) {
    // To a milliwatt: sums of shares keep a remainder of their rounding.
    const Watts power =
        mean_power(gpu, {static_cast<double>(std::min(1, sum.tensor)), std::min(1.0, sum.hbm),
                         static_cast<double>(std::min(1, sum.communication))});
    return static_cast<double>(static_cast<std::int64_t>(power.value * 1e3 + 0.5)) * 1e-3;
  };
  add_counter(timeline, "power", "W", begins, value);
}

void add_bytes_in_flight(Timeline& timeline) {
  const auto begins = [](const TimelineEvent& e, std::vector<Change>& changes) {
    if (!e.is_collective()) return;
    Change begin;
    begin.bytes = static_cast<double>(e.bytes.value);
    add_both(changes, begin, e.start + e.waited, e.start + e.duration);
  };
  add_counter(timeline, "bytes in flight", "MB", begins,
              [](const Change& sum) { return sum.bytes * 1e-6; });
}

}  // namespace stepcast::sim
