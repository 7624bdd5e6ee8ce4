// Ranks as processes that talk over TCP, where there is no MPI and beside NCCL: every rank is
// connected to every other. Knows not how they found each other (rendezvous.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/units.hpp"
#include "sim/processes/line_channel.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

class PeerMesh;

/// This process's connections, one for each other rank. A peer whose process ends is noticed at
/// once, one from which nothing comes for `patience` is given up: PeerLost. One thread's,
/// until Communicator::allow_threads(): then a thread of its own moves the bytes while others
/// compute.
class SocketRanks {
 public:
  /// `connections[r]` leads to rank r; the one of this rank is not looked at.
  SocketRanks(std::int64_t rank, std::vector<sim::Descriptor> connections, Duration patience);
  /// Says goodbye, so that the peers know this end from a death, and waits for theirs.
  ~SocketRanks();
  SocketRanks(const SocketRanks&) = delete;
  SocketRanks& operator=(const SocketRanks&) = delete;

  /// All ranks of the run. Sums are taken in the order of ranks, so that all hold the same bits and
  /// those of threads; 16 bits are summed in fp32 and rounded once.
  std::unique_ptr<Communicator> world();

 private:
  std::unique_ptr<PeerMesh> mesh_;
};

}  // namespace stepcast::validate
