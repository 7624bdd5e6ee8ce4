// What NCCL tells of itself while it starts (NCCL_DEBUG=INFO alone): version, ranks, nodes, the
// network and its NICs, channels. Holds no measurement; completes what the options of the command
// say.
//
//   NCCL version 2.20.5+cuda12.4
//   ... NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
//   ... NCCL INFO NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000 ...    (SUBSYS=NET)
//   ... NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)
//   ... NCCL INFO comm 0x55d0 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
//   ... NCCL INFO 16 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/rows/cluster_facts.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "engine/units.hpp"

namespace stepcast::calibrate {

struct NcclInit {
  std::string nccl;                              // "2.20.5"
  std::optional<std::int64_t> ranks, nodes;      // of the largest communicator
  std::string fabric;                            // infiniband, roce, efa, ethernet
  std::optional<std::int64_t> nics;              // of the first process that tells
  std::optional<BytesPerSecond> node_bandwidth;  // where the log has the NICs' speeds
  std::optional<std::int64_t> channels;          // for collectives, of the same communicator
};

/// What the lines of NCCL say; what they do not say stays empty.
NcclInit nccl_init_of(const TextFile& file);

/// Whether there is anything in it.
bool says_something(const NcclInit& init);

/// "NCCL 2.20.5, 16 ranks on 2 nodes, 8 NICs of infiniband, 16 channels".
std::string to_text(const NcclInit& init);

/// The facts with what they leave open from the log.
ClusterFacts completed(ClusterFacts facts, const NcclInit& init);

}  // namespace stepcast::calibrate
