#include "sim/run/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "sim/files/names.hpp"
#include "sim/kernels/kernel_names.hpp"

namespace stepcast::sim {

std::map<std::int64_t, std::int64_t> Timeline::to_show() const {
  if (!shown.empty()) return shown;
  std::map<std::int64_t, std::int64_t> out;
  for (const auto& [rank, alike] : ranks) out[rank] = rank;
  return out;
}

std::string lane_name(std::int64_t lane) {
  constexpr const char* names[] = {"compute",   "tensor",           "data",          "copy",
                                   "send next", "receive previous", "send previous", "receive next",
                                   "replica",   "context",          "expert",        "expert data",
                                   "to host",   "from host",        "host"};
  static_assert(std::size(names) == workloads::num_lanes);
  const bool known = lane >= 0 && lane < std::ssize(names);
  return known ? names[lane] : fmt::format("lane {}", lane);
}

TimelineEvent described(const workloads::Kernel& kernel) {
  using workloads::KernelFamily;
  TimelineEvent e;
  e.name = kernel.name;
  e.bytes = kernel.bytes;
  e.family = kernel.family;
  if (kernel.family == KernelFamily::gemm || kernel.family == KernelFamily::grouped_gemm)
    e.kind = "gemm";
  else if (workloads::mixes_forward(kernel.family))
    e.kind = "attention";
  else if (workloads::mixes_backward(kernel.family))
    e.kind = "attention_backward";
  else
    e.kind = elementwise_use(kernel).kind;
  return e;
}

TimelineEvent described(const workloads::Collective& collective) {
  TimelineEvent e;
  e.name = collective.name;
  e.kind = word_for(collective_names, collective.kind);
  e.group = workloads::axis_of(collective.group).name;
  e.bytes = collective.bytes;
  return e;
}

/// `times` knows rank, lane and times; `what` is the index-th of its kind.
template <class What>
void TimelineRecorder::add(const What& what, std::uint64_t index, TimelineEvent times) {
  if (timeline_.sums) {
    constexpr bool collective = std::is_same_v<What, workloads::Collective>;
    const auto rank = static_cast<std::size_t>(times.rank);
    if (sums_.size() <= rank) sums_.resize(rank + 1);
    sums_[rank].resize(program_.kernels.size() + program_.collectives.size());
    std::size_t& place = sums_[rank][collective ? program_.kernels.size() + index : index];
    if (place > 0) {
      TimelineEvent& sum = timeline_.events[place - 1];
      sum.duration += times.duration;
      sum.waited += times.waited;
      ++sum.calls;
      return;
    }
    place = timeline_.events.size() + 1;
  }
  TimelineEvent& e = timeline_.events.emplace_back(described(what));
  e.rank = times.rank;
  e.lane = times.lane;
  e.start = times.start;
  e.duration = times.duration;
  e.waited = times.waited;
  e.hbm = times.hbm;
}

void TimelineRecorder::work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from,
                            Time to) {
  if (leaves_out(rank)) return;
  TimelineEvent times{rank, lane, "", ""};
  times.start = from.time_since_epoch();
  times.duration = to - from;
  if (work < hbm_.size()) times.hbm = hbm_[work];
  add(program_.kernels[work], work, std::move(times));
}

void TimelineRecorder::transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer,
                                Time arrived, Time started, Time ended) {
  if (leaves_out(rank)) return;
  TimelineEvent times{rank, lane, "", ""};
  times.start = arrived.time_since_epoch();
  times.duration = ended - arrived;
  times.waited = started - arrived;
  add(program_.collectives[transfer], transfer, std::move(times));
}

void settle(Timeline& timeline) {
  const auto key = [](const TimelineEvent& e) { return std::tuple(e.start, e.rank, e.lane); };
  std::ranges::stable_sort(timeline.events, {}, key);
  const Duration first = timeline.events.empty() ? Duration{} : timeline.events.front().start;
  for (TimelineEvent& e : timeline.events) e.start -= first;
}

}  // namespace stepcast::sim
