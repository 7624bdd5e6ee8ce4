// NCCL's own time of one algorithm and protocol (latency + bytes / bandwidth), restated with the
// constants of one version. It ranks, it does not predict: see time.hpp for that.
#pragma once

#include <cstdint>

#include "sim/network/nccl/tuning.hpp"
#include "sim/network/search/graph.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// Whether the collective sums: then the type of its numbers matters, else they are bytes.
bool is_reduction(workloads::CollectiveKind);

/// One call, or `grouped` alike between ncclGroupStart and ncclGroupEnd that NCCL launches at once.
/// `bytes` is that of all of them, as NCCL adds them up.
struct NcclCall {
  workloads::CollectiveKind kind{};
  Bytes bytes{};
  workloads::Dtype dtype = workloads::Dtype::bf16;
  std::int64_t grouped = 1;

  bool is_reduction() const { return sim::is_reduction(kind); }
  /// AllGather and ReduceScatter, which NCCL treats alike.
  bool is_gather() const;
  /// Data that is only moved has no type, and sums of 16 and 32 bits are all served alike.
  bool sums_fp8() const { return dtype == workloads::Dtype::fp8 && is_reduction(); }
};

struct NcclOption {
  Algorithm algorithm{};
  Protocol protocol{};
  Duration estimate{};         // NCCL's own
  BytesPerSecond bandwidth{};  // algorithm bandwidth that NCCL takes it for, at this size
  double handicap = 1.0;       // by which NCCL multiplies the estimate to take it last

  double weighed() const { return seconds(estimate) * handicap; }

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
