// The ways in which a plan cuts a step, and who meets in each: one row says all that the others ask
// of an axis. A new one is a kind, its row, and whoever writes its operations; what its ranks do is
// not known here.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/program.hpp"

namespace stepcast::engine {
enum class Traffic : std::uint8_t;
}

namespace stepcast::workloads {

struct ParallelPlan;

/// Who takes part in a collective.
enum class GroupKind : std::uint8_t {
  tensor,
  data,               // all copies of the parameters: data x context
  world,              // all ranks: the norm of the gradients
  pipeline_forward,   // stage s -> s + 1: activations, or gradients of parts that lie upwards
  pipeline_backward,  // stage s + 1 -> s: gradients, or activations of such parts
  embedding,          // first and last stage of a pipeline with tied embeddings
  shard,              // hsdp: ranks that share one copy of the sharded state, neighbours in `data`
  replica,            // hsdp: ranks with the same shard of different copies
  context,            // ranks that share a sequence
  context_ring,       // the same ranks, as a ring
  expert,             // ranks that share a layer's experts: they exchange tokens
  expert_tensor,      // ranks that share each expert
  expert_data,        // copies of the same part of the same experts
  mirror,             // two mirrored copies of a model: the ranks with the same parts of both
  tensor_ring,        // the tensor ranks, as a ring
};
inline constexpr int num_group_kinds = 15;

/// Lanes of a rank (CUDA streams). A communicator is used from one lane only, so its collectives
/// run in host launch order, as NCCL's do.
enum Lane : std::uint8_t {
  compute = engine::compute_lane,
  tensor_lane,  // tensor-parallel collectives that overlap compute (software.tensor_overlap)
  data_lane,    // gathers and reductions of the data-parallel or the shard group
  copy_lane,    // FSDP's casts and copy-in beside the compute stream
  send_next_lane,
  receive_previous_lane,
  send_previous_lane,
  receive_next_lane,
  replica_lane,      // hsdp: shards summed over the replicas
  context_lane,      // keys and values on their way round the context ring
  expert_lane,       // tokens on their way to experts where that overlaps compute
  expert_data_lane,  // gathers and reductions among copies of experts
  to_host_lane,      // copies to the host's memory
  from_host_lane,    // and back
  host_lane,         // what the host's processors compute
  num_lanes,
};

/// How the ranks of a group meet: all in a collective, as sender and receiver, or each sending to
/// the next and the last to the first.
enum class Meeting : std::uint8_t { all, pair, ring };

using RankGroups = std::vector<std::vector<std::int64_t>>;

struct Axis {
  GroupKind kind;
  std::string_view name;  // in timelines
  Meeting meeting;
  Lane lane, receiving_lane;                    // where it runs beside compute; a pair has two
  engine::Traffic traffic;                      // what waiting for it is
  std::int64_t (*degree)(const ParallelPlan&);  // ranks of a group
  /// Between neighbours of a group, whose groups then lie one beside the other; null: no number
  /// says it, and `groups` lists them.
  std::int64_t (*stride)(const ParallelPlan&);
  RankGroups (*groups)(const ParallelPlan&);  // null: runs of `degree` ranks, `stride` apart
};

const Axis& axis_of(GroupKind);

/// All groups of a kind, each with its ranks in ascending order (for pairs: sender first); a rank
/// may be in two pairs of one kind (as sender and as receiver). With looped virtual stages the last
/// stage also sends to the first, forward, and the first to the last, backward.
RankGroups groups(const ParallelPlan&, GroupKind);

/// The ranks that share one copy of the sharded state.
GroupKind shard_group(const ParallelPlan&);

/// Ranks between which one collective of this kind moves bytes.
std::int64_t ranks_that_meet(const ParallelPlan&, GroupKind);

/// Communicator slots of a rank: which group of it an instruction means. Pairs have two slots each,
/// as sender and as receiver.
std::uint32_t slot_of(GroupKind, bool receives = false);
std::uint32_t num_slots();

}  // namespace stepcast::workloads
