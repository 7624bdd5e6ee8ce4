#include "sim/why/path_timeline.hpp"

#include <algorithm>
#include <tuple>

namespace stepcast::sim {
namespace {

using engine::LaneCall;
using engine::Op;

/// What the lane was at, from when it could begin.
TimelineEvent event_at(const LoggedStep& step, const LaneCall& call, Time begin) {
  const engine::StepLog& log = step.log();
  const engine::Instruction& what = log.call(call).what;
  const workloads::StepProgram& program = step.bound().program;
  const bool kernel = what.op == Op::work;
  TimelineEvent e =
      kernel ? described(program.kernels[what.arg]) : described(program.collectives[what.arg]);
  e.rank = step.rank(call.rank);
  e.lane = call.lane;
  e.start = log.ready(call) - begin;
  e.duration = log.clock(call) - log.ready(call);
  if (!kernel)
    e.waited = log.started(log.communicator_of(call), log.turn_of(call)) - log.ready(call);
  return e;
}

/// The calls of a lane that lie in the step, at least partly.
void add_lane(Timeline& out, const LoggedStep& step, std::uint32_t rank, std::uint8_t lane,
              Time begin, Time end) {
  const engine::StepLog& log = step.log();
  for (LaneCall call = log.first_after(rank, lane, begin); log.was_run(call); ++call.number) {
    const Op op = log.call(call).what.op;
    if (op != Op::work && op != Op::join) continue;
    if (log.ready(call) >= end) return;
    out.events.push_back(event_at(step, call, begin));
  }
}

}  // namespace

Timeline path_timeline(const LoggedStep& step, const NamedPath& path) {
  const engine::StepLog& log = step.log();
  const Time begin = log.boundary(log.last_step() - 1).when;
  Timeline out{"simulated"};
  out.step = path.length;
  for (std::uint32_t rank = 0; rank < step.system().num_ranks(); ++rank) {
    out.ranks[step.rank(rank)] = step.fold().multiplicity[rank];
    for (std::uint8_t lane = 0; lane < log.calls_of(rank).lanes.size(); ++lane)
      add_lane(out, step, rank, lane, begin, begin + path.length);
  }
  for (const NamedEdge& edge : path.edges) {
    TimelineEvent& e = out.path.emplace_back();
    e.rank = edge.rank;
    e.lane = edge.edge.kind == engine::PathEdge::Kind::host ? host_lane : edge.edge.call.lane;
    e.name = edge.name;
    e.kind = edge.what;
    e.start = edge.edge.from - begin;
    e.duration = edge.edge.length();
  }
  Duration first{};  // of what began before the step, less than zero
  for (const TimelineEvent& e : out.events) first = std::min(first, e.start);
  for (TimelineEvent& e : out.path) e.start -= first;
  for (TimelineEvent& e : out.events) e.start -= first;
  std::ranges::stable_sort(
      out.events, {}, [](const TimelineEvent& e) { return std::tuple(e.start, e.rank, e.lane); });
  return out;
}

}  // namespace stepcast::sim
