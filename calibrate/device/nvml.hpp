// NVIDIA's management library, loaded when the program runs, since no package brings its header
// and a container may lack it: power, clocks, and why clocks are low. What it cannot tell is
// nullopt. Knows no CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/units.hpp"

namespace stepcast::calibrate {

/// Why the clock is lower than it could be (nvmlClocksEventReasons of nvml.h).
struct ClockReasons {
  bool power_cap = false;  // the GPU is at its power limit: how it works under full load
  bool hardware = false;   // slowed by heat, by its power supply or from outside
};

/// Whether times under such clocks are to be discarded. Below 75 % of the default clock as in
/// nvbench, but not where the power limit is the reason: training meets the same limit.
bool throttled(double clock_mhz, double default_mhz, ClockReasons);
/// What NVML's bit mask says of them.
ClockReasons reasons_of(std::uint64_t mask);

class Nvml {
 public:
  /// The GPU at that PCI address ("00000000:04:00.0"). Throws Unsupported without library or GPU.
  explicit Nvml(const std::string& pci_address);
  ~Nvml();
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;

  std::optional<Watts> power() const;
  std::optional<Joules> energy() const;  // since the driver was loaded
  std::optional<double> sm_clock_mhz() const;
  std::optional<double> memory_clock_mhz() const;
  std::optional<ClockReasons> clock_reasons() const;
  std::string driver_version() const;  // "" if unknown

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepcast::calibrate
