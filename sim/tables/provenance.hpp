// Where a time comes from. Every kernel and collective time carries one; the report says how much
// of the step rests on each.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast::sim {

enum class Provenance : std::uint8_t {
  measured,      // this very shape was measured on this GPU
  interpolated,  // between measured shapes of the same implementation
  extrapolated,  // beyond the measured range, or measured on a sibling GPU and scaled
  derived,       // bytes x achieved fraction of HBM, or a published rate times a shape
  model,         // NCCL's latency and bandwidth terms, corrected
  datasheet,     // roofline from peaks: nothing else is known
};
inline constexpr int num_provenances = 6;

std::string_view name_of(Provenance);

/// What is left of it where the machine is not the one that was measured: nothing of it is measured
/// here, so it is derived. Models stay models.
constexpr Provenance without_measurements_of_its_own(Provenance provenance) {
  return provenance < Provenance::derived ? Provenance::derived : provenance;
}

}  // namespace stepcast::sim
