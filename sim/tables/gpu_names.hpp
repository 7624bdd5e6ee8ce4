// Whether a measured GPU ("H100-SXM5-80GB", "A100") is the catalogue's GPU ("h100-sxm5-80gb"), a
// relative whose times can be scaled, or another machine. Knows no measurement and no GPU: what the
// relatives are comes with the GPU from the catalogue (gpu_identity.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/units.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {

enum class Kinship : std::uint8_t {
  same,       // every word of the shorter name is in the longer: the same chip and memory
  same_chip,  // the same chip in the same form, other memory: A100-SXM4-40GB and -80GB
  sibling,    // the same generation of chip: H200, H800, H100-PCIe for H100-SXM5
  foreign,
};

/// By the names alone, which tell no generation: chips of other names are foreign. Letter case does
/// not count; words are separated by '-'.
Kinship kinship(std::string_view measured, std::string_view catalogue);
/// Also by generation.
Kinship kinship(std::string_view measured, const topology::GpuSpec& gpu);

/// How well a name fits a GPU of the catalogue, 0 for another chip. Beyond `fits_chip` every word
/// of the name is the GPU's: of two such the one in the same form (card or module) is better.
inline constexpr int fits_chip = 2;
int fitness(std::string_view name, std::string_view catalogue);

/// The entry of the catalogue that a measured GPU is, of those of the generation of `gpu`; null
/// where none fits. Belongs to `gpu`.
const topology::GpuRelative* relative_of(std::string_view measured, const topology::GpuSpec& gpu);

/// The 16-bit tensor peak of a relative of `gpu`, to scale its times; none for a foreign chip.
/// Three digits, as datasheets print it: 989 and 989.4 TFLOP/s are both in use for H100.
std::optional<FlopsPerSecond> tensor_peak_of(std::string_view measured,
                                             const topology::GpuSpec& gpu);

/// The same of eight bits and four; none where the catalogue does not say.
std::optional<FlopsPerSecond> low_peak_of(std::string_view measured, const topology::GpuSpec& gpu,
                                          workloads::Dtype);

/// NVLink of a relative of `gpu` as the catalogue has it, all links of its module, one direction.
std::optional<BytesPerSecond> nvlink_of(std::string_view measured, const topology::GpuSpec& gpu);

/// Whether `gpu` has been given another 16-bit peak than the chip it is named after: a what-if,
/// whose times are those of the chip scaled by the peaks. Within 0.5 % is no difference.
bool altered(std::string_view measured, const topology::GpuSpec& gpu);

/// The memory bandwidth that the catalogue has of `gpu`, over the one that it has been given: what
/// times measured on it are longer than here. 1 for a GPU that is not in the catalogue.
double memory_slowdown(const topology::GpuSpec& gpu);

/// "h100-sxm5-80gb" as tables spell it: "H100-SXM5-80GB".
std::string table_name(std::string_view catalogue);

}  // namespace stepcast::sim
