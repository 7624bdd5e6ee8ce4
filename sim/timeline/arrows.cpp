#include "sim/timeline/arrows.hpp"

#include <algorithm>
#include <map>

namespace stepcast::sim {
namespace {

using workloads::GroupKind;

/// From an event on the path to the next one, where that is on another rank or lane.
void add_path(const Timeline& timeline, const std::map<std::int64_t, std::int64_t>& shown,
              std::vector<TimelineArrow>& out) {
  const TimelineEvent* before = nullptr;
  for (const TimelineEvent& e : timeline.path) {
    if (e.lane == host_lane || !shown.contains(e.rank)) continue;
    if (before != nullptr && (before->rank != e.rank || before->lane != e.lane))
      out.push_back({false, before->rank, before->lane,
                     before->start + before->duration - Duration(1), e.rank, e.lane, e.start});
    before = &e;
  }
}

/// The n-th that a rank sends on a lane is the n-th that its peer receives on the other one.
void add_messages(const Timeline& timeline, const std::map<std::int64_t, std::int64_t>& shown,
                  std::vector<TimelineArrow>& out) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const TimelineEvent*>> lanes;
  for (const TimelineEvent& e : timeline.events)
    if (e.is_collective()) lanes[{e.rank, e.lane}].push_back(&e);
  for (const auto& [sender, receiver] : timeline.receivers) {
    const auto& [rank, lane] = sender;
    const bool forward = lane == workloads::axis_of(GroupKind::pipeline_forward).lane;
    const std::int64_t to_lane =
        workloads::axis_of(forward ? GroupKind::pipeline_forward : GroupKind::pipeline_backward)
            .receiving_lane;
    const auto& sent = lanes[{shown.at(rank), lane}];
    const auto& received = lanes[{shown.at(receiver), to_lane}];
    for (std::size_t i = 0; i < std::min(sent.size(), received.size()); ++i)
      out.push_back({true, rank, lane, sent[i]->start + sent[i]->waited, receiver, to_lane,
                     received[i]->start + received[i]->duration});
  }
}

}  // namespace

std::vector<TimelineArrow> arrows_of(const Timeline& timeline) {
  std::vector<TimelineArrow> out;
  const auto shown = timeline.to_show();
  add_path(timeline, shown, out);
  add_messages(timeline, shown, out);
  return out;
}

}  // namespace stepcast::sim
