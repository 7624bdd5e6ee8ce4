// What one simulated step comes to. Times are the mean over ranks of disjoint wall time: they add
// up to the step. Units are in the types; text, JSON and HDF5 are made elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/goal/whole_run.hpp"
#include "sim/goodput/goodput.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/protocol_choice.hpp"
#include "sim/network/stepped/collective.hpp"
#include "sim/run/collective_explanation.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/tables/provenance.hpp"
#include "workloads/memory/figures.hpp"

namespace stepcast::sim {

/// Share of the step's kernel and exposed-communication time that rests on each provenance; sums
/// to 1.
using ProvenanceShares = std::array<double, num_provenances>;

struct ExposedCommunication {
  Duration tensor{}, pipeline{}, data{}, expert{}, offload{};
  Duration total() const { return tensor + pipeline + data + expert + offload; }
};

/// How far a figure may be off, from the errors of forecasts of published measurements
/// (sim/confidence): the measured one lies between `low` and `high` times it in `level` of cases.
struct ErrorBar {
  double low = 1, high = 1;
  double level = 0;
  std::string kind{};        // of the errors that it rests on: "nodes", "all"
  std::size_t sources = 0;   // of these errors
  bool assured = true;       // false: so few sources allow no such level
  double widened = 1;        // because the forecast leaves what was measured
  std::size_t own_runs = 0;  // of the user's, that narrowed it
};

/// The next best of the plans that "best" chose from.
struct RunnerUp {
  std::string plan{};  // "tensor 2, pipeline 4": the knobs that were open
  Duration step_time{};
  std::optional<double> slower{};  // the probability that it is slower when measured
};

struct StepReport {
  // Compiled once, as Scenario's are.
  StepReport();
  StepReport(const StepReport&);
  StepReport(StepReport&&) noexcept;
  StepReport& operator=(const StepReport&);
  StepReport& operator=(StepReport&&) noexcept;
  ~StepReport();

  Scenario scenario;             // resolved: degrees chosen, batch filled in
  Duration step_time{};          // with noise of kernels: the mean of scenario.noise.steps
  Duration step_deviation{};     // ... and the standard deviation of a step from it
  Duration compute{};            // kernels of the model run, interference included
  Duration interference{};       // of it: what communication added to kernel times
  ExposedCommunication exposed;  // bytes move and no compute kernel runs
  Duration bubble{};             // waiting for a pipeline peer
  Duration wait{};               // waiting for a group's last member
  Duration host{};               // nothing launched
  Duration communication{};      // span of collective kernels per rank, waiting included
  double tokens_per_second = 0.0;
  FlopsPerSecond model_flops_per_gpu{};  // workloads::model_flops over step time, per GPU
  double mfu = 0.0;                      // of GpuSpec::tensor_peak
  workloads::MemoryFigures memory;       // replayed where it decides, and in every answer
  Watts power_per_gpu{};
  Joules energy{};  // of all GPUs, one step
  double tokens_per_joule = 0.0;
  ProvenanceShares kernel_provenance{};          // share of compute time by origin
  ProvenanceShares network_provenance{};         // share of collective time by origin
  std::optional<ErrorBar> step_bar, memory_bar;  // filled in where an answer is shown
  std::optional<double> p_fits;                  // likewise: that the plan fits into memory
  std::optional<RunnerUp> runner_up;
  std::optional<WholeRun> whole_run;         // where it is asked for, once it is an answer
  std::optional<Goodput> goodput;            // with [failures], filled in where an answer is shown
  std::vector<ProtocolChoice> nccl_choices;  // of protocols, by NCCL's own estimate
  std::vector<std::string> warnings;
  std::int64_t simulated_ranks = 0;  // after folding
  std::int64_t events = 0;
};

struct CollectiveReport {
  Scenario scenario;
  CollectiveTime time;
  std::vector<std::string> warnings{};
  std::optional<CollectiveExplanation> explanation{};  // where it was asked for
  std::optional<SteppedCollective> stepped{};          // likewise
  std::optional<ErrorBar> bar{};                       // filled in where it is shown
};

}  // namespace stepcast::sim
