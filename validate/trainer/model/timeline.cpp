#include "validate/trainer/model/timeline.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using sim::Timeline;
using sim::TimelineEvent;
using workloads::GroupKind;

constexpr std::array<GroupKind, 10> group_kinds{GroupKind::tensor,
                                                GroupKind::data,
                                                GroupKind::shard,
                                                GroupKind::replica,
                                                GroupKind::world,
                                                GroupKind::pipeline_forward,
                                                GroupKind::pipeline_backward,
                                                GroupKind::embedding,
                                                GroupKind::expert,
                                                GroupKind::expert_data};

bool is_message(GroupKind kind) {
  return kind == GroupKind::pipeline_forward || kind == GroupKind::pipeline_backward;
}

bool sends(const TimelineEvent& e) {
  return e.lane == workloads::send_next_lane || e.lane == workloads::send_previous_lane;
}

/// Which of a kind's groups an event of this rank is of; a pair by the end that the rank is.
std::size_t group_index(const std::vector<std::vector<std::int64_t>>& groups, GroupKind kind,
                        const TimelineEvent& e) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto place = std::ranges::find(groups[g], e.rank);
    if (place == groups[g].end()) continue;
    if (!is_message(kind) || (place == groups[g].begin()) == sends(e)) return g;
  }
  throw BrokenPromise("a collective's rank is in one of its groups");
}

/// The events of one kind that are one collective: its group, and its number in the group.
using Instance = std::pair<std::size_t, std::size_t>;

void align_kind(Timeline& timeline, GroupKind kind,
                const std::vector<std::vector<std::int64_t>>& groups) {
  std::map<std::pair<std::int64_t, std::size_t>, std::size_t> met;  // rank, group: so far
  std::map<Instance, std::vector<TimelineEvent*>> instances;
  for (TimelineEvent& e : timeline.events) {
    if (e.group != workloads::axis_of(kind).name) continue;
    const std::size_t group = group_index(groups, kind, e);
    instances[{group, met[{e.rank, group}]++}].push_back(&e);
  }
  for (auto& [instance, members] : instances) {
    Duration last = members.front()->start;
    for (const TimelineEvent* e : members) last = std::max(last, e->start);
    for (TimelineEvent* e : members)
      if (!is_message(kind) || !sends(*e)) e->waited = std::min(last - e->start, e->duration);
  }
}

std::size_t traffic_of(const TimelineEvent& e) {
  for (const GroupKind kind : group_kinds)
    if (e.group == workloads::axis_of(kind).name)
      return static_cast<std::size_t>(workloads::axis_of(kind).traffic);
  throw BrokenPromise("a collective of a group that the trainer has");
}

/// Stretches of a rank's time that have been given to a part of its step.
class CoveredTime {
 public:
  /// What of [begin, end) was free until now.
  Duration cover(Duration begin, Duration end) {
    Duration free = end - begin;
    auto it = ends_.upper_bound(begin);
    if (it != ends_.begin() && std::prev(it)->second >= begin) --it;
    const Duration whole_begin = it == ends_.end() ? begin : std::min(begin, it->first);
    Duration whole_end = end;
    while (it != ends_.end() && it->first <= end) {
      free -= std::max(Duration{}, std::min(end, it->second) - std::max(begin, it->first));
      whole_end = std::max(whole_end, it->second);
      it = ends_.erase(it);
    }
    ends_[whole_begin] = whole_end;
    return free;
  }

 private:
  std::map<Duration, Duration> ends_;  // of disjoint stretches, by their begins
};

}  // namespace

std::vector<TimelineEvent> events_of(const std::vector<Operation>& operations, std::int64_t rank,
                                     Duration origin) {
  std::vector<TimelineEvent> events;
  for (const Operation& operation : operations) {
    TimelineEvent e =
        std::visit([](const auto& what) { return sim::described(what); }, operation.what);
    e.rank = rank;
    e.lane = operation.lane;
    e.start = origin + operation.start;
    e.duration = operation.end - operation.start;
    events.push_back(std::move(e));
  }
  return events;
}

void align_collectives(Timeline& timeline, const workloads::ParallelPlan& plan) {
  for (const GroupKind kind : group_kinds)
    align_kind(timeline, kind, workloads::groups(plan, kind));
}

StepParts parts_of(const Timeline& timeline) {
  StepParts parts;
  std::int64_t ranks = 0;
  for (const auto& [rank, alike] : timeline.ranks) ranks += alike;
  std::map<std::int64_t, CoveredTime> covered;  // by rank
  const auto add = [&](Duration& part, const TimelineEvent& e, Duration begin, Duration end) {
    part += covered[e.rank].cover(begin, end) * timeline.ranks.at(e.rank);
  };
  for (const TimelineEvent& e : timeline.events)
    if (!e.is_collective()) add(parts.compute, e, e.start, e.start + e.duration);
  for (const TimelineEvent& e : timeline.events)
    if (e.is_collective())
      add(parts.exposed[traffic_of(e)], e, e.start + e.waited, e.start + e.duration);
  for (const TimelineEvent& e : timeline.events)
    if (e.is_collective())
      add(e.group.starts_with("pipeline") ? parts.bubble : parts.wait, e, e.start,
          e.start + e.waited);
  if (ranks == 0) return parts;
  for (Duration* part : {&parts.compute, &parts.wait, &parts.bubble}) *part /= ranks;
  for (Duration& part : parts.exposed) part /= ranks;
  return parts;
}

std::vector<PartTime> times_by_name(const Timeline& timeline) {
  std::map<std::tuple<std::string, std::string, std::string>, PartTime> parts;
  double ranks = 0.0;
  for (const auto& [rank, alike] : timeline.ranks) ranks += static_cast<double>(alike);
  for (const TimelineEvent& e : timeline.events) {
    PartTime& part = parts[{e.name, e.kind, e.group}];
    const std::int64_t alike = timeline.ranks.at(e.rank);
    part.calls += static_cast<double>(alike) / ranks;
    part.time += (e.duration - e.waited) * alike;
  }
  std::vector<PartTime> out;
  for (auto& [key, part] : parts) {
    std::tie(part.name, part.kind, part.group) = key;
    part.time /= static_cast<std::int64_t>(ranks);
    out.push_back(std::move(part));
  }
  return out;
}

}  // namespace stepcast::validate
