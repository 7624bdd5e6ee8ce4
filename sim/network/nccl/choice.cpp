#include "sim/network/nccl/choice.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/names.hpp"

namespace stepcast::sim {
namespace {

using topology::NcclGeneration;
using topology::NodeKind;
using workloads::CollectiveKind;

/// NVLink SHARP sums integers of 32 and 64 bits, fp16, bf16, fp32 and fp64 (ncclNvlsSupported in
/// NCCL's src/include/device.h, read 2026-11 in a copy without its tag), the SHARP plug-in of the
/// network no fp8 either (nccl-rdma-sharp-plugins, src/sharp_plugin.c; recalled, 2026).
bool switches_sum(const NcclCall& call) { return !call.sums_fp8(); }

/// Every member of a node needs a NIC of its own when switches of the network gather.
bool head_for_every_member(const NcclMachine& machine) {
  return machine.shape.ranks_per_node <= network_heads(machine);
}

/// LL128 stores 128 bytes at once and needs a path that keeps them together: NVLink inside, the NIC
/// under the GPU's own PCIe switch between nodes.
bool keeps_128_bytes_together(const NcclTuning& tuning, const NcclMachine& machine) {
  const NcclGeneration generation = machine.node.gpu.architecture.nccl;
  if (generation == NcclGeneration::hopper && !tuning.ll128_on_hopper) return false;
  if (generation == NcclGeneration::blackwell && !tuning.ll128_on_blackwell) return false;
  return machine.nvlink && (machine.shape.nodes == 1 || machine.node.gpu_direct);
}

bool nvls_serves(const NcclTuning& tuning, const NcclMachine& machine, const NcclCall& call) {
  if (!machine.nvls || machine.nvls->channels < 2 || !switches_sum(call)) return false;
  if (machine.shape.nodes == 1) return true;
  if (!machine.sharp) return false;
  return !call.is_gather() || (tuning.nvls_gather_network > 0 && head_for_every_member(machine));
}

bool available(const NcclTuning& tuning, const NcclMachine& machine, const NcclCall& call,
               Algorithm algorithm) {
  if (!tuning.serves_kind(call.kind, algorithm)) return false;
  const bool several_nodes = machine.shape.nodes > 1;
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::tree:
      return true;
    case Algorithm::nvls:
      return nvls_serves(tuning, machine, call);
    case Algorithm::nvls_tree:
      return machine.nvls && machine.nvls->channels >= 2 && several_nodes && switches_sum(call);
    case Algorithm::collnet_direct:  // its tree has seven children at most
      return machine.sharp && machine.node.kind == NodeKind::nvswitch &&
             machine.shape.ranks_per_node <= 8 && switches_sum(call) &&
             (!call.is_gather() || head_for_every_member(machine));
    case Algorithm::collnet_chain:
      return machine.sharp && switches_sum(call);
    case Algorithm::pat:
      return several_nodes && machine.shape.ranks_per_node == 1;
    case Algorithm::p2p:
    case Algorithm::copy_engine:
    case Algorithm::node_aware:
      return false;
  }
  throw BrokenPromise("an algorithm that nobody serves");
}

bool has_protocol(const NcclTuning& tuning, const NcclMachine& machine, const NcclCall& call,
                  Algorithm algorithm, Protocol protocol, const NcclOverrides& overrides) {
  if (algorithm != Algorithm::ring && algorithm != Algorithm::tree)
    return protocol == Protocol::simple;
  // A plugin that forbids LL and LL128 sets NCCL_PROTO, where the user has not.
  if (!machine.node.low_latency_protocols && !overrides.names_protocols(call.kind))
    return protocol == Protocol::simple;
  return protocol != Protocol::ll128 || overrides.forces_ll128(call.kind) ||
         keeps_128_bytes_together(tuning, machine);
}

template <class Allows>
std::vector<NcclOption> options_where(const NcclTuning& tuning, const NcclMachine& machine,
                                      const NcclCall& call, const NcclOverrides& overrides,
                                      Allows allows) {
  std::vector<NcclOption> options;
  for (std::size_t a = 0; a < num_algorithms; ++a) {
    const Algorithm algorithm = algorithm_names[a].second;
    if (!allows(algorithm) || !available(tuning, machine, call, algorithm)) continue;
    for (const auto& [name, protocol] : protocol_names)
      if (overrides.allows(call.kind, protocol) &&
          has_protocol(tuning, machine, call, algorithm, protocol, overrides))
        options.push_back(nccl_option(tuning, machine, call, algorithm, protocol));
  }
  return options;
}

/// What NCCL before 2.24 runs when NCCL_ALGO leaves nothing.
bool falls_back_to(const NcclCall& call, Algorithm algorithm, const NcclOverrides& overrides) {
  if (algorithm == Algorithm::ring) return true;
  const auto asked = [&](Algorithm a) { return overrides.allows(call.kind, a); };
  const bool only_collnet = !asked(Algorithm::ring) && !asked(Algorithm::tree) &&
                            !asked(Algorithm::nvls) && !asked(Algorithm::nvls_tree);
  return algorithm == Algorithm::tree && only_collnet;
}

/// Multi-node NVLink, for which the policy EFFICIENCY registers nothing (src/enqueue.cc, 2.30, read
/// 2026).
bool over_trays(const NcclMachine& machine) {
  const std::int64_t in_tray = machine.node.gpus_per_tray;
  return in_tray > 0 && machine.shape.ranks_per_node > in_tray;
}

/// With CTAs to be spared and buffers registered, gathers go to NVLS where it needs no more than
/// the fastest way does.
const NcclOption* spares_ctas(const NcclTuning& tuning, const NcclMachine& machine,
                              const NcclCall& call, const NcclOverrides& overrides,
                              const std::vector<NcclOption>& options, const NcclOption& best) {
  const bool known = tuning.cta_policies.size() > 1;
  if (!known || overrides.cta_policy != CtaPolicy::efficiency || !overrides.registered_buffers ||
      !call.is_gather() || over_trays(machine))
    return nullptr;
  const auto channels = [&](const NcclOption& o) {
    return nccl_channels(tuning, machine, call, o.algorithm, o.protocol, overrides);
  };
  for (const NcclOption& option : options)
    if (option.algorithm == Algorithm::nvls && channels(option) <= channels(best)) return &option;
  return nullptr;
}

/// CTAs that NVLS takes with registered buffers: enough for the heads of the node to keep the
/// switch busy. Factors of nvls.cc at 2.28.9 (4-6 a node of 8 Hopper GPUs).
std::int64_t registered_nvls_ctas(const NcclMachine& machine, const NcclCall& call) {
  const bool blackwell = machine.node.gpu.architecture.nccl >= NcclGeneration::blackwell;
  std::int64_t factor = 6;
  if (machine.shape.nodes > 1)
    factor = blackwell && call.is_reduction() ? 7 : 6;
  else if (call.kind == CollectiveKind::reduce_scatter)
    factor = blackwell ? 6 : 5;
  else if (call.kind == CollectiveKind::all_gather)
    factor = 4;
  else
    factor = blackwell ? 8 : 4;
  const std::int64_t heads = machine.nvls->channels;
  return std::min(machine.nvls->ctas, ceil_div(factor * 8, heads));
}

/// enqueue.cc: bytes that are worth one more channel, threads times bytes per thread.
std::int64_t bytes_per_channel(const NcclMachine& machine, Algorithm algorithm, Protocol protocol) {
  if (protocol == Protocol::ll128) return 640 * 8;
  if (protocol == Protocol::ll)
    return 512 * 8 * (algorithm == Algorithm::ring ? machine.shape.ranks : 1);
  if (algorithm == Algorithm::collnet_chain) return 640 * 512;
  if (algorithm == Algorithm::pat) return 640 * 64;
  constexpr double pcie_bus = 12e9;  // rings as slow as that get by with half the threads
  const bool slow = machine.ring.bus_in_node().value <= pcie_bus;
  return (algorithm == Algorithm::ring && slow ? 256 : 512) * 64;
}

/// CollNetDirect gives channels up in steps, each with half the bytes asked for.
std::int64_t collnet_direct_channels(const NcclMachine& machine, Bytes bytes) {
  std::int64_t channels = machine.ring.ctas;
  std::int64_t threshold = 512;
  const std::int64_t heads = std::max<std::int64_t>(1, network_heads(machine));
  for (std::int64_t step = 16; step >= 1; step /= 2)
    while (bytes.value < channels * 640 * heads * threshold) {
      if (channels <= step) break;
      if (channels == step + step / 2) threshold /= 2;
      --channels;
    }
  return channels;
}

/// Bytes that one member sends or sums, by which a launch spreads the call over channels.
std::int64_t traffic_of(const NcclCall& call) {
  return call.kind == CollectiveKind::all_reduce ? 2 * call.bytes.value : call.bytes.value;
}

}  // namespace

