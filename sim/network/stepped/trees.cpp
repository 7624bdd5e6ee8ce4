#include "sim/network/search/trees.hpp"
#include "sim/network/stepped/draft.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;
using Id = TransferGraph::Id;
using Ids = std::vector<Id>;

/// One tree of nodes with its share of the collective's bytes.
struct NodeTree {
  std::vector<std::int64_t> parent;
  double share = 1.0;
  std::size_t channel = 0;  // or head, in the switch
  bool in_switch = false;
  std::uint64_t flow = 0;  // of the network
};

/// Sums on the way up, copies on the way down: of ways, or of the transfers of one chunk. By node;
/// `up` and `down` lead to and from its parent, `*_inside` from member to member, head first.
struct UpAndDown {
  std::vector<Ids> up_inside, down_inside;
  Ids up, down;

  explicit UpAndDown(std::size_t nodes)
      : up_inside(nodes), down_inside(nodes), up(nodes), down(nodes) {}
};

class TreeExpansion {
 public:
  TreeExpansion(SteppedDraft& draft, NodeTree tree) : draft_(draft), tree_(std::move(tree)) {}

  void expand() {
    const UpAndDown all_ways = ways();
    const std::uint32_t chunks = draft_.num_chunks();
    UpAndDown before(0);
    for (std::uint32_t k = 0; k < chunks; ++k) {
      UpAndDown now = chunk(all_ways, draft_.size() * tree_.share / chunks, k);
      pass_on(now);
      if (k > 0) queue(now, before);
      before = std::move(now);
    }
  }

 private:
  std::size_t nodes() const { return tree_.parent.size(); }
  bool is_root(std::size_t node) const { return tree_.parent[node] < 0; }
  std::size_t parent(std::size_t node) const {
    return static_cast<std::size_t>(tree_.parent[node]);
  }

  std::vector<std::int64_t> members(std::size_t node) const;
  UpAndDown ways();
  std::uint32_t switch_way(SteppedLayout::Loads loads);
  UpAndDown chunk(const UpAndDown& ways, double bytes, std::uint32_t k);
  void pass_on(const UpAndDown& chunk);
  void queue(const UpAndDown& later, const UpAndDown& earlier);

  SteppedDraft& draft_;
  NodeTree tree_;
};

/// The switch sums faster than the NICs carry: a port's rate, with room for all its heads.
std::uint32_t TreeExpansion::switch_way(SteppedLayout::Loads loads) {
  const double heads = static_cast<double>(draft_.layout.num_heads());
  const BytesPerSecond cap = draft_.layout.port() * (tree_.share / (1 + 1 / heads));
  return draft_.graph.add_way({std::move(loads), cap, {}});
}

/// First the one that speaks to other nodes.
std::vector<std::int64_t> TreeExpansion::members(std::size_t node) const {
  if (!tree_.in_switch) return draft_.layout.chain(node, tree_.channel);
  return {draft_.layout.members(node)[tree_.channel]};
}

UpAndDown TreeExpansion::ways() {
  const SteppedLayout& layout = draft_.layout;
  const double through = draft_.size() * tree_.share;
  UpAndDown out(nodes());
  for (std::size_t node = 0; node < nodes(); ++node) {
    const auto chain = members(node);
    if (tree_.in_switch && layout.members(node).size() > 1) {
      out.up_inside[node] = {switch_way(layout.into_switch(node, chain[0]))};
      out.down_inside[node] = {switch_way(layout.out_of_switch(node, chain[0]))};
    }
    for (std::size_t j = 1; j < chain.size(); ++j) {
      const std::int64_t a = chain[j], b = chain[j - 1];
      out.up_inside[node].push_back(draft_.edge(a, b, layout.inside(a, b), through));
      out.down_inside[node].push_back(draft_.edge(b, a, layout.inside(b, a), through));
    }
    if (is_root(node)) continue;
    const std::int64_t a = chain[0], b = members(parent(node)).front();
    out.up[node] = draft_.edge(a, b, layout.between_heads(a, b, tree_.flow), through);
    out.down[node] = draft_.edge(b, a, layout.between_heads(b, a, tree_.flow), through);
  }
  return out;
}

UpAndDown TreeExpansion::chunk(const UpAndDown& ways, double bytes, std::uint32_t k) {
  UpAndDown out(nodes());
  const auto add = [&](std::uint32_t way) { return draft_.graph.add(way, bytes, k); };
  for (std::size_t node = 0; node < nodes(); ++node) {
    for (const std::uint32_t way : ways.up_inside[node]) out.up_inside[node].push_back(add(way));
    for (const std::uint32_t way : ways.down_inside[node])
      out.down_inside[node].push_back(add(way));
    if (is_root(node)) continue;
    out.up[node] = add(ways.up[node]);
    out.down[node] = add(ways.down[node]);
  }
  return out;
}

