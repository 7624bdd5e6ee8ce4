// Which algorithm and protocol NCCL runs a collective with: its own time model (latency + bytes /
// bandwidth, the least wins) restated with the constants of one version. The times here rank, they
// do not predict: below 64 MiB they are 1.3 to 3 times short (NETWORK_AND_KERNELS.md 1.9).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/nccl_graph.hpp"
#include "sim/nccl_tuning.hpp"

namespace stepcast::sim {

/// What NCCL's variables NCCL_ALGO and NCCL_PROTO pin.
struct NcclOverrides {
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
};

struct NcclOption {
  Algorithm algorithm{};
  Protocol protocol{};
  Duration estimate{};         // NCCL's own
  BytesPerSecond bandwidth{};  // algorithm bandwidth that NCCL takes it for, at this size

  friend bool operator==(const NcclOption&, const NcclOption&) = default;
};

/// All that may serve this collective, in the order of NCCL's tables.
std::vector<NcclOption> nccl_options(const NcclTuning&, const NcclMachine&,
                                     workloads::CollectiveKind, Bytes);

/// The one with the least estimate; the first of equals. Overrides that leave nothing are ignored,
/// as NCCL does.
NcclOption nccl_choice(const NcclTuning&, const NcclMachine&, workloads::CollectiveKind, Bytes,
                       const NcclOverrides& = {});

/// Kernel channels that a message of this size gets: short messages leave some unused.
std::int64_t nccl_channels(const NcclMachine&, Algorithm, Protocol, Bytes);

/// Ring steps of a collective over n ranks: 2(n-1) for AllReduce, n-1 for AllGather and
/// ReduceScatter, n for Broadcast and Reduce.
std::int64_t ring_steps(workloads::CollectiveKind, std::int64_t ranks);

}  // namespace stepcast::sim
