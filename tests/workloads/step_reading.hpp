// Reads a StepProgram back: what a role computes and moves. Shared by the tests of workloads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/workloads/fixtures.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::workloads::test {

inline constexpr Batch two{.micro_batch = 2, .micro_batches = 1, .sequence = 4096};

inline ParallelPlan plan_of(DataParallel kind, std::int64_t data, std::int64_t tensor = 1,
                            std::int64_t pipeline = 1) {
  ParallelPlan plan;
  plan.data = kind;
  plan.data_degree = data;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  return plan;
}

/// Bytes of the collectives of one kind that a role joins, by collective name.
inline std::map<std::string, std::int64_t> bytes_by_name(const StepProgram& step,
                                                         std::size_t role = 0) {
  std::map<std::string, std::int64_t> out;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == engine::Op::join)
      out[step.collectives[i.arg].name] += step.collectives[i.arg].bytes.value;
  return out;
}

inline double flops_of(const StepProgram& step, std::size_t role) {
  double sum = 0;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == engine::Op::work) sum += step.kernels[i.arg].flops.value;
  return sum;
}

inline std::int64_t bytes_of_kernels(const StepProgram& step, const std::string& prefix,
                                     std::size_t role = 0) {
  std::int64_t sum = 0;
  for (const auto& i : step.roles[role].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with(prefix))
      sum += step.kernels[i.arg].bytes.value;
  return sum;
}

inline std::vector<std::string> data_lane_order(const StepProgram& step) {
  std::vector<std::string> out;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::join && i.lane == data_lane)
      out.push_back(step.collectives[i.arg].name);
  return out;
}

inline StepProgram step_of(const TransformerShape& s, const ParallelPlan& p, const Batch& b = two,
                           const Software& software = eager(), const Precision& precision = {}) {
  return make_step_program(s, p, b, precision, software);
}

}  // namespace stepcast::workloads::test
