// What many scenarios share, read and built once: the catalogue's files, calibration tables, the
// models of kernels and networks. Answers scenarios with it; knows how none of them is simulated.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/program/cache.hpp"
#include "sim/run/machine.hpp"
#include "sim/run/memory_odds.hpp"
#include "sim/run/simulate.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// Threads may share one: what it holds is made once and changed by nobody, so that an answer does
/// not depend on who asked before. What it keeps is bounded. A file that changes while a session
/// lives is not read again.
class Session {
 public:
  /// `catalogue` is borrowed.
  explicit Session(const Catalogue& catalogue);

  const Catalogue& catalogue() const { return catalogue_; }

  /// Forecasts one step. Throws NoFeasiblePlan when a rank needs more memory than the GPU has
  /// (unless scenario.run.ignore_memory), naming the parts; InputError when the degrees do not fit
  /// the model or the cluster. scenario.open must be resolved already (see
  /// sim/study/answer.hpp).
  StepReport step(const Scenario& scenario);
  /// The two halves of step(): what can be said before anything is simulated, and the rest.
  StepReport admit(const Scenario& scenario);
  void simulate(const Scenario& scenario, StepReport& admitted);
  /// The same, and what the ranks that `timeline` asks for did when; `approval` hears first how
  /// much that is.
  StepReport timeline(const Scenario& scenario, Timeline& timeline,
                      const TimelineApproval& approval = {});
  /// Answers a scenario with a [collective] table.
  CollectiveReport collective(const Scenario& scenario);
  /// The step's program bound to times, as step() runs it but for [noise], every micro-batch
  /// written out.
  BoundStep bound_step(const Scenario& scenario);

  /// The tables of these names as one.
  std::shared_ptr<const CalibrationTable> tables(const std::vector<std::string>& names);
  /// Of the scenario's tables at least the rows of its GPU's kin, and of attention all: what its
  /// models and measurements are made of.
  std::shared_ptr<const CalibrationTable> rows_for(const Scenario& scenario);
  std::shared_ptr<const Network> network(const Scenario& scenario);
  std::shared_ptr<const KernelModel> kernels(const Scenario& scenario);
  /// Of the catalogue's confidence/memory.csv where it has one, read when it is first asked for.
  /// Throws InputError with file:line.
  const MemoryOdds& memory_odds();

 private:
  struct WiringKey {
    topology::NodeSpec node;
    std::int64_t nodes = 1;
    topology::FabricSpec fabric;
    friend bool operator==(const WiringKey&, const WiringKey&) = default;
  };
  struct NetworkKey {
    WiringKey wiring;
    std::string nccl, exchange;
    NcclOverrides overrides;
    std::vector<std::string> tables;
    std::string origin;  // stands in the errors of a host's network; empty for a cluster
    friend bool operator==(const NetworkKey&, const NetworkKey&) = default;
  };
  struct KernelsKey {
    topology::GpuSpec gpu;
    workloads::Software software;
    std::vector<std::string> tables;
    topology::HostShare host;
    friend bool operator==(const KernelsKey&, const KernelsKey&) = default;
  };
  /// What a step's program depends on.
  struct ProgramKey {
    workloads::TransformerShape model;
    workloads::ParallelPlan plan;
    workloads::Batch batch;
    workloads::Precision precision;
    workloads::Software software;
    friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
  };

  StepReport admitted_here(const Scenario& scenario);
  /// Of the scenario with its measurements, micro-batches that do the same written once.
  std::shared_ptr<const workloads::StepProgram> program(const Scenario& scenario);
  void simulate_here(const Scenario& scenario, StepReport& admitted, Timeline* timeline,
                     const TimelineApproval& approval);

  const Catalogue& catalogue_;
  std::once_flag odds_read_;
  MemoryOdds odds_;
  std::mutex reading_;  // HDF5 serves one thread at a time
  Cache<std::string, CalibrationTable> files_;
  Cache<std::vector<std::string>, CalibrationTable> tables_;
  // Of the first GPU's kin alone, which is half as soon read as all rows: these serve all others.
  std::mutex choosing_;
  std::vector<std::string> first_kin_;
  Cache<std::vector<std::string>, CalibrationTable> kin_rows_;  // by the names of the kin
  Cache<WiringKey, Wiring> wirings_;
  Cache<NetworkKey, Network> networks_;
  Cache<KernelsKey, CalibratedKernels> kernels_;
  Cache<ProgramKey, workloads::StepProgram> programs_;
};

}  // namespace stepcast::sim
