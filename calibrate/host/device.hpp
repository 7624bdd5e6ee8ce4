// This machine's cores as a device: fp32, one core a rank; products by OpenBLAS, collectives by MPI
// between processes that the device starts, everything else by kernels.hpp. As many busy ranks
// as the scenario has run the same kernel meanwhile, since they share cache and memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {

struct HostOptions {
  std::int64_t ranks = 2;       // of a collective; 1: none
  std::int64_t busy_ranks = 2;  // that run a kernel at once, the measured one included
  /// What the rotating buffers of all busy ranks span when a batch is cold; 0: twice the last-level
  /// cache, at most 1 GiB.
  Bytes cold_span{};
  std::string ranks_program;  // 0 length: stepcast-host-ranks beside this program
  Duration collective_time_limit = std::chrono::seconds(60);  // of one answer of the ranks
};

/// Whether this machine has OpenBLAS.
bool host_device_available();
std::unique_ptr<Device> make_host_device(const HostOptions& options = {});

}  // namespace stepcast::calibrate
