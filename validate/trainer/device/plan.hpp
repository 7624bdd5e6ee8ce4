// What the trainer is to do, and the part of it that one rank has: sizes of its share of a
// micro-batch, its place in the plan. From the same scenario that the simulator reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "validate/trainer/device/kernels.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::validate {

/// AdamW as Llama 2 used it (arXiv 2307.09288, section 2.2), with a learning rate for small models
/// and no schedule.
struct Learning {
  double rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double largest_norm = 1.0;     // gradients beyond it are scaled down
  double initial_spread = 0.02;  // standard deviation of the first weights
  std::uint64_t seed = 1;
};

struct TrainerJob {
  workloads::TransformerShape model;
  workloads::ParallelPlan plan;
  workloads::Batch batch;
  workloads::Precision precision;
  workloads::Software software;
  Learning learning;
};

TrainerJob job_of(const sim::Scenario& scenario);

/// Throws InputError at `where` for what the trainer cannot train: models that are not Llama-like,
/// precisions, plans and software that it does not know.
void check(const TrainerJob& job, const std::string& where);

/// A model chunk of a rank: layers [first_here, first_here + layers) of its own.
struct ChunkShare {
  std::size_t layers = 0, first_here = 0;
  std::int64_t first_layer = 0;      // of the model
  bool first = false, last = false;  // of the model's parts
};

/// What a rank has of layers of experts. Where all rows that may come fit: S of its own tokens, R
/// for its experts.
struct ExpertShare {
  ExpertChoice choice;                    // among all experts
  std::size_t here = 0;                   // experts of this rank, `here` x `rank` before them
  std::size_t ranks = 1, rank = 0;        // that share a layer's experts, and which of them this is
  std::size_t copies = 1, copy = 0;       // ranks with the same experts, likewise
  std::size_t ffn = 0;                    // F of one expert
  std::size_t rows_out = 0, rows_in = 0;  // S, R at most

  bool shared() const { return ranks > 1; }
  /// Rows of several sources come to several experts.
  bool sorts() const { return ranks > 1 && here > 1; }
  /// How many rows there are, tokens say: the host reads it. Else S is known, and R.
  bool counted() const { return !choice.padded && (shared() || choice.capacity > 0); }
};

/// One rank's share. In elements; T = micro_batch x sequence.
struct RankShare {
  RankShare(const TrainerJob& job, std::int64_t rank);

  std::size_t tokens;        // T
  std::size_t local_tokens;  // T / tensor under sequence parallel: norms and residuals
  std::size_t hidden;
  std::size_t query, kv;  // columns of q and of k, v
  std::size_t ffn;
  VocabularyPart vocab;
  AttentionSizes attention;
  ExpertShare experts;

  workloads::Coordinates at;
  std::vector<ChunkShare> chunks;
  std::size_t layers = 0;  // of all chunks
  bool first_stage, last_stage;
  std::size_t shards, shard;  // ranks that share the sharded state, and which of them this is
  bool split;                 // tensor > 1
  bool sequence_parallel;     // and split
  bool has_root;              // embedding or head
  std::size_t units() const { return layers + (has_root ? 1 : 0); }
  std::size_t unit_of_layer(std::size_t layer) const { return layer + (has_root ? 1 : 0); }
  /// Of this rank's layers.
  std::size_t layer_here(std::size_t unit) const { return unit - (has_root ? 1 : 0); }
  /// Of the model.
  std::int64_t layer_of_unit(std::size_t unit) const;
  bool has_experts(std::size_t unit) const;
  const workloads::ParameterTensors& tensors_of(std::size_t unit) const;

  workloads::StageParameters parameters;
};

}  // namespace stepcast::validate
