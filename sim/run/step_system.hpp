// Puts times and links on a step program: StepProgram + Layout + KernelModel + NetworkModel become
// an engine::System, with what the report needs to explain it.
#pragma once

#include <memory>
#include <vector>

#include "engine/system.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/protocol_choice.hpp"
#include "sim/run/layout.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// What a rank of one role does in a step, for provenance and power.
struct RoleLoad {
  std::vector<double> compute_seconds;  // by Provenance, kernels alone
  std::vector<double> network_seconds;  // by Provenance, collectives alone
  double tensor_seconds = 0.0;          // of kernels that run on tensor cores
  double memory_seconds = 0.0;          // sum of duration x memory_fraction
};

struct StepSystem {
  engine::System system;
  std::vector<ProtocolChoice> choices;  // that NCCL made
  std::vector<RoleLoad> loads;          // by role
  std::vector<double> hbm;              // by kernel: share of the HBM's bandwidth
  std::vector<topology::LinkId> links;  // by link of the system: one of those that it stands for
  std::shared_ptr<const Layout> layout;
};

/// What a call costs the host, by workloads::HostCost.
std::vector<Duration> host_costs_of(const workloads::Software&);

StepSystem make_step_system(const Scenario& scenario, const workloads::StepProgram& program,
                            const Layouts& layouts, const KernelModel& kernels,
                            const NetworkModel& network);

}  // namespace stepcast::sim
