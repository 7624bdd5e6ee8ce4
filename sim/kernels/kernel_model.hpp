// How long a kernel takes on one GPU when nothing else runs there, and how it suffers when a
// collective takes SMs or memory bandwidth from it. Knows no step.
#pragma once

#include <cstdint>

#include "engine/units.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

struct KernelTime {
  Duration duration{};
  Provenance provenance{};
  std::int64_t tiles = 0;        // thread blocks that fill SMs in waves; 0: not SM-bound
  double memory_fraction = 0.0;  // share of the HBM bandwidth it uses while it runs, 0..1
  double tensor_fraction = 0.0;  // share of the tensor-core peak it reaches, 0..1 (power)
};

class KernelModel {
 public:
  virtual ~KernelModel() = default;
  virtual KernelTime time_of(const workloads::Kernel&) const = 0;
};

/// Slow-down (>= 1) of a kernel while a collective holds `ctas` SMs and draws `memory_traffic` of
/// HBM bandwidth: wave quantisation ceil(tiles / (SMs - ctas)) / ceil(tiles / SMs) for kernels that
/// fill SMs, bandwidth share for memory-bound ones (NVIDIA forum 337991).
double stretch(const KernelTime&, const topology::GpuSpec&, std::int64_t ctas,
               BytesPerSecond memory_traffic);

}  // namespace stepcast::sim
