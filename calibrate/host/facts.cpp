#include "calibrate/host/facts.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stepcast::calibrate::host {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The value of the first "key : value" line of /proc/cpuinfo.
std::string cpu_info(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return {};
}

}  // namespace

std::string processor_name() {
  const std::string name = cpu_info("model name");
  return name.empty() ? "unknown processor" : name;
}

std::string clocks() {
  const std::string mhz = cpu_info("cpu MHz");
  return mhz.empty() ? "" : mhz.substr(0, mhz.find('.')) + " MHz now";
}

std::string system_name() {
  utsname name{};
  return uname(&name) == 0 ? std::string(name.sysname) + " " + name.release : "";
}

Bytes last_level_cache() {
  std::error_code error;
  std::int64_t level = 0, size = 0;
  for (int i = 0; i < 8; ++i) {
    const fs::path index = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i);
    if (!fs::exists(index, error)) break;
    std::int64_t this_level = 0, kibibytes = 0;
    std::istringstream(first_line(index / "level")) >> this_level;
    std::istringstream(first_line(index / "size")) >>
        kibibytes;  // "480M" does not occur: "491520K"
    if (this_level > level) level = this_level, size = kibibytes * 1024;
  }
  return size > 0 ? Bytes(size) : 32_MiB;
}

std::optional<double> energy_counter() {
  std::error_code error;
  double joules = 0;
  bool found = false;
  for (const auto& entry : fs::directory_iterator("/sys/class/powercap", error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("intel-rapl:") || std::count(name.begin(), name.end(), ':') != 1)
      continue;  // packages only, not their parts
    double microjoules = 0;
    if (!(std::ifstream(entry.path() / "energy_uj") >> microjoules)) return std::nullopt;
    joules += microjoules * 1e-6;
    found = true;
  }
  return found ? std::optional(joules) : std::nullopt;
}

}  // namespace stepcast::calibrate::host
