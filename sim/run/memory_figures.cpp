#include "sim/run/memory_figures.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/units_text.hpp"

namespace stepcast::sim {
namespace {

std::int64_t nccl_channels(const topology::GpuSpec& gpu) { return gpu.architecture.channels; }

workloads::StepInputs inputs_of(const Scenario& s) {
  return {s.model, s.plan, s.batch, s.precision, s.software};
}

}  // namespace

workloads::MemoryFigures fullest_memory(const Scenario& s, const workloads::ParallelPlan& plan,
                                        const workloads::Batch& batch) {
  return workloads::fullest_memory(s.model, plan, batch, s.precision, s.software,
                                   nccl_channels(s.node.gpu));
}

workloads::MemoryFigures fullest_memory(const Scenario& s) {
  return fullest_memory(s, s.plan, s.batch);
}

void replay(workloads::MemoryFigures& figures, const Scenario& s) {
  if (!figures.replayed()) figures = memory_figures(s);
}

workloads::MemoryFigures memory_figures(const Scenario& s) {
  return workloads::replayed(fullest_memory(s), inputs_of(s));
}

workloads::MemoryFigures memory_of_stage(const Scenario& s, std::int64_t stage) {
  return workloads::replayed(workloads::stage_figures(s.model, s.plan, s.batch, s.precision,
                                                      s.software, stage, nccl_channels(s.node.gpu)),
                             inputs_of(s));
}

bool fits_in(Bytes room, const Scenario& s, const workloads::MemoryFigures& figures) {
  return workloads::fits_in(room, figures, inputs_of(s));
}
bool fits(const Scenario& s, const workloads::MemoryFigures& figures) {
  return fits_in(s.node.gpu.memory, s, figures);
}
bool fits(const Scenario& s) { return fits(s, fullest_memory(s)); }

workloads::Fit fit_in(Bytes room, const Scenario& s, const workloads::MemoryFigures& figures) {
  return workloads::fit_of(figures, room, s.plan, s.software);
}

std::string reserve_warning(const Scenario& s, const workloads::MemoryFigures& figures) {
  if (!fits(s, figures) || figures.process() <= s.node.gpu.memory) return {};
  return fmt::format(
      "the allocator would reserve {} where {} are free: it will have to give blocks back, which "
      "waits for the GPU",
      to_text(figures.reserved), to_text(s.node.gpu.memory - Bytes(figures.fixed.total())));
}

}  // namespace stepcast::sim
