// How long a collective takes alone, in physical terms: a start, hops that follow one another, the
// filling of the pipeline, bytes over bandwidth. Few constants, per GPU generation, none per row of
// measurement; NCCL's version only decides what runs (nccl_choice.hpp).
#pragma once

#include "sim/nccl_choice.hpp"

namespace stepcast::sim {

/// start + hops + fill + transfer is the time.
struct NcclTime {
  Duration start{};  // of the kernel, and the protocol's own first exchange
  std::int64_t hops = 0;
  std::int64_t network_hops = 0;
  Duration hop_in_node{}, hop_between_nodes{};
  Duration fill{};      // a pipeline is full only after its first slots have gone all the way
  Duration transfer{};  // bytes / bandwidth
  BytesPerSecond bandwidth{};

  Duration latency() const {
    return start + (hops - network_hops) * hop_in_node + network_hops * hop_between_nodes + fill;
  }
  Duration total() const { return latency() + transfer; }
};

/// Of a collective that NCCL chooses an algorithm for.
NcclTime nccl_time(const NcclTuning&, const NcclMachine&, workloads::CollectiveKind, Bytes,
                   const NcclOption&);

/// Send/receive and AlltoAll, which have no choice.
NcclTime point_to_point_time(const NcclMachine&, workloads::CollectiveKind, Bytes);

/// HBM traffic of one member during the whole collective, reads and writes.
Bytes memory_traffic(workloads::CollectiveKind, Algorithm, std::int64_t ranks, Bytes);

}  // namespace stepcast::sim