std::vector<NcclOption> nccl_options(const NcclTuning& tuning, const NcclMachine& machine,
                                     const NcclCall& call, const NcclOverrides& overrides) {
  expects(machine.shape.ranks > 1, "a collective of one rank moves nothing");
  std::vector<NcclOption> options =
      options_where(tuning, machine, call, overrides, [&](Algorithm a) {
        if (a == Algorithm::pat && !overrides.pat.value_or(true)) return false;
        return overrides.allows(call.kind, a);
      });
  if (!options.empty() || tuning.nothing_left_is_an_error) return options;
  return options_where(tuning, machine, call, overrides,
                       [&](Algorithm a) { return falls_back_to(call, a, overrides); });
}

void check_type(const NcclTuning& tuning, const topology::GpuSpec& gpu, const NcclCall& call) {
  if (!call.sums_fp8()) return;
  const std::string where = "collective.dtype";  // no step sums fp8
  const std::string what = word_for(collective_names, call.kind) + " of fp8: ";
  if (!tuning.fp8_sums)
    throw InputError(where,
                     what + "NCCL has sums of fp8 since 2.24, and PyTorch refuses them before",
                     "take bf16, or nccl = \"2.24\" or newer");
  if (gpu.architecture.nccl < NcclGeneration::hopper)
    throw InputError(where, what + "NCCL sums fp8 on Hopper and later, not on " + gpu.name,
                     "take bf16");
}

