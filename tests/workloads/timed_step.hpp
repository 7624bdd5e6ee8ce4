// Runs a StepProgram by engine with the times that a test gives its kernels and messages, launched
// for nothing, on links that nobody shares: what closed forms are held against.
#pragma once

#include <functional>

#include "engine/run.hpp"
#include "tests/workloads/step_reading.hpp"

namespace stepcast::workloads::test {

using KernelTimes = std::function<Duration(const Kernel&)>;
using MessageTimes = std::function<Duration(const Collective&)>;

inline engine::System timed_system(const StepProgram& step, const ParallelPlan& plan,
                                   const KernelTimes& kernels, const MessageTimes& messages) {
  engine::System s;
  s.roles = step.roles;
  const auto ranks = static_cast<std::size_t>(plan.ranks());
  for (std::size_t r = 0; r < ranks; ++r)
    s.role_of_rank.push_back(
        static_cast<std::uint32_t>(coordinates_of(plan, static_cast<std::int64_t>(r)).pipeline));
  s.host_costs.assign(num_host_costs, Duration{});
  for (const Kernel& kernel : step.kernels)
    s.works.push_back(
        {kernels(kernel), 0,
         on_host(kernel.family) ? std::uint8_t(engine::Traffic::offload) : engine::own_work});
  s.stretch.assign(engine::num_states, 1.0);
  s.communicator_of.assign(num_slots(), std::vector<std::uint32_t>(ranks, engine::no_communicator));
  for (int k = 0; k < num_group_kinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    const bool pair = axis_of(kind).meeting == Meeting::pair;
    for (const auto& group : groups(plan, kind)) {
      const auto id = static_cast<std::uint32_t>(s.communicators.size());
      s.communicators.push_back({{group.begin(), group.end()}, 0, {}});
      for (std::size_t m = 0; m < group.size(); ++m)
        s.communicator_of[slot_of(kind, pair && m > 0)][static_cast<std::size_t>(group[m])] = id;
    }
  }
  for (const Collective& c : step.collectives) {
    const double alone = std::max(seconds(messages(c)), 1e-12);
    s.transfers.push_back({1e9 * alone, BytesPerSecond(1e9), axis_of(c.group).traffic, 0});
  }
  return s;
}

/// One step from rest.
inline engine::RunResult timed_run(
    const StepProgram& step, const ParallelPlan& plan, const KernelTimes& kernels,
    const MessageTimes& messages = [](const Collective&) { return Duration{}; }) {
  return engine::run(timed_system(step, plan, kernels, messages), {.cold = true});
}

}  // namespace stepcast::workloads::test
