// A run as a value: which model, which cluster, which plan. Read from TOML by file.hpp,
// where every mistake is reported with file and line; here everything is resolved and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/network/ablation.hpp"
#include "sim/network/nccl/variables.hpp"
#include "sim/scenario/failures.hpp"
#include "sim/scenario/noise.hpp"
#include "sim/scenario/run_goal.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/rules.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/stage_split.hpp"
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
  bool fold = true;                    // run ranks that are provably alike once
  bool check_fold = false;             // run both ways and fail on a difference
  bool ignore_memory = false;          // go on although the plan does not fit
  bool no_limit = false;               // go on beyond the budget
  bool memory_is_known = false;        // whether it fits is not looked at: who asks knows
  bool explain = false;                // a collective: also why it takes so long
  bool stepped = false;                // a collective: also chunk by chunk over the links
  Ablation without;                    // effects to leave out
  double confidence = 0.8;             // level of the error bars
  std::optional<double> refuse_below;  // probability to fit below which a plan is refused
  /// Of one plan what surely does not fit; of many that are compared what more likely does not.
  double refused_below() const { return refuse_below.value_or(0.02); }
  double left_out_below() const { return refuse_below.value_or(0.5); }
  double fits = 0.9;  // probability to fit from which a search takes a plan for one that does
};

struct Scenario {
  // Compiled once: of this size, in two dozen files, they take a tenth of the build.
  Scenario();
  Scenario(const Scenario&);
  Scenario(Scenario&&) noexcept;
  Scenario& operator=(const Scenario&);
  Scenario& operator=(Scenario&&) noexcept;
  ~Scenario();

  std::string title;
  std::string origin;  // file:line or "--options", for errors about the whole
  workloads::TransformerShape model;
  std::vector<std::string> model_notes;  // where it is only nearly what its config.json says
  topology::NodeSpec node;
  std::int64_t nodes = 1;
  std::int64_t gpus = 8;             // nodes x GPUs per node, or fewer on one node
  std::int64_t gpus_per_domain = 0;  // of each node, in use; 0: all it has
  topology::FabricSpec fabric;
  std::string exchange;  // kernels of scenarios/exchange; empty: the usual ones
  std::string nccl = "2.20";
  std::vector<NcclVariable> nccl_variables;  // [nccl], as written
  NcclOverrides nccl_overrides;              // and as understood
  workloads::ParallelPlan plan;
  std::optional<workloads::ReduceWhen> reduce;  // as asked for; none: plan.reduce is the software's
  std::vector<std::int64_t>
      stage_layers;               // as asked for; empty: plan.stage_layers is the software's
  std::vector<std::string> open;  // keys that say "best": plan and batch are those of the fastest
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
  RunGoal goal;
  Cost cost;
  Site site;
  PowerCount power_count = PowerCount::modelled;
  Failures failures;
  RunOptions run;
  std::string plan_origin;           // where [plan] stands
  std::string batch_origin;          // where [batch] stands
  std::string precision_origin;      // where [precision] stands
  std::vector<std::string> changed;  // keys that say something else than what holds without them
};

/// Degrees on the GPUs of a cluster, and a step's sequences on what copies of the model that
/// leaves.
struct DegreeCase {
  const workloads::ParallelPlan& plan;  // tensor, context and pipeline; then the data degree
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  const MicroBatching& micro;
};
std::span<const workloads::Rule<DegreeCase>> degree_rules();
/// Of a plan with its data degree.
std::span<const workloads::Rule<DegreeCase>> batch_rules();

/// What batch_rules() allow. Without a wish: one micro-batch if there is no pipeline, else
/// micro-batches of one sequence.
workloads::Batch batch_of(const DegreeCase&, std::int64_t sequence);

/// What a plan leaves open, as asked for; what is not asked for follows from framework and plan.
struct PlanWishes {
  std::optional<workloads::ReduceWhen> reduce{};
  MicroBatching micro{};
  std::optional<workloads::StageSplit> split{};
  std::vector<std::int64_t> stage_layers{};
};

class RuleTally;

/// Fills in what follows from the degrees of `plan` and the wished micro-batch, for the scenario's
/// machine: the data degree and the batch. False where a rule is broken, which `tally` counts for
/// as many `plans`.
bool complete_batch(const Scenario& scenario, const PlanWishes& wishes,
                    workloads::ParallelPlan& plan, workloads::Batch& batch,
                    RuleTally* tally = nullptr, std::size_t plans = 1);
/// Of a plan with its batch all else (reduction, layers of stages), for model and software.
bool complete_rest(const Scenario& scenario, const PlanWishes& wishes,
                   workloads::ParallelPlan& plan, const workloads::Batch& batch,
                   RuleTally* tally = nullptr);

/// The same scenario with these degrees: the data degree and the micro-batches follow from GPUs and
/// global batch. Throws InputError when they do not multiply to the GPUs or do not divide heads or
/// batch.
Scenario with_degrees(Scenario scenario, std::int64_t tensor, std::int64_t pipeline);

/// Sequences per GPU and step, the study's "effective local batch"; may be a fraction.
double local_batch(const Scenario& scenario);

}  // namespace stepcast::sim
