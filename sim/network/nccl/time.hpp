// How long a collective takes alone, in physical terms: a start, hops that follow one another, the
// filling of the pipeline, bytes over bandwidth. NCCL's version only decides what runs
// (choice.hpp); the constants are of the hardware (sim/network/constants.hpp).
//
//   Ring       start + loops x steps x step + bytes x bus factor x (1 + drain/steps) / bus
//              A loop moves one chunk of at most 2 MiB per channel and rank. Simple pays a step's
//              waiting and announcing in every loop, and at a loop's end the links idle for
//              `drain` of a step: a rank that awaits its last chunk sends nothing. Between nodes
//              the NICs are the slower part and hide both.
//   Tree       start + 2 levels x hop + 2 (p-1) x hop in the node + fill + bytes / bandwidth
//              A node of p members sends its half up each of two trees and passes both down: its
//              NICs carry twice the bytes each way, once on two nodes, which swap.
//   message    a NIC is busy with every chunk of a tree's channel for a while, however short it is
//              (posting, flushing, awaiting): 2 messages a chunk with two nodes, 6 among more.
//              Between nodes a ring pays for each message of a NIC, one after the other and beside
//              the bytes: steps x loops x slices of a chunk x channels of a NIC. A chunk is 2 MiB
//              in two slices with Simple, a slot of LL (32 KiB of data) or LL128 (562.5 KiB) in
//              one.
//   NVLS       start + fill + bytes / bandwidth: the NVSwitch sums, and sends the sum to all.
//   NVLSTree   NVLS with a tree between the nodes.
//   fill       a level passes a chunk on only when it is there; chunks shrink with the message as
//              NCCL's do (nccl@v2.28.9-1 enqueue.cc).
#pragma once

#include "sim/network/constants.hpp"
#include "sim/network/exchange/kernels.hpp"
#include "sim/network/nccl/choice.hpp"

namespace stepcast::sim {

/// What is known of NCCL and its hardware: how one version chooses, how long its work takes.
struct NcclFacts {
  NcclTuning tuning;
  NetworkConstants constants;
  std::vector<ExchangeKernels> exchanges{};  // token exchanges beside NCCL's
};

/// start + hops + fill + transfer is the time.
struct NcclTime {
  Duration start{};  // of the kernel, and the protocol's own first exchange
  std::int64_t hops = 0;
  std::int64_t network_hops = 0;
  Duration hop_in_node{}, hop_between_nodes{};
  Duration fill{};      // a pipeline is full only after its first slots have gone all the way
  Duration transfer{};  // bytes / bandwidth, and messages
  Duration messages{};  // of transfer: what NICs take for each message of a ring beside its bytes
  BytesPerSecond bandwidth{};

  Duration latency() const {
    return start + (hops - network_hops) * hop_in_node + network_hops * hop_between_nodes + fill;
  }
  Duration total() const { return latency() + transfer; }
};

/// Of a collective that NCCL chooses an algorithm for.
NcclTime nccl_time(const NcclTuning&, const NcclMachine&, workloads::CollectiveKind, Bytes,
                   const NcclOption&, const NetworkConstants&);

/// Send/receive and AlltoAll, which have no choice.
NcclTime point_to_point_time(const NcclMachine&, workloads::CollectiveKind, Bytes,
                             const NetworkConstants&);

/// HBM traffic of one member during the whole collective, reads and writes.
Bytes memory_traffic(workloads::CollectiveKind, Algorithm, std::int64_t ranks, Bytes);

}  // namespace stepcast::sim
