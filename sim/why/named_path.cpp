#include "sim/why/named_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/path/shared_rates.hpp"
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
  StepNames(const LoggedStep& step, const KernelModel& kernels) : step_(step), rates_(step.log()) {
    for (const workloads::Kernel& kernel : step.bound().program.kernels)
      origins_.push_back(kernels.time_of(kernel).provenance);
    sort_groups();
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
    if (edge.extra == Duration{}) return out;
    if (edge.kind == PathEdge::Kind::kernel) out.beside = beside(edge.call);
    if (edge.kind == PathEdge::Kind::transfer) out.shared = shared(edge.call);
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
      at->second = step_.bound()
                       .network->model->time_of(c, step_.bound().step.layout->shapes()[pattern])
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

  /// What ran beside a kernel, by the classes of its states.
  std::string beside(const LaneCall& call) const {
    std::set<std::string> words;
    for (const engine::Beside& beside : step_.log().beside_of(call)) {
      std::uint32_t digits = beside.state;
      for (std::size_t c = 0; c < engine::num_classes; ++c, digits /= 3)
        if (digits % 3 > 0) words.insert(groups_[c].begin(), groups_[c].end());
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }

  /// What joins from other lanes than compute, by the class in which it interferes.
  void sort_groups() {
    const engine::System& system = step_.system();
    groups_[engine::side_work_class] = {"copies"};
    for (const engine::Program& role : system.roles)
      for (const engine::Instruction& i : role.instructions) {
        if (i.op != Op::join || i.lane == engine::compute_lane) continue;
        const auto group = step_.bound().program.collectives[i.arg].group;
        const std::size_t first = std::size_t{i.arg} * system.num_patterns;
        for (std::size_t t = first; t < first + system.num_patterns; ++t)
          if (system.transfers[t].bytes > 0)
            groups_[system.transfers[t].interference_class].insert(
                std::string(workloads::axis_of(group).name));
      }
  }

  /// The links that held a transfer back, each with the others on it.
  std::vector<SharedLink> shared(const LaneCall& call) const {
    const std::uint32_t c = step_.log().communicator_of(call);
    const engine::System& system = step_.system();
    const double alone = engine::rate_alone(step_.log().transfer_of(call).cap,
                                            system.communicators[c].loads, system.link_capacity)
                             .value;
    std::vector<SharedLink> out;
    for (const engine::RatePiece& piece : rates_.pieces(c, step_.log().turn_of(call))) {
      const double lost = 1 - piece.flows.front().rate.value / alone;
      const auto hold = rates_.hold(piece, 0);
      if (hold.empty() || lost <= 0) continue;
      std::set<std::string> rivals;
      for (const auto* flows : {&hold.front().frozen, &hold.front().others})
        for (const std::size_t f : *flows)
          if (f > 0) rivals.insert(what_of(join_of(piece.flows[f])));
      out.push_back({link_name(hold.front().link),
                     {rivals.begin(), rivals.end()},
                     to_duration(lost * seconds(piece.to - piece.from))});
    }
    return out;
  }

  LaneCall join_of(const engine::Flowing& flow) const {
    const std::uint32_t rank = step_.system().communicators[flow.communicator].members.front();
    return step_.log().join_of(rank, flow.communicator, flow.turn);
  }

  std::string link_name(std::uint32_t folded_link) const {
    const std::vector<std::uint32_t>& classes = step_.classes().links;
    std::size_t whole = folded_link;
    if (step_.scenario().run.fold)
      whole = static_cast<std::size_t>(std::ranges::find(classes, folded_link) - classes.begin());
    const topology::Cluster& cluster = step_.bound().network->cluster();
    const topology::Link& link = cluster.links()[step_.bound().step.links[whole]];
    return cluster.name_of(link.from) + " to " + cluster.name_of(link.to);
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
  const engine::SharedRates rates_;
  std::vector<Provenance> origins_;  // by kernel
  std::array<std::set<std::string>, engine::num_classes> groups_;
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
    add(e, e.what + (kernel ? ", slowed by " + e.beside : ", sharing links"), e.edge.extra);
  }
  for (auto& [key, part] : parts) path.parts.push_back(std::move(part));
  std::ranges::stable_sort(path.parts, std::greater{}, &PathPart::time);
}

void add_shared(NamedPath& path) {
  for (const NamedEdge& edge : path.edges)
    for (const SharedLink& link : edge.shared) {
      const auto at = std::ranges::find_if(path.shared, [&](const SharedLink& known) {
        return known.link == link.link && known.rivals == link.rivals;
      });
      if (at == path.shared.end())
        path.shared.push_back(link);
      else
        at->time += link.time;
    }
  std::ranges::stable_sort(path.shared, std::greater{}, &SharedLink::time);
}

void add_ties(NamedPath& path, const engine::CriticalPath& found, const StepNames& names) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const engine::NearTie& near : found.near) {
    if (near.other.kind == Instant::Kind::begin) continue;
    NamedTie tie = names.tie(near);
    if (tie.what.empty()) continue;  // nothing but the step's begin
    const auto [at, fresh] = known.try_emplace({tie.what, tie.lane}, path.next.size());
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
  add_shared(path);
  add_ties(path, found, names);
  return path;
}

}  // namespace stepcast::sim
