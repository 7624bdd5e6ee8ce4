#include "sim/chakra/rank_trace.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/names.hpp"

namespace stepcast::sim {
namespace {

using engine::Op;
using workloads::CollectiveKind;
using workloads::Meeting;

// Lanes of a ring's second half, apart from those that are.
constexpr int ring_lane = 16;

EtCollective et_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return EtCollective::all_reduce;
    case CollectiveKind::all_gather:
      return EtCollective::all_gather;
    case CollectiveKind::reduce_scatter:
      return EtCollective::reduce_scatter;
    case CollectiveKind::broadcast:
      return EtCollective::broadcast;
    case CollectiveKind::reduce:
      return EtCollective::reduce;
    case CollectiveKind::all_to_all:
      return EtCollective::all_to_all;
    case CollectiveKind::send_receive:
      break;
  }
  throw BrokenPromise("a collective of all members");
}

/// Whole microseconds; what is cut off or added is carried on.
std::int64_t rounded(Duration time, Duration& rest) {
  rest += time;
  const std::int64_t whole = std::max<std::int64_t>(0, (rest + et_time / 2) / et_time);
  rest -= whole * et_time;
  return whole;
}

}  // namespace

RankTrace::RankTrace(const BoundStep& bound, const NumberedGroups& groups, std::int64_t rank,
                     const std::vector<const TimelineEvent*>& events,
                     std::function<void(const EtNode&)> write)
    : bound_(bound), groups_(groups), rank_(rank), write_(std::move(write)) {
  lanes_.resize(workloads::num_lanes);
  for (const TimelineEvent* e : events)
    lanes_.at(static_cast<std::size_t>(e->lane)).events.push_back(e);
}

void RankTrace::write() {
  const engine::System& s = bound_.step.system;
  const engine::Program& program =
      bound_.program.roles[s.role_of_rank[static_cast<std::size_t>(rank_)]];
  events_.resize(program.num_events);
  for (const engine::Instruction& i : program.instructions) call(i);
  launch(host_cost_);  // what it waits for before the next step
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (!lanes_[lane].awaited.empty()) end_of_step(lane);
  for (const LaneState& lane : lanes_)
    ensures(lane.next_event == lane.events.size(), "a node for every event");
}

void RankTrace::call(const engine::Instruction& i) {
  host_cost_ += bound_.step.system.host_costs[i.host_cost];
  LaneState& lane = lanes_[i.lane];
  switch (i.op) {
    case Op::work:
      return kernel(i);
    case Op::join:
      return join(i);
    case Op::record:
      events_[i.arg] = lane.awaited;
      if (lane.last > 0) events_[i.arg].push_back(lane.last);
      return;
    case Op::wait:
      lane.awaited.insert(lane.awaited.end(), events_[i.arg].begin(), events_[i.arg].end());
      return;
    case Op::host_wait:
      launch(host_cost_);
      host_.awaited.insert(host_.awaited.end(), events_[i.arg].begin(), events_[i.arg].end());
      return;
    case Op::host_work:
    case Op::mark:
      return;
  }
}

/// What a lane waits for before the next step, as a node that takes no time.
void RankTrace::end_of_step(std::size_t lane) {
  EtNode node;
  node.id = next_id_++;
  node.name = "end of step";
  node.type = EtType::compute;
  node.num_ops = node.tensor_size = 1;
  node.stream = std::to_string(lane);
  node.data_deps = deps_of(lanes_[lane]);
  ended(lanes_[lane], std::move(node));
}

/// The host's calls since the last node as one, where they come to a microsecond.
void RankTrace::launch(Duration cost) {
  host_cost_ = {};
  const std::int64_t whole = rounded(cost, host_.rest);
  if (whole == 0 && host_.awaited.empty()) return;
  EtNode node;
  node.id = next_id_++;
  node.name = "host";
  node.type = EtType::compute;
  node.is_cpu_op = true;
  node.duration_us = whole;
  node.num_ops = node.tensor_size = 1;
  node.data_deps = deps_of(host_);
  ended(host_, std::move(node));
}

