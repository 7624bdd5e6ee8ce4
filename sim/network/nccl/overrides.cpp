#include "sim/network/nccl/overrides.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/names.hpp"

namespace stepcast::sim {
namespace {

using topology::NcclGeneration;
using topology::NodeKind;
using workloads::CollectiveKind;

void limit(ChannelGraph& graph, std::int64_t least, std::int64_t most) {
  const std::int64_t planned = graph.ctas;
  graph.ctas = std::clamp(planned, std::min(least, most), most);
  if (graph.ctas >= planned) return;
  const double share = static_cast<double>(graph.ctas) / static_cast<double>(planned);
  graph.in_node = graph.in_node * share;
  graph.between_nodes = graph.between_nodes * share;
}

bool knows(const NcclTuning& tuning, const std::string& policy) {
  return std::find(tuning.cta_policies.begin(), tuning.cta_policies.end(), policy) !=
         tuning.cta_policies.end();
}

void warn_of_sharp(const NcclOverrides& overrides, std::int64_t nodes,
                   std::vector<std::string>& warnings) {
  const bool asked = overrides.collnet.value_or(false);
  if (asked && !overrides.fabric_has_sharp)
    warnings.push_back("NCCL_COLLNET_ENABLE=1 changes nothing: the fabric has no SHARP");
  if (!asked && overrides.fabric_has_sharp && nodes > 1)
    warnings.push_back(
        "cluster.fabric.sharp has no effect here: NCCL uses it only with NCCL_COLLNET_ENABLE=1");
}

void warn_of_policy(const NcclTuning& tuning, const NcclOverrides& overrides,
                    std::vector<std::string>& warnings) {
  const CtaPolicy policy = overrides.cta_policy;
  if (policy == CtaPolicy::usual) return;
  const std::string name = policy == CtaPolicy::zero ? "ZERO" : "EFFICIENCY";
  if (!knows(tuning, name))
    warnings.push_back("NCCL_CTA_POLICY=" + name + " changes nothing: this NCCL knows it since " +
                       (policy == CtaPolicy::zero ? "2.28.3" : "2.27"));
  else if (policy == CtaPolicy::zero)
    warnings.push_back(
        "NCCL_CTA_POLICY=ZERO: AllGather and AlltoAll inside a node are taken to be in symmetric "
        "windows (ncclCommWindowRegister)");
  else if (!overrides.registered_buffers)
    warnings.push_back(
        "NCCL_CTA_POLICY=EFFICIENCY changes nothing: buffers are not registered "
        "(registered_buffers = true in [nccl])");
}

/// Before 2.24 NCCL runs Ring where NCCL_ALGO leaves nothing.
void warn_of_fallback(const NcclTuning& tuning, const NcclOverrides& overrides,
                      std::vector<std::string>& warnings) {
  if (tuning.nothing_left_is_an_error) return;
  std::string kinds;
  for (const auto& [name, kind] : collective_names) {
    const auto k = choice_index(kind);
    if (!k || !overrides.algorithms[*k]) continue;
    const auto served = [&, kind = kind](Algorithm a) { return overrides.allows(kind, a); };
    if (std::none_of(tuning.serves[*k].begin(), tuning.serves[*k].end(), served))
      kinds += (kinds.empty() ? "" : ", ") + std::string(name);
  }
  if (!kinds.empty())
    warnings.push_back("NCCL_ALGO leaves nothing for " + kinds + ": NCCL before 2.24 runs Ring");
}

}  // namespace

bool NcclOverrides::allows(CollectiveKind kind, Algorithm wanted) const {
  if (algorithm && *algorithm != wanted) return false;
  const auto k = choice_index(kind);
  return !k || !algorithms[*k] || algorithms[*k]->test(index_of(wanted));
}

bool NcclOverrides::allows(CollectiveKind kind, Protocol wanted) const {
  if (protocol && *protocol != wanted) return false;
  const auto k = choice_index(kind);
  return !k || !protocols[*k] || protocols[*k]->test(index_of(wanted));
}

bool NcclOverrides::names_protocols(CollectiveKind kind) const {
  const auto k = choice_index(kind);
  return protocol || (k && protocols[*k]);
}

bool NcclOverrides::forces_ll128(CollectiveKind kind) const {
  const auto k = choice_index(kind);
  return k && protocols[*k] && protocols[*k]->test(index_of(Protocol::ll128));
}

bool NcclOverrides::pins_anything() const {
  NcclOverrides nothing;
  nothing.fabric_has_sharp = fabric_has_sharp;
  nothing.where = where;
  return *this != nothing;
}

NcclMachine planned_machine(const topology::NodeSpec& node, const GroupShape& shape,
                            const NcclOverrides& overrides) {
  std::optional<topology::NodeSpec> apart;
  if (!overrides.peer_to_peer && node.trays() > 1)
    throw InputError(overrides.where, "NCCL_P2P_DISABLE on a rack of trays is not modelled",
                     "only NVLink joins the trays of a rack");
  if (!overrides.peer_to_peer) {  // peers meet in the host's memory
    apart = node;
    apart->kind = NodeKind::pcie;
    apart->gpu.nvlink_links = 0;
  }
  NcclMachine machine = nccl_machine(apart ? *apart : node, shape);
  if (!overrides.nvls.value_or(true)) machine.nvls.reset();
  machine.sharp =
      shape.nodes > 1 && overrides.fabric_has_sharp && overrides.collnet.value_or(false);
  return machine;
}

NcclMachine limited_machine(NcclMachine machine, const NcclTuning& tuning,
                            const NcclOverrides& overrides) {
  if (machine.node.gpu.architecture.nccl == NcclGeneration::blackwell) {
    machine.ring.ctas = std::min(machine.ring.ctas, tuning.blackwell_most_ctas);
    machine.tree.ctas = std::min(machine.tree.ctas, tuning.blackwell_most_ctas);
    if (machine.nvls) machine.nvls->ctas = std::min(machine.nvls->ctas, tuning.blackwell_most_ctas);
  }
  const std::int64_t planned = machine.ring.ctas;
  limit(machine.ring, overrides.least_ctas, overrides.most_ctas);
  limit(machine.tree, overrides.least_ctas, overrides.most_ctas);
  if (machine.nvls) limit(*machine.nvls, overrides.least_ctas, overrides.most_ctas);
  // Every channel has its share of the NICs and of the wires in the node.
  const double share =
      std::min(1.0, static_cast<double>(machine.ring.ctas) / static_cast<double>(planned));
  machine.nic_bandwidth = machine.nic_bandwidth * share;
  machine.own_nics = machine.own_nics * share;
  machine.in_node_bus = machine.in_node_bus * share;
  return machine;
}

bool runs_on_copy_engines(const NcclTuning& tuning, const NcclMachine& machine, CollectiveKind kind,
                          const NcclOverrides& overrides) {
  return overrides.cta_policy == CtaPolicy::zero && knows(tuning, "ZERO") &&
         machine.shape.nodes == 1 && machine.node.kind == NodeKind::nvswitch &&
         (kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all);
}

std::vector<std::string> nccl_warnings(const NcclTuning& tuning, const topology::NodeSpec& node,
                                       std::int64_t nodes, const NcclOverrides& overrides) {
  std::vector<std::string> warnings;
  if (nccl_before(tuning.version, node.gpu.nccl_since))
    warnings.push_back("NCCL " + tuning.version + " does not know " + node.gpu.name +
                       ": it needs " + node.gpu.nccl_since + " or later");
  warn_of_sharp(overrides, nodes, warnings);
  warn_of_policy(tuning, overrides, warnings);
  warn_of_fallback(tuning, overrides, warnings);
  if (overrides.nvls.value_or(false) &&
      !planned_machine(node, {node.gpus, 1, node.gpus, 1}, {}).nvls)
    warnings.push_back("NCCL_NVLS_ENABLE=1 changes nothing: the node has no NVLink SHARP");
  if (overrides.pat.value_or(false) && tuning.pat == 0)
    warnings.push_back("NCCL_PAT_ENABLE=1 changes nothing: NCCL has PAT since 2.23");
  return warnings;
}

}  // namespace stepcast::sim