/// At the root everything meets and turns round.
void TreeExpansion::pass_on(const UpAndDown& chunk) {
  TransferGraph& graph = draft_.graph;
  std::vector<Ids> into(nodes());  // sums that reach the node's head
  for (std::size_t node = 0; node < nodes(); ++node) {
    const Ids& inside = chunk.up_inside[node];
    for (std::size_t j = 0; j + 1 < inside.size(); ++j) graph.pass_on(inside[j], inside[j + 1]);
    if (!inside.empty()) into[node].push_back(inside[0]);
    if (!is_root(node)) into[parent(node)].push_back(chunk.up[node]);
  }
  const auto pass_whole_sum = [&](std::size_t node, Id later) {
    if (!is_root(node)) return graph.pass_on(later, chunk.down[node]);
    for (const Id earlier : into[node]) graph.pass_on(later, earlier);
  };
  for (std::size_t node = 0; node < nodes(); ++node) {
    const Ids& inside = chunk.down_inside[node];
    if (!inside.empty()) pass_whole_sum(node, inside[0]);
    for (std::size_t j = 1; j < inside.size(); ++j) graph.pass_on(inside[j], inside[j - 1]);
    if (is_root(node)) continue;
    for (const Id earlier : into[node]) graph.pass_on(chunk.up[node], earlier);
    pass_whole_sum(parent(node), chunk.down[node]);
  }
}

void TreeExpansion::queue(const UpAndDown& later, const UpAndDown& earlier) {
  TransferGraph& graph = draft_.graph;
  for (std::size_t node = 0; node < nodes(); ++node) {
    for (std::size_t j = 0; j < later.up_inside[node].size(); ++j) {
      graph.queue(later.up_inside[node][j], earlier.up_inside[node][j]);
      graph.queue(later.down_inside[node][j], earlier.down_inside[node][j]);
    }
    if (is_root(node)) continue;
    graph.queue(later.up[node], earlier.up[node]);
    graph.queue(later.down[node], earlier.down[node]);
  }
}

/// Over nodes, -1 of the root.
std::vector<std::int64_t> parents(std::int64_t nodes, int tree) {
  std::vector<std::int64_t> out;
  for (std::int64_t node = 0; node < nodes; ++node)
    out.push_back(tree_place(nodes, node, tree).parent);
  return out;
}

}  // namespace

void expand_trees(SteppedDraft& draft, bool in_switch) {
  const auto nodes = static_cast<std::int64_t>(draft.layout.num_nodes());
  const std::size_t count = in_switch ? draft.layout.num_heads() : draft.layout.num_channels();
  const double share = 1 / static_cast<double>(count);
  for (std::size_t c = 0; c < count; ++c) {
    if (nodes == 1) {
      TreeExpansion(draft, {{-1}, share, c, in_switch, c}).expand();
      continue;
    }
    TreeExpansion(draft, {parents(nodes, 0), share / 2, c, in_switch, c}).expand();
    TreeExpansion(draft, {parents(nodes, 1), share / 2, c, in_switch, count + c}).expand();
  }
}

/// Every member is the head of its share. AllGather only copies, ReduceScatter only sums.
void expand_switch(SteppedDraft& draft) {
  const bool sums = draft.terms.kind != CollectiveKind::all_gather;
  const bool copies = draft.terms.kind != CollectiveKind::reduce_scatter;
  const double share = draft.size() / static_cast<double>(draft.ranks());
  const std::uint32_t chunks = draft.num_chunks();
  for (const std::int64_t head : draft.layout.ranks()) {
    const std::uint32_t in = draft.way(draft.layout.into_switch(0, head), share, {});
    const std::uint32_t out = draft.way(draft.layout.out_of_switch(0, head), share, {});
    Id sum{}, copy{};
    for (std::uint32_t k = 0; k < chunks; ++k) {
      const Id sum_before = sum, copy_before = copy;
      if (sums) sum = draft.graph.add(in, share / chunks, k);
      if (copies) copy = draft.graph.add(out, share / chunks, k);
      if (sums && copies) draft.graph.pass_on(copy, sum);
      if (sums && k > 0) draft.graph.queue(sum, sum_before);
      if (copies && k > 0) draft.graph.queue(copy, copy_before);
    }
  }
}

}  // namespace stepcast::sim
