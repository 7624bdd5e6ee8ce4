// NCCL's own time of one algorithm and protocol (latency + bytes / bandwidth), restated with the
// constants of one version. It ranks, it does not predict: see nccl_time.hpp for that.
#pragma once

#include <cstdint>

#include "sim/nccl_graph.hpp"
#include "sim/nccl_tuning.hpp"
#include "workloads/step_program.hpp"

namespace stepcast::sim {

/// One call, or `grouped` alike between ncclGroupStart and ncclGroupEnd that NCCL launches at once.
/// `bytes` is that of all of them, as NCCL adds them up.
struct NcclCall {
  workloads::CollectiveKind kind{};
  Bytes bytes{};
  workloads::Dtype dtype = workloads::Dtype::bf16;
  std::int64_t grouped = 1;

  bool is_reduction() const;
  /// AllGather and ReduceScatter, which NCCL treats alike.
  bool is_gather() const;
};

struct NcclOption {
  Algorithm algorithm{};
  Protocol protocol{};
  Duration estimate{};         // NCCL's own
  BytesPerSecond bandwidth{};  // algorithm bandwidth that NCCL takes it for, at this size

  friend bool operator==(const NcclOption&, const NcclOption&) = default;
};

/// NCCL's figures for one way to serve the call, whether or not it would be offered.
NcclOption nccl_option(const NcclTuning&, const NcclMachine&, const NcclCall&, Algorithm, Protocol);

/// Ring steps of a collective over n ranks: 2(n-1) for AllReduce, n-1 for AllGather and
/// ReduceScatter, n for Broadcast and Reduce.
std::int64_t ring_steps(workloads::CollectiveKind, std::int64_t ranks);

/// NICs that the members of one node use: the heads of CollNet.
std::int64_t network_heads(const NcclMachine&);

}  // namespace stepcast::sim
