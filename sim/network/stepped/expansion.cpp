#include "sim/network/stepped/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.hpp"
#include "sim/network/stepped/draft.hpp"

namespace stepcast::sim {

using workloads::CollectiveKind;
using Id = TransferGraph::Id;

std::uint32_t SteppedDraft::way(SteppedLayout::Loads loads, double through, Duration hop) {
  const double time = seconds(terms.transfer);
  const double cap = time > 0 ? through / time : std::numeric_limits<double>::infinity();
  return graph.add_way({std::move(loads), BytesPerSecond(cap), hop});
}

std::uint32_t SteppedDraft::edge(std::int64_t a, std::int64_t b, SteppedLayout::Loads loads,
                                 double through) {
  return way(std::move(loads), through,
             layout.same_node(a, b) ? terms.hop_in_node : terms.hop_between_nodes);
}

std::uint32_t SteppedDraft::num_chunks() const {
  const double per_channel = size() / static_cast<double>(terms.channels);
  return static_cast<std::uint32_t>(
      std::max(1.0, std::ceil(per_channel / grain_bytes(terms, layout))));
}

namespace {

/// Of ring(channel)[i] to the next one.
std::vector<std::uint32_t> ring_ways(SteppedDraft& draft, std::size_t channel, double through) {
  const auto order = draft.layout.ring(channel);
  std::vector<std::uint32_t> ways;
  for (std::size_t i = 0; i < order.size(); ++i)
    ways.push_back(draft.edge(order[i], order[(i + 1) % order.size()],
                              draft.layout.ring_edge(channel, i), through));
  return ways;
}

void expand_rings(SteppedDraft& draft) {
  const std::size_t n = draft.ranks(), channels = draft.layout.num_channels();
  const std::size_t steps = draft.terms.kind == CollectiveKind::all_reduce ? 2 * (n - 1) : n - 1;
  const auto hops = static_cast<std::size_t>(draft.terms.hops);
  const std::size_t rounds = std::max<std::size_t>(1, (hops + steps - 1) / steps) * steps;
  const double chunk = draft.size() / static_cast<double>(channels * n) *
                       static_cast<double>(steps) / static_cast<double>(rounds);
  const double through = static_cast<double>(rounds) * chunk;
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<std::uint32_t> ways = ring_ways(draft, c, through);
    std::vector<Id> before(n), now(n);
    for (std::size_t s = 0; s < rounds; ++s) {
      for (std::size_t i = 0; i < n; ++i) {
        now[i] = draft.graph.add(ways[i], chunk, static_cast<std::uint32_t>(s));
        if (s == 0) continue;
        draft.graph.pass_on(now[i], before[(i + n - 1) % n]);
        draft.graph.queue(now[i], before[i]);
      }
      before.swap(now);
    }
  }
}

void expand_chains(SteppedDraft& draft) {
  const std::size_t n = draft.ranks(), channels = draft.layout.num_channels();
  const double share = draft.size() / static_cast<double>(channels);
  const std::uint32_t chunks = draft.num_chunks();
  for (std::size_t c = 0; c < channels; ++c) {
    const auto order = draft.layout.ring(c);
    auto root = std::find(order.begin(), order.end(), draft.layout.ranks().front());
    if (draft.terms.kind == CollectiveKind::reduce) ++root;  // the root comes last
    std::vector<std::uint32_t> ways = ring_ways(draft, c, share);
    std::rotate(ways.begin(), ways.begin() + (root - order.begin()), ways.end());
    std::vector<Id> before(n - 1);
    for (std::uint32_t k = 0; k < chunks; ++k)
      for (std::uint32_t i = 0; i + 1 < n; ++i) {
        const Id id = draft.graph.add(ways[i], share / chunks, k + i);
        if (i > 0) draft.graph.pass_on(id, before[i - 1]);
        if (k > 0) draft.graph.queue(id, before[i]);
        before[i] = id;
      }
  }
}

/// ReduceScatter runs AllGather's steps backwards.
void expand_pat(SteppedDraft& draft) {
  const std::size_t n = draft.ranks();
  const auto& ranks = draft.layout.ranks();
  const double chunk = draft.size() / static_cast<double>(n);
  std::vector<std::size_t> distances;
  for (std::size_t d = 1; d < n; d *= 2) distances.push_back(d);
  if (draft.terms.kind == CollectiveKind::reduce_scatter)
    std::reverse(distances.begin(), distances.end());
  std::vector<Id> before(n), now(n);
  const double through = static_cast<double>(n - 1) * chunk;
  for (std::size_t s = 0; s < distances.size(); ++s) {
    const std::size_t d = distances[s];
    const double bytes = static_cast<double>(std::min(d, n - d)) * chunk;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t from = ranks[i], to = ranks[(i + d) % n];
      const std::uint32_t over = draft.edge(from, to, draft.layout.between_pair(from, to), through);
      now[i] = draft.graph.add(over, bytes, static_cast<std::uint32_t>(s));
      if (s == 0) continue;
      draft.graph.pass_on(now[i], before[(i + n - distances[s - 1]) % n]);
      draft.graph.queue(now[i], before[i]);
    }
    before.swap(now);
  }
}

