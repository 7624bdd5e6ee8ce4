#include "calibrate/session/devices.hpp"

#include <filesystem>
#include <vector>

#include "calibrate/host/device.hpp"
#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"
#if defined(STEPCAST_HAS_CUDA)
#include "calibrate/cuda/device.hpp"
#include "sim/processes/meeting.hpp"
#endif

namespace stepcast::calibrate {
namespace {

std::unique_ptr<Device> host_device(const DeviceOptions& options) {
  if (!host_device_available())
    throw InputError("--device host", "this machine is without OpenBLAS: no libopenblas.so.0",
                     "install it (Debian: libopenblas0)");
  if (options.nodes > 1 || !options.rendezvous.empty())
    throw InputError("--nodes", "the host's device measures one node",
                     "leave --nodes and --rendezvous out, or take --device cuda");
  HostOptions host;
  if (options.ranks > 0) host.ranks = host.busy_ranks = options.ranks;
  if (options.busy_ranks > 0) host.busy_ranks = options.busy_ranks;
  return make_host_device(host);
}

#if defined(STEPCAST_HAS_CUDA)
std::unique_ptr<Device> cuda_device(const DeviceOptions& options) {
  CudaOptions cuda;
  cuda.gpu = static_cast<int>(options.gpu);
  cuda.team.gpus = options.ranks;
  cuda.team.nodes = options.nodes;
  cuda.team.rendezvous = options.rendezvous;
  cuda.team.token = sim::token_in_environment();
  return make_cuda_device(cuda);
}
#else
std::unique_ptr<Device> cuda_device(const DeviceOptions&) {
  throw InputError("--device cuda", "this program was built without CUDA",
                   "build it where nvcc is on PATH, or take --device host");
}
#endif

}  // namespace

std::unique_ptr<Device> make_device(const std::string& kind, const DeviceOptions& options) {
  if (kind == "host") return host_device(options);
  if (kind == "cuda") return cuda_device(options);
  throw InputError("--device", "unknown device '" + kind + "'",
                   sim::suggestion(kind, std::vector<std::string>{"host", "cuda"}));
}

std::string default_device() {
#if defined(STEPCAST_HAS_CUDA)
  // As NVIDIA's driver shows the first GPU; asking CUDA itself would start it.
  if (std::filesystem::exists("/dev/nvidia0")) return "cuda";
#endif
  return "host";
}

}  // namespace stepcast::calibrate
