// Peak resident memory of a stretch of this process, so that each whole run has its own figure.
// Linux: writing 5 to clear_refs resets VmHWM (proc(5)). Elsewhere the peak is unknown.
#pragma once

#include <optional>

#include "engine/units.hpp"

namespace stepcast::bench {

/// From here on peak_memory() counts anew; it starts at what is resident now.
void reset_peak_memory();
std::optional<Bytes> peak_memory();

}  // namespace stepcast::bench
