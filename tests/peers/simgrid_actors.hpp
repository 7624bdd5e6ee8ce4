// Collectives as SimGrid actors that send and receive, written from the algorithms themselves and
// not from our expansion of them. Each function simulates one collective and returns its time.
#pragma once

#include "sim/network/stepped/layout.hpp"

namespace stepcast::peers {

/// How the members of a collective talk.
struct Talk {
  double bytes = 0.0;                     // of the whole collective
  double transfer = 0.0;                  // seconds that paced edges take for all their bytes
  Duration hop_in_node{}, hop_between{};  // before a message that was received is passed on
  bool latencies = false;                 // links have theirs, and a sender waits for the arrival
};

double simgrid_ring(const topology::Cluster&, const sim::SteppedLayout&, std::size_t steps,
                    const Talk&);
/// Pipelined AllReduce over the two trees of every channel.
double simgrid_trees(const topology::Cluster&, const sim::SteppedLayout&, std::uint32_t chunks,
                     const Talk&);
/// Every member sends to all others of its node and, beside it, to those of the other nodes.
double simgrid_all_to_all(const topology::Cluster&, const sim::SteppedLayout&, const Talk&);

/// 64 rings of 20 rounds on hosts in leaves of 32 under `spines` spines.
double simgrid_concurrent_rings(std::uint32_t hosts, std::uint32_t spines);

}  // namespace stepcast::peers
