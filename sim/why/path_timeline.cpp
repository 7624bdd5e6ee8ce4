#include "sim/why/path_timeline.hpp"

#include <algorithm>
#include <tuple>

#include "sim/run/recorded_ranks.hpp"

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
  if (kernel)
    e.hbm = step.bound().step.hbm[what.arg];
  else
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

/// Ranks to show, each with the one that was simulated for it.
std::map<std::int64_t, std::int64_t> shown_of(const LoggedStep& step, const NamedPath& path,
                                              const RankChoice& asked) {
  using Kind = RankChoice::Kind;
  std::map<std::int64_t, std::int64_t> out;
  const std::vector<std::uint32_t>& simulated = step.fold().representative;
  check_ranks(asked, static_cast<std::uint32_t>(simulated.size()));
  std::vector<bool> known(step.classes().num_ranks);
  for (std::size_t r = 0; r < simulated.size(); ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    const std::uint32_t alike = step.classes().ranks[r];
    const bool wanted = asked.kind == Kind::all ||
                        (asked.kind == Kind::representatives && !known[alike]) ||
                        (asked.kind == Kind::simulated && step.rank(simulated[r]) == rank) ||
                        std::ranges::binary_search(asked.ranks, rank);
    known[alike] = true;
    if (wanted) out[rank] = step.rank(simulated[r]);
  }
  for (const NamedEdge& edge : path.edges) out[edge.rank] = edge.rank;
  return out;
}

}  // namespace

Timeline path_timeline(const LoggedStep& step, const NamedPath& path, const RankChoice& asked) {
  const engine::StepLog& log = step.log();
  const Time begin = log.boundary(log.last_step() - 1).when;
  Timeline out{"simulated"};
  out.step = path.length;
  for (std::uint32_t rank = 0; rank < step.system().num_ranks(); ++rank) {
    out.ranks[step.rank(rank)] = step.fold().multiplicity[rank];
    for (std::uint8_t lane = 0; lane < log.calls_of(rank).lanes.size(); ++lane)
      add_lane(out, step, rank, lane, begin, begin + path.length);
  }
  const auto shown = shown_of(step, path, asked);
  if (shown != out.to_show()) out.shown = shown;
  out.receivers = receivers_among(shown, step.bound().step.system, step.classes().ranks);
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
