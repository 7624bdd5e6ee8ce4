// How long a collective takes alone, with which algorithm, protocol and channels NCCL would run it,
// and which links it loads. Sharing between collectives is the engine's fluid layer.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/units.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/cluster.hpp"
#include "topology/router.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// How a group lies on the nodes; all that time depends on.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;  // the largest number on one node
  std::int64_t node_stride = 1;     // distance between successive nodes of the group

  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

GroupShape shape_of(const topology::Cluster&, const std::vector<std::int64_t>& ranks);

/// Copies of a token that travel, over those that an AlltoAll sends: one to each expert. Kernels
/// that know where tokens go send one to each node, and one to each rank from there.
struct TokenCopies {
  double to_nodes = 1.0, to_ranks = 1.0;

  friend auto operator<=>(const TokenCopies&, const TokenCopies&) = default;
};

/// How bytes move: with its group all that the load on links follows from.
struct Delivery {
  workloads::CollectiveKind kind{};
  Algorithm algorithm{};
  TokenCopies copies{};

  friend auto operator<=>(const Delivery&, const Delivery&) = default;
};

struct CollectiveTime {
  Duration duration{};  // alone on its links, from the arrival of the last member
  Algorithm algorithm{};
  Protocol protocol{};
  TokenCopies copies{};
  std::int64_t channels = 1;
  std::int64_t ctas = 1;            // SMs it holds on every member while it runs or waits
  BytesPerSecond memory_traffic{};  // HBM traffic on every member while bytes move
  BytesPerSecond algbw{}, busbw{};
  Provenance provenance{};

  // What `duration` is made of; latency + transfer == duration exactly.
  Duration latency{};     // start, hops and filling the pipeline: no link is busy for it
  Duration fill{};        // of latency, before `correction`: filling the pipeline
  Duration transfer{};    // bytes / bandwidth and messages, alone on the links
  Duration messages{};    // of transfer: what NICs take for each message beside its bytes
  std::int64_t hops = 0;  // that follow one another: ring steps, or levels up and down a tree
  std::int64_t network_hops = 0;  // of them between nodes
  Duration hop_in_node{}, hop_between_nodes{};
  Duration start{};  // of the kernel, by the model
  // Of latency: what the wires add to each hop beside the catalogue's (path_latency.hpp). In a node
  // it counts passes of an NVSwitch as well.
  std::int64_t path_hops_in_node = 0;
  Duration path_in_node{}, path_between_nodes{};
  Duration nccl_estimate{};  // by which NCCL chose: ranks, does not predict
  double correction = 1.0;   // duration / model, where measurements of neighbours are known
  std::string rests_on;      // source of the measured curve; empty for a model
};

/// Bytes over each link per byte of Collective::bytes; a link may appear once.
struct LinkLoad {
  topology::LinkId link = 0;
  double bytes_per_byte = 0.0;

  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

class NetworkModel {
 public:
  virtual ~NetworkModel() = default;
  virtual CollectiveTime time_of(const workloads::Collective&, const GroupShape&) const = 0;
  /// Links that bytes load on their way between these GPUs (ranks are GPU indexes, sender first
  /// for send_receive, root first for Broadcast and Reduce).
  virtual std::vector<LinkLoad> loads_of(const Delivery&,
                                         const std::vector<std::int64_t>& ranks) const = 0;
};

inline Delivery delivery_of(workloads::CollectiveKind kind, const CollectiveTime& time) {
  return {kind, time.algorithm, time.copies};
}

/// A collective that only its kind, bytes and type tell apart.
inline workloads::Collective plain_collective(workloads::CollectiveKind kind, Bytes bytes,
                                              workloads::Dtype dtype = workloads::Dtype::bf16) {
  return {.name = {}, .kind = kind, .group = {}, .dtype = dtype, .bytes = bytes, .tokens = {}};
}

}  // namespace stepcast::sim