NcclOption nccl_choice(const NcclTuning& tuning, const NcclMachine& machine, const NcclCall& call,
                       const NcclOverrides& overrides) {
  check_type(tuning, machine.node.gpu, call);
  const std::vector<NcclOption> options = nccl_options(tuning, machine, call, overrides);
  if (options.empty()) {
    expects(overrides.pins_anything(), "an algorithm for every collective that NCCL chooses for");
    throw InputError(overrides.where,
                     "NCCL_ALGO and NCCL_PROTO leave no algorithm for " +
                         word_for(collective_names, call.kind) + ": NCCL " + tuning.version +
                         " stops with invalid usage",
                     "limit them to a function: NCCL_ALGO = \"allreduce:tree\"");
  }
  const NcclOption* best = &options.front();
  for (const NcclOption& option : options)
    if (option.weighed() < best->weighed()) best = &option;
  if (const NcclOption* spared = spares_ctas(tuning, machine, call, overrides, options, *best))
    best = spared;
  return *best;
}

std::int64_t nccl_channels(const NcclTuning& tuning, const NcclMachine& machine,
                           const NcclCall& call, Algorithm algorithm, Protocol protocol,
                           const NcclOverrides& overrides) {
  if (algorithm == Algorithm::nvls_tree) return machine.nvls->ctas;
  if (algorithm == Algorithm::nvls) {
    if (overrides.registered_buffers) return registered_nvls_ctas(machine, call);
    return machine.shape.nodes == 1 ? machine.nvls->ctas
                                    : std::min(machine.nvls->ctas, machine.ring.ctas);
  }
  if (algorithm == Algorithm::collnet_direct) return collnet_direct_channels(machine, call.bytes);
  const std::int64_t worth = bytes_per_channel(machine, algorithm, protocol);
  std::int64_t channels = std::clamp<std::int64_t>(call.bytes.value / worth, 1, machine.ring.ctas);
  const std::int64_t least = tuning.least_traffic_per_channel.value;
  if (least > 0)
    channels = std::clamp<std::int64_t>(ceil_div(traffic_of(call), least), 1, channels);
  return channels;
}

}  // namespace stepcast::sim
