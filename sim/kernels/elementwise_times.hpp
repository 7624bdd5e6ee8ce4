// How long a kernel takes that only moves bytes, from what was measured on this very GPU: by kind,
// over the bytes. Knows no fraction of a peak.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/tables/calibration_table.hpp"
#include "sim/tables/provenance.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

struct ElementwiseTime {
  Duration duration{};
  Provenance provenance{};
};

class ElementwiseTimes {
 public:
  /// Takes rows that say how often they were sampled, operands cold: of stepcast-calibrate. Where
  /// there are none, published rows of norms by the implementation that such software calls.
  /// Published rows of other programs' kernels (vLLM's) say nothing about a training step's.
  ElementwiseTimes(const std::vector<ElementwiseRow>& rows, const topology::GpuSpec& gpu,
                   workloads::Fusion fusion = workloads::Fusion::own);

  /// None where neither the kernel's kind nor one that stands for it was measured.
  std::optional<ElementwiseTime> time_of(const workloads::Kernel& kernel) const;

 private:
  using Curve = std::map<double, double>;  // seconds by bytes
  using Key = std::pair<std::string, bool>;

  using Points = std::map<Key, std::map<double, std::vector<double>>>;
  void take(const Points& points);
  const Curve* curve_of(std::string_view kind, bool backward) const;

  std::map<Key, Curve> curves_;
  bool published_ = false;  // all of them
};

}  // namespace stepcast::sim
