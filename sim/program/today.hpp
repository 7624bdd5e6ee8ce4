// The date, for what is written down: tables, reports, fitted constants.
#pragma once

#include <string>

namespace stepcast::sim {

/// "2026-11-22", UTC.
std::string today();

}  // namespace stepcast::sim