RankTrace::Ids RankTrace::deps_of(LaneState& lane) {
  Ids out = std::move(lane.awaited);
  lane.awaited.clear();
  if (lane.last > 0) out.push_back(lane.last);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void RankTrace::ended(LaneState& lane, EtNode node) {
  lane.last = node.id;
  write_(node);
}

/// A node of the lane's next event, its dependencies and times filled in.
EtNode RankTrace::begun(const engine::Instruction& i, const std::string& name, EtType type) {
  launch(host_cost_);
  LaneState& lane = lanes_[i.lane];
  ensures(lane.next_event < lane.events.size() && lane.events[lane.next_event]->name == name,
          "the run's events are the program's");
  const TimelineEvent& e = *lane.events[lane.next_event++];
  EtNode node;
  node.name = name;
  node.type = type;
  if (host_.last > 0) lane.awaited.push_back(host_.last);
  node.data_deps = deps_of(lane);
  node.id = next_id_++;
  node.start_us = e.start / et_time;
  node.duration_us = rounded(e.duration - e.waited, lane.rest);
  node.stream = std::to_string(i.lane);
  return node;
}

void RankTrace::kernel(const engine::Instruction& i) {
  const workloads::Kernel& what = bound_.program.kernels[i.arg];
  EtNode node = begun(i, what.name, EtType::compute);
  node.num_ops = std::max<std::int64_t>(1, static_cast<std::int64_t>(what.flops.value));
  node.tensor_size = std::max<std::int64_t>(1, what.bytes.value);
  ended(lanes_[i.lane], std::move(node));
}

std::uint32_t RankTrace::communicator_of(const engine::Instruction& i) const {
  return bound_.step.system.communicator_of[i.communicator][static_cast<std::size_t>(rank_)];
}

void RankTrace::join(const engine::Instruction& i) {
  const workloads::Collective& what = bound_.program.collectives[i.arg];
  const std::uint32_t c = communicator_of(i);
  const engine::Communicator& group = bound_.step.system.communicators[c];
  EtNode node = begun(i, what.name, EtType::collective);
  const auto members = std::ssize(group.members);
  const Meeting meeting = workloads::axis_of(what.group).meeting;
  if (members < 2) {  // over at once
    lanes_[i.lane].awaited = node.data_deps;
    --next_id_;
    return;
  }
  node.dtype = word_for(dtype_names, what.dtype);
  if (meeting == Meeting::ring) return ring(what, i, c, std::move(node));
  if (meeting == Meeting::pair) {
    node.pair = std::to_string(groups_.number[c]);
    const bool sends = i.communicator == workloads::slot_of(what.group, false);
    return message(what, i, sends, group, std::move(node));
  }
  node.pg_name = std::to_string(groups_.number[c]);
  node.comm_type = static_cast<std::int64_t>(et_kind(what.kind));
  const bool share = what.kind == CollectiveKind::all_gather;
  node.comm_size = share ? (what.bytes.value + members - 1) / members : what.bytes.value;
  ended(lanes_[i.lane], std::move(node));
}

void RankTrace::message(const workloads::Collective& what, const engine::Instruction& i, bool sends,
                        const engine::Communicator& pair, EtNode node) {
  node.type = sends ? EtType::send : EtType::receive;
  node.comm_src = pair.members.front();
  node.comm_dst = pair.members.back();
  node.comm_tag = static_cast<std::int64_t>(what.group);
  node.comm_size = what.bytes.value;
  ended(lanes_[i.lane], std::move(node));
}

/// To the next member, and from the one before: the lane goes on after both.
void RankTrace::ring(const workloads::Collective& what, const engine::Instruction& i,
                     std::uint32_t communicator, EtNode node) {
  const engine::Communicator& group = bound_.step.system.communicators[communicator];
  node.pair = std::to_string(groups_.number[communicator]);
  const auto at = std::ranges::find(group.members, static_cast<std::uint32_t>(rank_));
  const auto next = at + 1 == group.members.end() ? group.members.begin() : at + 1;
  const auto before = at == group.members.begin() ? group.members.end() - 1 : at - 1;
  EtNode receive = node;
  node.type = EtType::send;
  receive.type = EtType::receive;
  node.comm_src = receive.comm_dst = rank_;
  node.comm_dst = *next;
  receive.comm_src = *before;
  node.comm_tag = receive.comm_tag = static_cast<std::int64_t>(what.group);
  node.comm_size = receive.comm_size = what.bytes.value;
  receive.id = next_id_++;
  receive.stream = std::to_string(ring_lane + i.lane);
  ended(lanes_[i.lane], std::move(node));
  lanes_[i.lane].awaited.push_back(receive.id);
  write_(receive);
}

}  // namespace stepcast::sim
