#include "sim/why/named_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/run/timeline.hpp"

namespace stepcast::sim {
namespace {

using engine::Instant;
using engine::LaneCall;
using engine::Op;
using engine::PathEdge;

/// Looks up what an instruction of the program is called.
class StepNames {
 public:
  StepNames(const LoggedStep& step, const KernelModel& kernels) : step_(step) {
    for (const workloads::Kernel& kernel : step.bound().program.kernels)
      origins_.push_back(kernels.time_of(kernel).provenance);
  }

  NamedEdge edge(const PathEdge& edge) const {
    NamedEdge out;
    out.edge = edge;
    out.rank = step_.rank(edge.call.rank);
    out.stage = stage_of(edge.call);
    out.lane = lane_name(edge.call.lane);
    if (edge.kind == PathEdge::Kind::host) {
      out.what = "host";
      out.lane = "host";
      out.name = edge.launches ? name_of(edge.call) : "until it waits";
    } else {
      out.what = what_of(edge.call);
      out.name = name_of(edge.call);
      out.provenance = provenance_of(edge.call);
    }
    out.after = after(edge);
    return out;
  }

  NamedTie tie(const engine::NearTie& near) const {
    const LaneCall& call = near.other.call;
    NamedTie out;
    out.rank = step_.rank(call.rank);
    out.stage = stage_of(call);
    out.slack = near.slack;
    if (near.other.kind == Instant::Kind::launched || near.other.kind == Instant::Kind::host_done) {
      out.what = "host";
      out.lane = "host";
      out.name = near.other.kind == Instant::Kind::launched ? name_of(call) : "until it waits";
      return out;
    }
    const LaneCall last = last_edge(near.other);
    if (!step_.log().in_run(last)) return out;
    out.what = what_of(last);
    out.name = name_of(last);
    out.lane = lane_name(last.lane);
    return out;
  }

  bool of_model(const NamedEdge& edge) const {
    if (edge.edge.kind != PathEdge::Kind::kernel) return false;
    const auto family = step_.bound().program.kernels[index(edge.edge.call)].family;
    return family != workloads::KernelFamily::optimizer && family != workloads::KernelFamily::copy;
  }

 private:
  std::int64_t stage_of(const LaneCall& call) const {
    return step_.system().role_of_rank[call.rank];
  }
  std::uint32_t index(const LaneCall& call) const { return step_.log().call(call).what.arg; }
  Op op(const LaneCall& call) const { return step_.log().call(call).what.op; }

  TimelineEvent event(const LaneCall& call) const {
    const workloads::StepProgram& program = step_.bound().program;
    if (op(call) == Op::work) return described(program.kernels[index(call)]);
    if (op(call) == Op::join) return described(program.collectives[index(call)]);
    return {};  // an event
  }
  /// Empty for a record or a wait.
  std::string name_of(const LaneCall& call) const { return event(call).name; }
  std::string what_of(const LaneCall& call) const {
    const TimelineEvent e = event(call);
    return e.is_collective() ? e.group + " " + e.kind : e.kind;
  }

  Provenance provenance_of(const LaneCall& call) const {
    if (op(call) == Op::work) return origins_[index(call)];
    const workloads::Collective& c = step_.bound().program.collectives[index(call)];
    const std::uint32_t communicator = step_.log().communicator_of(call);
    const std::uint32_t pattern = step_.system().communicators[communicator].pattern;
    const auto [at, fresh] = network_.try_emplace({index(call), pattern});
    if (fresh)
      at->second =
          step_.bound()
              .network->model
              ->time_of(c.kind, c.bytes, c.dtype, step_.bound().step.layout->shapes()[pattern])
              .provenance;
    return at->second;
  }

  /// The last kernel or transfer of the lane that ends at the instant.
  LaneCall last_edge(const Instant& instant) const {
    LaneCall call = instant.call;
    if (instant.kind == Instant::Kind::ready) --call.number;
    while (step_.log().in_run(call) && op(call) != Op::work && op(call) != Op::join) --call.number;
    return call;
  }

