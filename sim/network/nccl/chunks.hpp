// How NCCL cuts a message into chunks: the bytes that one round over all channels moves. A level of
// a tree or a switch passes a chunk on only when it is there.
#pragma once

#include <span>

#include "sim/files/nccl_names.hpp"
#include "sim/network/search/graph.hpp"

namespace stepcast::sim {

// A channel's buffer is 4 MiB in 8 slots; Ring with Simple moves chunks of 4 slots (init.cc,
// collectives.h, NCCL 2.28.9).
inline constexpr double slot_bytes = 512.0 * 1024;
inline constexpr double ring_chunk_bytes = 4 * slot_bytes;
// LL128 and LL: a slot of 600 KiB, of which 15/16 are data, and one of 64 KiB, of which half are
// (nccl.h NCCL_LL128_ELEMS_PER_THREAD x NCCL_LL128_MAX_NTHREADS, NCCL_LL_LINES_PER_THREAD;
// recalled, 2026).
inline constexpr double ll128_slot_bytes = 600.0 * 1024 * 15 / 16;
inline constexpr double ll_slot_bytes = 32.0 * 1024;
inline constexpr double nvls_channels = 16.0;

/// `channels` chunks, or the whole message where it is less.
double round_of(Bytes bytes, std::int64_t channels, double chunk);

/// Ring: what a channel sends of each rank's part in one loop.
double ring_chunk(Protocol protocol);

/// Tree: a slot, halved while the message is not worth eight (four, one) chunks per level and
/// channel (enqueue.cc); LL takes 16 KiB.
double tree_chunk(Bytes bytes, const NcclMachine& machine, Protocol protocol);

/// Into how many of them a channel cuts this message, or a shorter one that is cut finer: a message
/// that gets longer chunks for being longer is not faster for it.
double tree_chunks(Bytes bytes, const NcclMachine& machine, Protocol protocol);

/// NVLS and NVLSTree: 128 KiB per channel and head, less for shorter messages (enqueue.cc), 64 KiB
/// at most for a tree of 4 nodes and more.
double nvls_round(Bytes bytes, const NcclMachine& machine, bool tree);

}  // namespace stepcast::sim
