// NCCL's variables as NCCL spells them, and what they mean here: NCCL_ALGO = "^NVLS". A variable
// that NCCL knows but that changes nothing in the model is refused rather than ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/nccl/overrides.hpp"

namespace stepcast::sim {

struct NcclVariable {
  std::string name;   // "NCCL_ALGO", or "registered_buffers", which is ours
  std::string value;  // "Ring,Tree"
  std::string where;  // "scenario.toml:7" or "--nccl-env"

  friend bool operator==(const NcclVariable&, const NcclVariable&) = default;
};

/// Whether NCCL reads a variable of this name, and whether it changes anything in the model.
enum class NcclName : std::uint8_t { unknown, without_effect, read };
NcclName nccl_name(const std::string& name);

/// Throws InputError at the variable on an unknown name (with a suggestion), a value that NCCL does
/// not know, or limits that contradict each other.
NcclOverrides nccl_overrides(const std::vector<NcclVariable>&);

/// Throws InputError where the version does not know what a variable says.
void check_nccl_variables(const std::vector<NcclVariable>&, const NcclTuning&);

}  // namespace stepcast::sim