  std::string after(const PathEdge& edge) const {
    const Instant& i = edge.after;
    if (i.kind == Instant::Kind::begin) return "begin";
    if (edge.kind == PathEdge::Kind::host) return "host";
    if (i.call.rank != edge.call.rank)
      return fmt::format("rank {} {}", step_.rank(i.call.rank), lane_name(i.call.lane));
    return step_.log().launch(edge.call) == edge.from ? "launch" : "lane";
  }

  const LoggedStep& step_;
  std::vector<Provenance> origins_;  // by kernel
  mutable std::map<std::pair<std::uint32_t, std::uint32_t>, Provenance> network_;
};

/// The stage on which the path computes longest.
std::int64_t busiest_stage(const NamedPath& path, const StepNames& names) {
  std::map<std::int64_t, Duration> time;
  for (const NamedEdge& e : path.edges)
    if (names.of_model(e)) time[e.stage] += e.edge.length();
  if (time.empty()) return 0;
  return std::ranges::max_element(time, {}, [](const auto& t) { return t.second; })->first;
}

void find_phases(NamedPath& path, const StepNames& names) {
  const std::int64_t busiest = busiest_stage(path, names);
  std::ptrdiff_t begin = -1, first = -1, last = -1, end = -1;
  for (std::ptrdiff_t e = 0; e < std::ssize(path.edges); ++e) {
    const NamedEdge& edge = path.edges[static_cast<std::size_t>(e)];
    if (!names.of_model(edge)) continue;
    if (begin < 0) begin = e;
    end = e;
    if (edge.stage != busiest) continue;
    if (first < 0) first = e;
    last = e;
  }
  for (std::ptrdiff_t e = std::max<std::ptrdiff_t>(begin, 0); e <= end; ++e) {
    NamedEdge& edge = path.edges[static_cast<std::size_t>(e)];
    edge.phase = e < first ? Phase::fill : e > last ? Phase::drain : Phase::steady;
    if (edge.phase == Phase::fill) path.fill += edge.edge.length();
    if (edge.phase == Phase::drain) path.drain += edge.edge.length();
  }
}

void add_parts(NamedPath& path) {
  std::map<std::pair<std::int64_t, std::string>, PathPart> parts;
  const auto add = [&](const NamedEdge& e, const std::string& what, Duration time) {
    PathPart& part = parts[{e.stage, what}];
    part.what = what;
    part.stage = e.stage;
    part.time += time;
    ++part.edges;
  };
  for (const NamedEdge& e : path.edges) {
    add(e, e.what, e.edge.length() - e.edge.extra);
    if (e.edge.extra == Duration{}) continue;
    const bool kernel = e.edge.kind == PathEdge::Kind::kernel;
    add(e, e.what + (kernel ? ", slowed by communication" : ", sharing links"), e.edge.extra);
  }
  for (auto& [key, part] : parts) path.parts.push_back(std::move(part));
  std::ranges::stable_sort(path.parts, std::greater{}, &PathPart::time);
}

void add_ties(NamedPath& path, const engine::CriticalPath& found, const StepNames& names) {
  std::map<std::tuple<std::int64_t, std::string, std::string>, std::size_t> known;
  for (const engine::NearTie& near : found.near) {
    if (near.other.kind == Instant::Kind::begin) continue;
    NamedTie tie = names.tie(near);
    if (tie.what.empty()) continue;  // nothing but the step's begin
    const auto [at, fresh] = known.try_emplace({tie.stage, tie.what, tie.lane}, path.next.size());
    if (fresh)
      path.next.push_back(std::move(tie));
    else
      ++path.next[at->second].places;
  }
}

}  // namespace

NamedPath named_path(const LoggedStep& step, const KernelModel& kernels, double near) {
  const Duration length = step.result().step;
  const engine::CriticalPath found =
      engine::critical_path(step.log(), length, to_duration(seconds(length) * near));
  const StepNames names(step, kernels);
  NamedPath path;
  path.ends = found.ends;
  path.ties = found.ties;
  path.length = length;
  std::set<std::int64_t> ranks;
  for (const PathEdge& edge : found.edges) {
    path.edges.push_back(names.edge(edge));
    ranks.insert(path.edges.back().rank);
  }
  path.ranks = std::ssize(ranks);
  find_phases(path, names);
  add_parts(path);
  add_ties(path, found, names);
  return path;
}

}  // namespace stepcast::sim
