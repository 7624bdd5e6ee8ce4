// Folding: ranks that are provably alike are run once. Two ranks are alike when they play the same
// role at the same speed and, slot by slot, meet alike groups over alike links: the coarsest stable
// colouring (equitable partition) of ranks, communicators and links. One representative of each
// class then stands for all, and the folded run takes the same time to the picosecond: every class
// sees the same arrivals, the same demands on its links and the same shares.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"

namespace stepcast::engine {

struct Fold {
  System system;                              // one rank, communicator and link per class
  std::vector<std::uint32_t> representative;  // per rank of the whole: its rank in `system`
  std::vector<std::int64_t> multiplicity;     // per rank of `system`: how many it stands for
};

/// `system` must be without jitter, which makes all ranks different.
Fold fold(const System& system);

}  // namespace stepcast::engine
