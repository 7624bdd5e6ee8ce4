// How long NCCL's work really takes, as far as a few physical constants can say: per GPU
// generation, per kind of network, and shared by all. Fitted on published measurements by
// `stepcast-calibrate fit-network`, which writes them with their residuals into
// scenarios/network/fitted.toml; sim/network/nccl/time.hpp says what each is for. NCCL's own
// constants, which only rank its algorithms, are sim/network/nccl/tuning.hpp.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "engine/units.hpp"
#include "sim/files/toml_value.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// Of one GPU generation. Shares are achieved over planned bandwidth (NCCL's plan:
/// sim/network/search/graph.hpp).
struct GenerationConstants {
  Duration start{};  // of a collective's kernel, beyond NCCL's base constant
  double ring_ll = 1.0, ring_ll128 = 1.0, ring_simple = 1.0;  // shares of the ring's bus in a node
  Duration ring_step{};      // a step of Ring, Simple, in a node: slices are awaited and announced
  double ring_drain = 0.0;   // steps for which the links idle at the end of each loop of a ring
  Duration p2p_start{};      // of a send and its receive in a node
  Duration p2p_ramp{};       // until a channel's slot is full (512 KiB)
  double p2p_nvlink = 1.0;   // share of NVLink's bandwidth
  double all_to_all = 1.0;   // share of NVLink's bandwidth
  Duration nvls_start{};     // NVLS and NVLSTree; 0 where there is no NVLink SHARP
  double nvls_reduce = 0.0;  // share of NVLink's bandwidth
  double nvls_tree = 0.0;    // the same where a tree joins NVLS domains
  double nvls_gather = 0.0;  // the same, AllGather and ReduceScatter
  double nvls_fill = 0.0;    // rounds of chunks until data flows
  Duration all_to_all_rank{};  // of each further member of an AlltoAll; 0: not measured
  double nvls_bus = 0.0;       // AllReduce: bus bandwidth over NVLink's at most; 0: no such bound
};

/// Of one kind of network, by GPU generation (the generation stands for its nodes' NICs and
/// software as well; Blackwell's is Hopper's).
struct TransportConstants {
  std::array<Duration, 3> hop{};      // beyond NCCL's own hop: Volta, Ampere, Hopper
  std::array<Duration, 3> message{};  // that a tree's channel is busy with each of its own
  Duration ring_message{};            // that a NIC is busy with each of a ring's, beside its bytes
  double bandwidth = 1.0;             // share of what InfiniBand reaches of its line rate
  double tree = 1.0;                  // of it, with trees
  double ll = 1.0;                    // of it, with rings in LL
};

struct SharedConstants {
  double nic_ll = 1.0, nic_ll128 = 1.0;   // shares of line rate, Ring and Tree
  double nic_ring = 1.0, nic_tree = 1.0;  // the same with Simple
  double nvlink_tree = 1.0;               // share of NVLink's bandwidth
  double tree_fill = 0.0;                 // rounds of chunks per level until data flows
  double nic_nvls_tree = 1.0;             // share of line rate
  Duration nvls_tree_level{};             // one level of a tree between NVLS domains
  double nvls_tree_fill = 0.0;  // rounds of chunks per level, beside GenerationConstants::nvls_fill
  Duration p2p_network_start{};  // of a send and its receive between nodes
  double nic_p2p = 1.0;          // share of line rate of one NIC
};

/// What measuring adds. Only for comparing with measurements: a training step has its own host.
struct MeasurementConstants {
  Duration launch{};          // one kernel of one process that drives several GPUs
  Duration launch_p2p{};      // one send or receive of a group
  Duration single_process{};  // longer on the device where one process launches for all GPUs
  Duration kernel_timer{};    // by which a profiler's kernel time is shorter than wall time
  Duration list_copy{};       // of 10^6 bytes that PyTorch copies between one buffer and a list
};

struct NetworkConstants {
  std::string source;
  std::array<GenerationConstants, 4> generation;  // Volta, Ampere, Hopper, Blackwell
  std::array<TransportConstants, topology::num_networks> transport;
  SharedConstants shared;
  MeasurementConstants measurement;

  const GenerationConstants& of(topology::NcclGeneration) const;
  const TransportConstants& of(topology::Network n) const {
    return transport[static_cast<std::size_t>(n)];
  }
  Duration extra_hop(topology::Network, topology::NcclGeneration) const;
  Duration message(topology::Network, topology::NcclGeneration) const;
};

/// Throws InputError (file:line) on a key that is unknown, missing or wrong.
NetworkConstants network_constants_of(const TomlValue& document);
NetworkConstants read_network_constants(const std::string& path);

/// Calls visit(table, key, member) for every constant; members are Duration or double.
template <class Constants, class Visitor>
void visit_network_constants(Constants& c, Visitor&& visit);

}  // namespace stepcast::sim

#include "sim/network/constants_members.hpp"
