#include "tests/bench/peak_memory.hpp"

#include <fstream>
#include <limits>
#include <string>

namespace stepcast::bench {

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5\n"; }

std::optional<Bytes> peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    if (key == "VmHWM:") {
      std::int64_t kib = 0;
      status >> kib;
      return Bytes(kib << 10);
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

}  // namespace stepcast::bench
