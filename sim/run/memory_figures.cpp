#include "sim/run/memory_figures.hpp"

#include <fmt/format.h>

#include "engine/units_text.hpp"

namespace stepcast::sim {
namespace {

/// What NCCL's search finds in a node of them (`stepcast collective all_reduce`): 12 in a DGX-1 of
/// V100, 24 in NVSwitch nodes of A100; nodes of H100 and later are taken for the latter.
std::int64_t nccl_channels(const topology::GpuSpec& gpu) {
  return gpu.architecture == topology::Architecture::volta ? 12 : 24;
}

}  // namespace

workloads::MemoryFigures memory_figures(const Scenario& s) {
  return workloads::memory_figures(s.model, s.plan, s.batch, s.precision, s.software,
                                   nccl_channels(s.node.gpu));
}

bool fits(const Scenario& s, const workloads::MemoryFigures& figures) {
  return figures.needed() <= s.node.gpu.memory;
}

bool fits(const Scenario& s) {
  return workloads::fits_in(s.node.gpu.memory, s.model, s.plan, s.batch, s.precision, s.software,
                            nccl_channels(s.node.gpu));
}

bool surely_fits(const Scenario& s, Bytes parts) {
  return static_cast<double>(parts.value) * (1 + replay_leaves) <=
         static_cast<double>(s.node.gpu.memory.value);
}

bool surely_too_much(const Scenario& s, Bytes parts) {
  return static_cast<double>(parts.value) >
         static_cast<double>(s.node.gpu.memory.value) * (1 + replay_leaves);
}

std::string reserve_warning(const Scenario& s, const workloads::MemoryFigures& figures) {
  if (!fits(s, figures) || figures.process() <= s.node.gpu.memory) return {};
  return fmt::format(
      "the allocator would reserve {} where {} are free: it will have to give blocks back, which "
      "waits for the GPU",
      to_text(figures.reserved), to_text(s.node.gpu.memory - Bytes(figures.fixed.total())));
}

}  // namespace stepcast::sim
