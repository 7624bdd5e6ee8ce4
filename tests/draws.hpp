// How many random cases a law is asked for.
#pragma once

#include <cstdlib>
#include <string_view>

#include "tests/sanitizer.hpp"

namespace stepcast::tests {

/// All of them with STEPCAST_CHECK=whole (./dev check), otherwise a quarter. Under ASan, where each
/// takes ten times as long, a twentieth, but five at least.
inline unsigned draws(unsigned all) {
#ifdef STEPCAST_ASAN
  return all < 100 ? 5 : all / 20;
#else
  const char* check = std::getenv("STEPCAST_CHECK");
  return check != nullptr && std::string_view(check) == "whole" ? all : all / 4;
#endif
}

}  // namespace stepcast::tests
