// Which algorithm and protocol NCCL runs a collective with: its own time model (estimate.hpp)
// over all that may serve it, the least wins. The times here rank, they do not predict: below
// 64 MiB they are 1.3 to 3 times short (nccl-tests logs, 2026-11).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/nccl/estimate.hpp"
#include "sim/network/nccl/overrides.hpp"
#include "sim/network/nccl/tuning.hpp"
#include "sim/network/search/graph.hpp"

namespace stepcast::sim {

/// All that may serve this collective, in the order of NCCL's tables. Overrides that leave nothing
/// leave Ring (and Tree, where only CollNet was asked for), or, in a version that takes them
/// seriously, nothing.
std::vector<NcclOption> nccl_options(const NcclTuning&, const NcclMachine&, const NcclCall&,
                                     const NcclOverrides& = {});

/// Throws InputError for sums of a type that this NCCL does not have on this GPU: fp8
/// before 2.24, and before Hopper ("FP8 reduction support begins with sm90", src/enqueue.cc;
/// PyTorch's ProcessGroupNCCL.cpp refuses Float8 there as well; read 2026-11). Data that is only
/// moved goes as bytes.
void check_type(const NcclTuning&, const topology::GpuSpec&, const NcclCall&);

/// The one with the least estimate, handicaps counted; the first of equals. Throws InputError where
/// overrides leave nothing and the version calls that an error.
NcclOption nccl_choice(const NcclTuning&, const NcclMachine&, const NcclCall&,
                       const NcclOverrides& = {});

/// Kernel channels that this call gets: short messages leave some unused.
std::int64_t nccl_channels(const NcclTuning&, const NcclMachine&, const NcclCall&, Algorithm,
                           Protocol, const NcclOverrides& = {});

}  // namespace stepcast::sim
