#include "sim/network/nccl/chunks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

constexpr double kib = 1024;

/// A message of fewer than `chunks` per channel gets chunks of half the size, down to `least`.
struct Halving {
  double chunks, least;
};

/// The chunk that a tree begins with, and when it halves it.
struct TreeCut {
  double chunk;
  std::vector<Halving> rules;
};

TreeCut tree_cut(const NcclMachine& machine, Protocol protocol) {
  const double levels = std::floor(std::log2(static_cast<double>(machine.shape.nodes)));
  const auto p = static_cast<double>(machine.shape.ranks_per_node);
  if (protocol == Protocol::ll) return {16 * kib, {}};
  if (protocol == Protocol::ll128) {
    const double depth = 1 + levels + 0.1 * p;
    return {160 * kib, {{depth * 64 / p, 128 * kib}, {depth * 16 / p, 32 * kib}}};
  }
  const double depth = p - 1 + levels;
  return {slot_bytes, {{depth * 8, 128 * kib}, {depth * 4, 64 * kib}, {depth, 32 * kib}}};
}

double halved(double chunk, double per_channel, std::span<const Halving> rules) {
  for (const Halving& rule : rules)
    while (per_channel / chunk < rule.chunks && chunk > rule.least) chunk /= 2;
  return chunk;
}

}  // namespace

double round_of(Bytes bytes, std::int64_t channels, double chunk) {
  return std::min(static_cast<double>(bytes.value), chunk * static_cast<double>(channels));
}

double ring_chunk(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return ll_slot_bytes;
    case Protocol::ll128:
      return ll128_slot_bytes;
    case Protocol::simple:
      return ring_chunk_bytes;
  }
  throw BrokenPromise("unknown protocol");
}

double tree_chunk(Bytes bytes, const NcclMachine& machine, Protocol protocol) {
  const double per_channel =
      static_cast<double>(bytes.value) / static_cast<double>(machine.tree.ctas);
  const TreeCut cut = tree_cut(machine, protocol);
  return halved(cut.chunk, per_channel, cut.rules);
}

double tree_chunks(Bytes bytes, const NcclMachine& machine, Protocol protocol) {
  const auto channels = static_cast<double>(machine.tree.ctas);
  const TreeCut cut = tree_cut(machine, protocol);
  const auto chunks_of = [&](double per_channel) {
    return std::max(1.0, per_channel / halved(cut.chunk, per_channel, cut.rules));
  };
  const double whole = static_cast<double>(bytes.value) / channels;
  double most = chunks_of(whole);
  for (const Halving& rule : cut.rules)  // the last size before a chunk doubles
    for (double chunk = cut.chunk; chunk > rule.least; chunk /= 2)
      if (rule.chunks * chunk <= whole) most = std::max(most, chunks_of(rule.chunks * chunk - 1));
  return most;
}

double nvls_round(Bytes bytes, const NcclMachine& machine, bool tree) {
  const double channels =
      nvls_channels * static_cast<double>(machine.nvls->channels);  // times heads
  const auto size = static_cast<double>(bytes.value);
  double chunk = 128 * kib;
  if (size < 64 * channels * chunk) chunk = 64 * kib;
  if (size < 8 * channels * chunk) chunk = std::min(chunk, 32 * kib);
  if (size < 2 * channels * chunk) chunk = std::min(chunk, 16 * kib);
  if (tree && machine.shape.nodes >= 4) chunk = std::min(chunk, 64 * kib);
  return std::min(size, channels * chunk);
}

}  // namespace stepcast::sim
