// Architectures as the catalogue has them.
#pragma once

#include <string>

#include "sim/files/names.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

inline topology::Architecture architecture(const std::string& name) {
  static const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  return catalogue.architecture(name, "test");
}

/// The one of a generation of NVIDIA's GPUs, by NCCL's tables.
inline topology::Architecture architecture(topology::NcclGeneration generation) {
  return architecture(word_for(nccl_generation_names, generation));
}

}  // namespace stepcast::sim
