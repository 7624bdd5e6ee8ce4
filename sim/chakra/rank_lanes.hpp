// The nodes of a trace as the lanes of one rank: which run one after the other, in which order,
// and what waits for what of another lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/program.hpp"
#include "sim/chakra/et_file.hpp"
#include "topology/specs.hpp"
#include "workloads/pieces/operations.hpp"

namespace stepcast::sim {

/// Whom a node meets, said for the rank whose file it is.
struct EtPeers {
  enum class Kind : std::uint8_t { all, group, sender, receiver } kind{};
  std::string group{};  // its name; of a message that of its two ranks, where it has one
  std::int64_t source = -1, destination = -1, tag = 0;  // of a message

  friend auto operator<=>(const EtPeers&, const EtPeers&) = default;
};

/// What a collective moves, but for the size of AllGather's group.
struct EtTransfer {
  workloads::CollectiveKind kind{};
  workloads::Dtype dtype = workloads::Dtype::bf16;
  std::int64_t bytes = 0;  // of AllGather: the share of one rank
  friend auto operator<=>(const EtTransfer&, const EtTransfer&) = default;
};

struct RankLanes {
  /// Op::work's argument is an index of `works`, Op::join's one of `transfers`, its communicator
  /// one of `peers`. Lane 0 computes.
  engine::Program program;
  std::vector<Duration> works;  // by work
  std::vector<bool> of_host;    // by work
  std::vector<EtTransfer> transfers;
  std::vector<EtPeers> peers;
  std::vector<std::string> lanes;  // what each is
  Duration compute{}, host{};      // sums
  std::int64_t rooflined = 0;      // nodes without a duration, timed by what they compute
};

/// `rank`: the one that the file is called after. Throws InputError for nodes that wait for each
/// other or for one that is not there, for collectives that NCCL does not have, and for more lanes
/// than there is room for.
///
/// Nodes with a `stream` run in order on it; without one, COMP on one lane, the host's on one of
/// its own, collectives on one lane for each group, messages for each direction and peer. The order
/// is that of the dependencies, then of start times, then of numbers. ctrl_deps count where a file
/// has no data_deps at all.
RankLanes lanes_of(const EtFile& file, std::int64_t rank, const topology::GpuSpec& gpu,
                   bool ends_together);

}  // namespace stepcast::sim
