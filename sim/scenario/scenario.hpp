// A run as a value: which model, which cluster, which plan. Read from TOML by file.hpp,
// where every mistake is reported with file and line; here everything is resolved and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/network/ablation.hpp"
#include "sim/network/nccl/variables.hpp"
#include "sim/scenario/noise.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// The micro-batches that were asked for; what is left open follows from the plan.
struct MicroBatching {
  std::optional<std::int64_t> micro_batch;    // sequences per replica and micro-batch
  std::optional<std::int64_t> micro_batches;  // per step
};

/// A [collective] table: one collective over all GPUs of the cluster instead of a training step.
struct CollectiveQuery {
  workloads::CollectiveKind kind{};
  Bytes bytes{};
  workloads::Dtype dtype = workloads::Dtype::bf16;
};

enum class Steps : std::uint8_t { steady, cold };

struct RunOptions {
  Steps steps = Steps::steady;
  std::uint64_t seed = 1;
  bool fold = true;            // run ranks that are provably alike once
  bool check_fold = false;     // run both ways and fail on a difference
  bool ignore_memory = false;  // go on although the plan does not fit
  bool explain = false;        // a collective: also why it takes so long
  bool stepped = false;        // a collective: also chunk by chunk over the links
  Ablation without;            // effects to leave out
  double confidence = 0.8;     // level of the error bars
};

struct Scenario {
  std::string title;
  std::string origin;  // file:line or "--options", for errors about the whole
  workloads::TransformerShape model;
  std::vector<std::string> model_notes;  // where it is only nearly what its config.json says
  topology::NodeSpec node;
  std::int64_t nodes = 1;
  std::int64_t gpus = 8;  // nodes x GPUs per node, or fewer on one node
  topology::FabricSpec fabric;
  std::string nccl = "2.20";
  std::vector<NcclVariable> nccl_variables;  // [nccl], as written
  NcclOverrides nccl_overrides;              // and as understood
  workloads::ParallelPlan plan;
  std::optional<workloads::ReduceWhen> reduce;  // as asked for; none: plan.reduce is the software's
  std::vector<std::int64_t>
      stage_layers;          // as asked for; empty: plan.stage_layers is the software's
  bool best_tensor = false;  // plan.tensor = "best": the fastest degree that fits
  bool best_pipeline = false;
  workloads::Batch batch;
  std::int64_t global_batch = 0;  // sequences per step over all replicas
  MicroBatching micro;
  workloads::Precision precision;
  workloads::Software software;
  std::string software_by_default;  // why it was chosen; empty: the user named it
  std::vector<std::string> tables;  // calibration files, later ones win; "published" is shipped
  std::vector<std::string> runs;    // CSV files of the user's own measured steps
  bool measured_launch = false;     // the tables' cost of a launch instead of the software's
  std::optional<CollectiveQuery> collective;
  Noise noise;
  RunOptions run;
  std::string plan_origin;           // where [plan] stands
  std::string batch_origin;          // where [batch] stands
  std::vector<std::string> changed;  // keys that say something else than what holds without them
};

/// The same scenario with these degrees: the data degree and the micro-batches follow from GPUs and
/// global batch. Throws InputError when they do not multiply to the GPUs or do not divide heads or
/// batch.
Scenario with_degrees(Scenario scenario, std::int64_t tensor, std::int64_t pipeline);

/// Sequences per GPU and step, the study's "effective local batch"; may be a fraction.
double local_batch(const Scenario& scenario);

}  // namespace stepcast::sim
