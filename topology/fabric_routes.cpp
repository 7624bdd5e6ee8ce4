#include "topology/fabric_routes.hpp"

#include <array>

namespace stepcast::topology {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the input moves every bit.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A switch hashes anew on the way down, where only its cables to one child are left to choose.
constexpr std::uint64_t down_stage = 16;

/// Where a way stands between two tiers: the blocks of both ends and the switch of its index.
struct Climb {
  std::int64_t source = 0, target = 0;  // blocks
  std::int64_t index = 0;               // of the switch within either block
};

const FabricTier& above(const FabricLayout& layout, std::int64_t tier) {
  return layout.tiers[static_cast<std::size_t>(tier)];
}

Climb start_of(const FabricLayout& layout, const Device& from, const Device& to) {
  return {layout.leaf_of(from.node, from.index), layout.leaf_of(to.node, to.index), 0};
}

Climb parent(const FabricLayout& layout, std::int64_t tier, const Climb& at, std::int64_t choice) {
  return {layout.parent_block(tier, at.source), layout.parent_block(tier, at.target),
          layout.parent_index(tier, at.index, choice)};
}

/// Which parent, and which of the links to it upward and downward.
struct Step {
  std::int64_t choice = 0, bundle_up = 0, bundle_down = 0;
};

/// Picks step after step from the leaf upward.
class Chooser {
 public:
  Chooser(const ClusterParts& parts, const Device& to, const FlowId& flow)
      : fabric_(parts.fabric),
        flow_(flow),
        digits_(static_cast<std::uint64_t>(parts.fabric_layout.port_of(to.node, to.index))) {}

  Step step(std::int64_t tier, const FabricTier& up) {
    if (fabric_.routing == Routing::ecmp) {
      const auto stage = static_cast<std::uint64_t>(tier);
      const auto seed = static_cast<std::uint64_t>(fabric_.ecmp_seed);
      const std::int64_t way = hashed_way(seed, flow_, stage, up.choices * up.bundles);
      return {way / up.bundles, way % up.bundles,
              hashed_way(seed, flow_, down_stage + stage, up.bundles)};
    }
    // The digit of the destination's port number (Zahavi 2010, D-Mod-K: shift patterns do not
    // collide in a full tree). A switch knows the destination alone: queue pairs do not part.
    const auto choices = static_cast<std::uint64_t>(up.choices);
    const auto choice = static_cast<std::int64_t>(digits_ % choices);
    digits_ /= choices;
    return {choice, 0, 0};
  }

 private:
  const FabricSpec& fabric_;
  const FlowId& flow_;
  std::uint64_t digits_;
};

}  // namespace

std::int64_t hashed_way(std::uint64_t seed, const FlowId& flow, std::uint64_t stage,
                        std::int64_t ways) {
  const std::uint64_t ends = static_cast<std::uint64_t>(flow.from) << 32 | flow.to;
  const std::uint64_t hash = mixed(mixed(mixed(mixed(seed) ^ ends) ^ flow.key) ^ stage);
  return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(ways));
}

void append_fabric_path(const ClusterParts& parts, const Device& from, const Device& to,
                        const FlowId& flow, Path& path) {
  const FabricLayout& layout = parts.fabric_layout;
  Chooser chooser(parts, to, flow);
  std::array<LinkId, max_tiers> down{};
  std::size_t num_down = 0;
  path.push_back(layout.injection_link(from.node, from.index));
  Climb at = start_of(layout, from, to);
  for (std::int64_t tier = 1; at.source != at.target; ++tier) {
    const Step step = chooser.step(tier, above(layout, tier));
    path.push_back(layout.up_link(tier, at.source, at.index, step.choice, step.bundle_up));
    down.at(num_down++) =
        reverse(layout.up_link(tier, at.target, at.index, step.choice, step.bundle_down));
    at = parent(layout, tier, at, step.choice);
  }
  while (num_down > 0) path.push_back(down[--num_down]);
  path.push_back(reverse(layout.injection_link(to.node, to.index)));
}

void append_sprayed_ways(const ClusterParts& parts, const Device& from, const Device& to,
                         std::vector<LinkShare>& shares) {
  const FabricLayout& layout = parts.fabric_layout;
  shares.push_back({layout.injection_link(from.node, from.index), 1.0});
  std::vector<Climb> ways{start_of(layout, from, to)}, higher;
  double share = 1.0;
  for (std::int64_t tier = 1; ways.front().source != ways.front().target; ++tier) {
    const FabricTier& up = above(layout, tier);
    share /= static_cast<double>(up.choices);  // of equal width, all cables to a parent in one link
    higher.clear();
    for (const Climb& at : ways)
      for (std::int64_t choice = 0; choice < up.choices; ++choice) {
        shares.push_back({layout.up_link(tier, at.source, at.index, choice, 0), share});
        shares.push_back({reverse(layout.up_link(tier, at.target, at.index, choice, 0)), share});
        higher.push_back(parent(layout, tier, at, choice));
      }
    ways.swap(higher);
  }
  shares.push_back({reverse(layout.injection_link(to.node, to.index)), 1.0});
}

}  // namespace stepcast::topology
