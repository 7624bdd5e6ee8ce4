// From NVIDIA's name of a GPU to the one that published rows and catalogue files have.
#pragma once

#include <string>

#include "engine/units.hpp"

namespace stepcast::calibrate {

/// "H100-SXM5-80GB" for NVIDIA's "NVIDIA H100 80GB HBM3".
std::string published_name(const std::string& nvidia_name, Bytes memory);

}  // namespace stepcast::calibrate
