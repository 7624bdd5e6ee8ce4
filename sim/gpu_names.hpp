// Whether a measured GPU ("H100-SXM5-80GB", "A100") is the catalogue's GPU ("h100-sxm5-80gb"), a
// relative whose times can be scaled, or another machine. Knows no measurement.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/units.hpp"

namespace stepcast::sim {

enum class Kinship : std::uint8_t {
  same,       // every word of the shorter name is in the longer: the same chip and memory
  same_chip,  // the same chip in the same form, other memory: A100-SXM4-40GB and -80GB
  sibling,    // the same generation of chip: H200, H800, H100-PCIe for H100-SXM5
  foreign,
};

/// Letter case does not count; words are separated by '-'.
Kinship kinship(std::string_view measured, std::string_view catalogue);

/// The 16-bit tensor peak of a chip that rows are published for, to scale a sibling's times.
std::optional<FlopsPerSecond> tensor_peak_of(std::string_view measured);

/// NVLink of a chip that rows are published for, all links of its module, one direction.
std::optional<BytesPerSecond> nvlink_of(std::string_view measured);

/// Whether a catalogue GPU has been given another 16-bit peak than the chip it is named after: a
/// what-if, whose times are those of the chip scaled by the peaks. Within 0.5 % is no difference
/// (989 and 989.4 TFLOP/s are both in use for H100).
bool altered(std::string_view measured, FlopsPerSecond catalogue_peak);

}  // namespace stepcast::sim
