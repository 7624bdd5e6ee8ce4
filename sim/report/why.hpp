// A Why as text and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "sim/why/why.hpp"

namespace stepcast::sim {

/// At most `top` rows of the path, the rest as one.
std::string why_text(const Why& why, std::size_t top);
/// Complete: every edge.
std::string why_json(const Why& why);

}  // namespace stepcast::sim
