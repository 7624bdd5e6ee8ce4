// How many random cases a law is asked for.
#pragma once

#include <cstdlib>
#include <string_view>

#include "tests/sanitizer.hpp"

namespace stepcast::tests {

/// True in ./dev check, which has the time.
inline bool whole() {
  const char* check = std::getenv("STEPCAST_CHECK");
  return check != nullptr && std::string_view(check) == "whole";
}

/// All of them with STEPCAST_CHECK=whole, otherwise one of so many. Under ASan, where each takes
/// ten times as long, a twentieth, but five at least.
inline unsigned draws(unsigned all, unsigned one_of = 4) {
#ifdef STEPCAST_ASAN
  static_cast<void>(one_of);
  return all < 100 ? 5 : all / 20;
#else
  return whole() ? all : all / one_of;
#endif
}

}  // namespace stepcast::tests
