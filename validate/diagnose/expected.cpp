#include "validate/diagnose/expected.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/network/nccl/variables.hpp"
#include "sim/study/answer.hpp"
#include "validate/trace/simulated.hpp"
#include "validate/trace/timeline.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::validate {
namespace {

using workloads::GroupKind;

/// Names of groups as the timeline has them, and how many ranks meet in one.
std::map<std::string, std::int64_t> group_sizes(const workloads::ParallelPlan& plan) {
  std::map<std::string, std::int64_t> out;
  for (int k = 0; k < workloads::num_group_kinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    out[std::string(workloads::axis_of(kind).name)] = workloads::ranks_that_meet(plan, kind);
  }
  return out;
}

bool spans_nodes(const workloads::ParallelPlan& plan, GroupKind kind, std::int64_t per_node) {
  return std::ranges::any_of(workloads::groups(plan, kind), [&](const auto& group) {
    return group.front() / per_node != group.back() / per_node;
  });
}

std::vector<RankTrace> sized_traces(const sim::Timeline& timeline, const sim::Scenario& s) {
  std::vector<RankTrace> traces = traces_of(timeline, "the simulated step");
  const auto sizes = group_sizes(s.plan);
  for (RankTrace& trace : traces)
    for (CollectiveFacts& facts : trace.facts)
      if (const auto at = sizes.find(facts.group); at != sizes.end()) facts.group_size = at->second;
  return traces;
}

void add_parts(ExpectedStep& out, sim::Session& session) {
  sim::Scenario s = out.report.scenario;
  s.noise = {};
  sim::Timeline timeline;
  timeline.asked.kind = sim::RankChoice::Kind::all;
  session.timeline(s, timeline);
  std::vector<RankTrace> traces = sized_traces(timeline, s);
  std::map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < traces.size(); ++i) places[*traces[i].rank] = i;
  for (const auto& [rank, like] : timeline.to_show()) out.as[rank] = places.at(like);
  out.parts = parts_of(std::move(traces), 1);
}

void add_reach(ExpectedStep& out) {
  const sim::Scenario& s = out.report.scenario;
  std::map<std::int64_t, bool> spans;  // groups of that many ranks
  for (int k = 0; k < workloads::num_group_kinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    const std::int64_t ranks = workloads::ranks_that_meet(s.plan, kind);
    if (ranks > 1 && spans_nodes(s.plan, kind, s.node.gpus)) spans[ranks] = true;
  }
  for (const RankParts& rank : out.parts)
    for (const auto& [kind, tally] : rank.exchanges)
      if (spans.contains(kind.ranks)) out.between_nodes.insert(kind);
}

}  // namespace

const RankParts& ExpectedStep::of(std::int64_t rank) const {
  expects(!parts.empty(), "the parts of the expected step");
  const auto at = as.find(rank);
  return parts[at == as.end() ? 0 : at->second];
}

ExpectedStep expected_step(sim::Scenario scenario, sim::Session& session, bool parts) {
  ExpectedStep out;
  out.report = simulate_breakdown(std::move(scenario), session, false).report;
  if (!parts) return out;
  out.report.scenario.run.ignore_memory = true;
  add_parts(out, session);
  add_reach(out);
  return out;
}

std::optional<std::map<ExchangeKind, ExchangeTally>> exchanges_under(sim::Scenario s,
                                                                     sim::Session& session,
                                                                     const std::string& name,
                                                                     const std::string& value) {
  std::erase_if(s.nccl_variables, [&](const auto& variable) { return variable.name == name; });
  s.nccl_variables.push_back({name, value, "what if"});
  try {
    s.nccl_overrides = sim::nccl_overrides(s.nccl_variables);
    s.noise = {};
    sim::Timeline timeline;
    session.timeline(s, timeline);
    return parts_of(sized_traces(timeline, s), 1).front().exchanges;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace stepcast::validate
