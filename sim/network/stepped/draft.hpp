// The graph of one collective while it is being written: shared by the expansions of rings
// (expansion.cpp) and trees (trees.cpp).
#pragma once

#include "sim/network/stepped/expansion.hpp"

namespace stepcast::sim {

struct SteppedDraft {
  const SteppedLayout& layout;
  const SteppedTerms& terms;
  TransferGraph graph{};

  double size() const { return static_cast<double>(terms.bytes.value); }
  std::size_t ranks() const { return layout.num_ranks(); }

  /// A way over which `through` bytes go in all, at the pace of the one-variable form.
  std::uint32_t way(SteppedLayout::Loads loads, double through, Duration hop);
  /// The same from member to member, with the hop of the one-variable form.
  std::uint32_t edge(std::int64_t a, std::int64_t b, SteppedLayout::Loads loads, double through);
  /// Into how many grains a channel's bytes are cut.
  std::uint32_t num_chunks() const;
};

void expand_trees(SteppedDraft&, bool in_switch);
/// NVLink SHARP on one node.
void expand_switch(SteppedDraft&);

}  // namespace stepcast::sim