/// The peers of a member in the order in which it sends to them: nodes further on by 0, 1, 2, ...;
/// within a node further on by the member's own place, so that no two members of a node send to the
/// same one at once.
std::vector<std::int64_t> peers_in_order(const SteppedLayout& layout, std::int64_t self) {
  const std::size_t here = layout.node_of(self);
  const auto own = layout.members(here);
  const auto place =
      static_cast<std::size_t>(std::find(own.begin(), own.end(), self) - own.begin());
  std::vector<std::int64_t> out;
  for (std::size_t shift = 0; shift < layout.num_nodes(); ++shift) {
    const auto there = layout.members((here + shift) % layout.num_nodes());
    for (std::size_t i = 0; i < there.size(); ++i)
      if (const std::int64_t peer = there[(place + i) % there.size()]; peer != self)
        out.push_back(peer);
  }
  return out;
}

void expand_all_to_all(SteppedDraft& draft) {
  const SteppedLayout& layout = draft.layout;
  const double chunk = draft.size() / static_cast<double>(draft.ranks());
  draft.graph.make_room(draft.ranks() * (draft.ranks() - 1));  // before a way is built for each
  for (const std::int64_t self : layout.ranks()) {
    const auto peers = peers_in_order(layout, self);
    const auto inside = std::count_if(peers.begin(), peers.end(), [&](std::int64_t peer) {
      return layout.same_node(self, peer);
    });
    const double by_nvlink = chunk * static_cast<double>(inside);
    const double by_nic = chunk * static_cast<double>(peers.size()) - by_nvlink;
    Id before{};
    for (std::size_t s = 0; s < peers.size(); ++s) {
      const bool same = layout.same_node(self, peers[s]);
      const std::uint32_t over = draft.edge(self, peers[s], layout.between_peers(self, peers[s]),
                                            same ? by_nvlink : by_nic);
      const Id id = draft.graph.add(over, chunk, static_cast<std::uint32_t>(s));
      const bool first = s == 0 || s == static_cast<std::size_t>(inside);  // of its queue
      if (!first) draft.graph.queue(id, before);
      before = id;
    }
  }
}

void expand_pairs(SteppedDraft& draft) {
  const SteppedLayout& layout = draft.layout;
  const std::size_t n = draft.ranks();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t a = layout.ranks()[i], b = layout.ranks()[(i + 1) % n];
    const std::uint32_t over = draft.edge(a, b, layout.between_pair(a, b), draft.size());
    draft.graph.add(over, draft.size(), 0);
  }
}

