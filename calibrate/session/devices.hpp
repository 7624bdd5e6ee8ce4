// The devices by name: which are built in, and how they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "calibrate/device/device.hpp"

namespace stepcast::calibrate {

struct DeviceOptions {
  std::int64_t ranks = 0;       // of collectives; 0: as many as the device has
  std::int64_t busy_ranks = 0;  // host: that run a kernel at once; 0: as many as `ranks`
  std::int64_t gpu = 0;         // cuda: the one that is measured alone
  std::int64_t nodes = 1;       // cuda: that take part in collectives
  std::string rendezvous{};     // cuda, several nodes: "host:port" or a file
};

/// `kind`: host or cuda. Throws InputError for another word, for several nodes of a host, and for a
/// device that this program was built without, saying what is missing.
std::unique_ptr<Device> make_device(const std::string& kind, const DeviceOptions& options);

/// cuda where it is built in and a GPU is there, else host.
std::string default_device();

}  // namespace stepcast::calibrate
