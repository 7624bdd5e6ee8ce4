#include "validate/trainer/model/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using sim::Timeline;
using sim::TimelineEvent;
using workloads::GroupKind;

constexpr std::array<GroupKind, 8> group_kinds{GroupKind::tensor,
                                               GroupKind::data,
                                               GroupKind::shard,
                                               GroupKind::replica,
                                               GroupKind::world,
                                               GroupKind::pipeline_forward,
                                               GroupKind::pipeline_backward,
                                               GroupKind::embedding};

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
  if (e.group == workloads::axis_of(GroupKind::tensor).name) return 0;
  return e.group.starts_with("pipeline") ? 1 : 2;
}

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
  for (const TimelineEvent& e : timeline.events) {
    const std::int64_t alike = timeline.ranks.at(e.rank);
    const bool message = e.group.starts_with("pipeline");
    if (e.is_collective()) {
      parts.exposed[traffic_of(e)] += (e.duration - e.waited) * alike;
      (message ? parts.bubble : parts.wait) += e.waited * alike;
    } else {
      parts.compute += e.duration * alike;
    }
  }
  if (ranks == 0) return parts;
  for (Duration* part : {&parts.compute, &parts.exposed[0], &parts.exposed[1], &parts.exposed[2],
                         &parts.wait, &parts.bubble})
    *part /= ranks;
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
