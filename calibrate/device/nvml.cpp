#include "calibrate/device/nvml.hpp"

#include <dlfcn.h>

#include <array>

#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {
namespace {

// The part of nvml.h that is used here; names, numbers and signatures as NVIDIA's API reference
// gives them (NVML is stable across drivers since 2013, hence the _v2).
using NvmlDevice = void*;
constexpr int nvml_success = 0;
constexpr int sm_clock = 1, memory_clock = 2;  // nvmlClockType_t
constexpr std::uint64_t software_power_cap = 0x4;
constexpr std::uint64_t hardware_slowdown = 0x8, hardware_thermal = 0x40, power_brake = 0x80;

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

}  // namespace

bool throttled(double clock_mhz, double default_mhz, ClockReasons reasons) {
  return reasons.hardware || (!reasons.power_cap && clock_mhz < 0.75 * default_mhz);
}

ClockReasons reasons_of(std::uint64_t mask) {
  return {.power_cap = (mask & software_power_cap) != 0,
          .hardware = (mask & (hardware_slowdown | hardware_thermal | power_brake)) != 0};
}

struct Nvml::Library {
  std::unique_ptr<void, CloseLibrary> handle;
  NvmlDevice device = nullptr;
  bool started = false;
  int (*power)(NvmlDevice, unsigned*) = nullptr;              // mW
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;   // mJ, since Volta
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;         // MHz
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;  // bit mask
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*shutdown)() = nullptr;

  ~Library() {
    if (started && shutdown != nullptr) shutdown();
  }
};

Nvml::Nvml(const std::string& pci_address) : library_(std::make_unique<Library>()) {
  library_->handle.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW));
  void* handle = library_->handle.get();
  if (handle == nullptr) throw Unsupported("no libnvidia-ml.so.1: power and clocks stay unknown");
  const auto init = symbol<int()>(handle, "nvmlInit_v2");
  const auto find =
      symbol<int(const char*, NvmlDevice*)>(handle, "nvmlDeviceGetHandleByPciBusId_v2");
  library_->shutdown = symbol<int()>(handle, "nvmlShutdown");
  if (init == nullptr || find == nullptr || init() != nvml_success)
    throw Unsupported("NVML does not start: power and clocks stay unknown");
  library_->started = true;
  if (find(pci_address.c_str(), &library_->device) != nvml_success)
    throw Unsupported("NVML knows no GPU " + pci_address + ": power and clocks stay unknown");
  library_->power = symbol<int(NvmlDevice, unsigned*)>(handle, "nvmlDeviceGetPowerUsage");
  library_->energy =
      symbol<int(NvmlDevice, unsigned long long*)>(handle, "nvmlDeviceGetTotalEnergyConsumption");
  library_->clock = symbol<int(NvmlDevice, int, unsigned*)>(handle, "nvmlDeviceGetClockInfo");
  library_->reasons = symbol<int(NvmlDevice, unsigned long long*)>(
      handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  library_->driver_version = symbol<int(char*, unsigned)>(handle, "nvmlSystemGetDriverVersion");
}

Nvml::~Nvml() = default;
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;

std::optional<Watts> Nvml::power() const {
  unsigned milliwatts = 0;
  if (library_->power == nullptr || library_->power(library_->device, &milliwatts) != nvml_success)
    return std::nullopt;
  return Watts(milliwatts * 1e-3);
}

std::optional<Joules> Nvml::energy() const {
  unsigned long long millijoules = 0;
  if (library_->energy == nullptr ||
      library_->energy(library_->device, &millijoules) != nvml_success)
    return std::nullopt;
  return Joules(static_cast<double>(millijoules) * 1e-3);
}

std::optional<double> Nvml::sm_clock_mhz() const {
  unsigned mhz = 0;
  if (library_->clock == nullptr ||
      library_->clock(library_->device, sm_clock, &mhz) != nvml_success)
    return std::nullopt;
  return mhz;
}

std::optional<double> Nvml::memory_clock_mhz() const {
  unsigned mhz = 0;
  if (library_->clock == nullptr ||
      library_->clock(library_->device, memory_clock, &mhz) != nvml_success)
    return std::nullopt;
  return mhz;
}

std::optional<ClockReasons> Nvml::clock_reasons() const {
  unsigned long long mask = 0;
  if (library_->reasons == nullptr || library_->reasons(library_->device, &mask) != nvml_success)
    return std::nullopt;
  return reasons_of(mask);
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (library_->driver_version == nullptr ||
      library_->driver_version(text.data(), static_cast<unsigned>(text.size()) - 1) != nvml_success)
    return "";
  return text.data();
}

}  // namespace stepcast::calibrate