bool chained(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

/// Whether there was a stepped form to write out.
bool expand_into(SteppedDraft& draft) {
  const bool one_node = draft.layout.num_nodes() == 1;
  switch (draft.terms.algorithm) {
    case Algorithm::ring:
      chained(draft.terms.kind) ? expand_chains(draft) : expand_rings(draft);
      return true;
    case Algorithm::tree:
      expand_trees(draft, false);
      return true;
    case Algorithm::nvls_tree:
      expand_trees(draft, true);
      return true;
    case Algorithm::nvls:  // between nodes it needs sums in the network's switches
      if (one_node) expand_switch(draft);
      return one_node;
    case Algorithm::pat:
      expand_pat(draft);
      return true;
    case Algorithm::p2p:
      draft.terms.kind == CollectiveKind::all_to_all ? expand_all_to_all(draft)
                                                     : expand_pairs(draft);
      return true;
    default:
      return false;
  }
}

/// NCCL src/enqueue.cc v2.28.9: Tree's chunks shrink until the pipeline is well filled.
double tree_chunk(const SteppedTerms& terms, const SteppedLayout& layout) {
  const auto nodes = static_cast<double>(layout.num_nodes());
  const double depth =
      static_cast<double>(layout.members(0).size()) - 1 + std::floor(std::log2(nodes));
  const double channel =
      static_cast<double>(terms.bytes.value) / static_cast<double>(terms.channels);
  double chunk = 512.0 * 1024;
  while (channel / chunk < depth * 8 && chunk > 128.0 * 1024) chunk /= 2;
  while (channel / chunk < depth * 4 && chunk > 64.0 * 1024) chunk /= 2;
  while (channel / chunk < depth && chunk > 32.0 * 1024) chunk /= 2;
  return chunk;
}

/// The same source: 128 KiB of each head and channel, less for shorter messages.
double switch_chunk(const SteppedTerms& terms, const SteppedLayout& layout) {
  const double heads = layout.num_nodes() > 1 ? static_cast<double>(layout.num_heads())
                                              : static_cast<double>(layout.num_ranks());
  const double loops =
      static_cast<double>(terms.bytes.value) / (static_cast<double>(terms.channels) * heads * 1024);
  double chunk = layout.num_nodes() >= 4 ? 64 : 128;  // KiB
  if (loops < 64 * chunk) chunk = std::min(chunk, 64.0);
  if (loops < 8 * chunk) chunk = std::min(chunk, 32.0);
  if (loops < 2 * chunk) chunk = std::min(chunk, 16.0);
  return chunk * 1024 * heads;
}

}  // namespace

double grain_bytes(const SteppedTerms& terms, const SteppedLayout& layout) {
  if (terms.protocol != Protocol::simple) {
    const double warp = terms.protocol == Protocol::ll ? 32 * 8 : 32 * 8 * 8 * 15.0 / 16;
    const double pass = warp * (terms.protocol == Protocol::ll ? 16 : 20);  // of all its warps
    const double channel =
        static_cast<double>(terms.bytes.value) / static_cast<double>(terms.channels);
    return std::clamp(channel / 64, warp, pass);
  }
  if (terms.algorithm == Algorithm::tree) return tree_chunk(terms, layout);
  if (terms.algorithm == Algorithm::nvls || terms.algorithm == Algorithm::nvls_tree)
    return switch_chunk(terms, layout);
  return 512.0 * 1024;
}

TransferGraph expand(const SteppedLayout& layout, const SteppedTerms& terms) {
  expects(layout.num_ranks() > 1 && terms.bytes > Bytes(0), "something to send to somebody");
  SteppedDraft draft{layout, terms};
  if (!expand_into(draft))
    throw InputError("--stepped", std::string(name_of(terms.algorithm)) + " has no stepped form",
                     "choose another algorithm, as NCCL_ALGO=Ring does");
  return std::move(draft.graph);
}

}  // namespace stepcast::sim
