// Results as JSON: keys with units in their names, numbers in full precision. The keys are an
// interface that others script against.
#pragma once

#include <string>

#include "sim/results.hpp"

namespace stepcast::sim {

/// One run or collective, or {"refused": reason, ...}.
std::string to_json(const Answer& answer);

/// A single run as one object, a sweep as {"points": [...]}, one object per finished point.
std::string to_json(const Results& results);

/// {"error": {"code": 3, "where": ..., "message": ..., "hint": ...}}
std::string error_json(int exit_code, const std::string& where, const std::string& message,
                       const std::string& hint);

}  // namespace stepcast::sim
