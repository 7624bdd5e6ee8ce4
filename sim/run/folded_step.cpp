#include "sim/run/folded_step.hpp"

#include <algorithm>
#include <map>

#include "sim/network/ablation.hpp"
#include "sim/run/column_fold.hpp"
#include "sim/run/column_links.hpp"
#include "sim/run/columns.hpp"
#include "sim/run/step_parts.hpp"
#include "topology/wires.hpp"

namespace stepcast::sim {

bool asks_for_the_whole(const Scenario& s) {
  const Noise& noise = s.noise;
  const bool differ =
      noise.kernel_sigma > 0.0 || noise.gpu_sigma > 0.0 || !noise.stragglers.empty();
  return !s.run.fold || s.run.check_fold || (differ && !s.run.without.jitter);
}

std::optional<FoldedStep> fold_from_the_start(const Scenario& s,
                                              const workloads::StepProgram& program,
                                              const Network& network, const KernelModel& kernels) {
  const topology::Cluster& cluster = network.cluster();
  if (!network.nccl || s.run.without.sharing || s.run.without.bandwidth ||
      !topology::in_order(cluster))
    return std::nullopt;
  const auto columns = columns_of(layout_key(s.plan, program), cluster);
  if (!columns) return std::nullopt;
  const AblatedNetwork ablated(*network.model, s.run.without);
  const EvenLoads even(cluster, network.router());
  const ColumnLinkFinder finder(*columns, cluster, network.wiring->router, ablated, even);

  bool known = true;
  std::map<Movement, double> units;
  const auto unit_of = [&](const Movement& movement) {
    const auto [at, added] = units.try_emplace(movement, 1.0);
    if (!added) return at->second;
    const auto unit = finder.unit_of(movement);
    known = known && unit.has_value();
    return at->second = unit.value_or(1.0);
  };
  StepTransfers transfers(program, GroupForms{columns->shapes, columns->of_kind, unit_of}, ablated);
  FoldedStep out;
  StepParts parts(s, program, kernels, transfers);
  const std::vector<StepTransfers::Flow> flows = transfers.count_by_flow(parts.calls());
  if (!known) return std::nullopt;
  std::vector<GroupFlow> of_group;
  const auto flow_of = [&](const auto& group) {
    for (const StepTransfers::Flow& flow : flows)
      if (flow.movement.group == group.kind && flow.movement.pattern == group.pattern)
        of_group.push_back({flow.movement, unit_of(flow.movement), flow.fastest});
  };
  for (const ColumnGroup& group : columns->within) flow_of(group);
  for (const SpanningGroup& group : columns->spanning) flow_of(group);
  const auto links = finder.find(of_group);
  if (!links) return std::nullopt;
  ColumnFold fold = fold_columns(*columns, *links, cluster);
  out.multiplicity = std::move(fold.multiplicity);
  out.step.system = std::move(fold.system);
  out.step.system.num_patterns =
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(columns->shapes.size()));
  out.step.system.transfers = transfers.transfers();
  parts.finish(out.step);
  return out;
}

}  // namespace stepcast::sim
