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

  /// Per rank of `system`: the first of the whole that it stands for.
  std::vector<std::uint32_t> first() const;
};

/// The coarsest stable colouring: of each rank, communicator and link its class, numbered in the
/// order of their first members.
struct Classes {
  std::vector<std::uint32_t> ranks, communicators, links;
  std::uint32_t num_ranks = 0, num_communicators = 0, num_links = 0;
};

/// `system` must be without jitter, which makes all ranks different.
Classes classes_of(const System& system);

/// What classes_of() depends on: systems with the same likeness have the same classes. Weights,
/// capacities and speeds count by which of them are equal, so that steps of other sizes over the
/// same groups and links are alike. A hash of 128 bits.
struct Likeness {
  std::uint64_t first = 0, second = 0;
  friend bool operator==(const Likeness&, const Likeness&) = default;
};
Likeness likeness_of(const System& system);

/// The part of it that ranks and groups have, whatever links they load; and the whole from that.
Likeness likeness_of_groups(const System& system);
Likeness likeness_of(const System& system, const Likeness& of_groups);

Fold fold(const System& system, const Classes& classes);
inline Fold fold(const System& system) { return fold(system, classes_of(system)); }

}  // namespace stepcast::engine
