// Which of NCCL's ways is the fastest by the model of time.hpp, beside the one that NCCL takes by
// its own, over sizes and shapes of groups; and the answer as the CSV file of NCCL's example tuner
// plugin. Measured curves are left out: they show NCCL's choice alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/network/nccl/network.hpp"
#include "sim/network/nccl/protocol_choice.hpp"
#include "sim/network/path_latency.hpp"

namespace stepcast::sim {

struct TunerChoice {
  struct Way {
    Algorithm algorithm{};
    Protocol protocol{};
    std::int64_t channels = 1;  // at the most bytes that it is for
    Duration duration{};
  };
  workloads::CollectiveKind kind{};
  GroupShape shape;
  Bytes bytes{};        // weighed here
  Bytes least, most{};  // and taken from here to here
  Way usual;            // NCCL's
  Way taken;            // the fastest if it is so by enough, else NCCL's

  double gain() const { return seconds(usual.duration) / seconds(taken.duration); }
  bool differs() const {
    return usual.algorithm != taken.algorithm || usual.protocol != taken.protocol;
  }
};

/// What decides, beside the group and the bytes.
struct TunerQuestion {
  const topology::Cluster& cluster;  // borrowed, as is the router
  const topology::Router& router;
  NcclFacts nccl;
  NcclOverrides overrides{};
  workloads::Dtype dtype = workloads::Dtype::bf16;
  double least_gain = worthwhile_gain;  // below it NCCL's choice stays
};

/// Groups of 1, 2, 4, ... members on each of 1, 2, 4, ... nodes; and of all of both.
std::vector<GroupShape> tuner_shapes(const topology::Cluster&);

/// For every shape 1 KiB, 2 KiB, ... 4 GiB; ranges meet at the geometric means and leave no size
/// out. None where the copy engines run the collective, which asks no tuner.
std::vector<TunerChoice> tuner_choices(const TunerQuestion&, workloads::CollectiveKind,
                                       std::span<const GroupShape>);

/// A line per range: collective_type, min_bytes, max_bytes, algorithm, protocol, channels, nNodes,
/// nRanks, numPipeOps, regBuff (ext-tuner/example of NCCL 2.28, plugin.c and README.md, read
/// 2026-11). Channels always have their number: with -1 that plugin asks for one. Lines of
/// `comments` stand before, and the names of the columns, behind '#': the plugin would take another
/// first line for an AllReduce.
std::string tuner_file(std::span<const TunerChoice>, const std::vector<std::string>& comments);

}  // namespace stepcast::sim
