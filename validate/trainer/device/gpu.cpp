#include "validate/trainer/device/gpu.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/matmul.hpp"
#include "calibrate/device/device.hpp"
#include "calibrate/device/nvml.hpp"
#include "calibrate/device/worker_team.hpp"
#include "calibrate/kernels/check.hpp"
#include "engine/check.hpp"
#include "validate/trainer/device/cuda_device.hpp"
#include "validate/trainer/device/cuda_lanes.hpp"
#include "validate/trainer/device/nccl.hpp"

namespace stepcast::validate {
namespace {

/// Two numbers below 2^32, which a double holds.
using Mark = std::array<double, 2>;

/// FNV-1a.
Mark mark_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return {static_cast<double>(hash >> 32U), static_cast<double>(hash & 0xffffffffU)};
}

/// Of all processes, by rank. Collective.
std::vector<Mark> marks_of_all(Communicator& processes, const std::string& text) {
  const Mark mine = mark_of(text);
  std::vector<double> flat(2 * static_cast<std::size_t>(processes.size()));
  processes.all_gather(mine, flat);
  std::vector<Mark> marks(flat.size() / 2);
  for (std::size_t r = 0; r < marks.size(); ++r) marks[r] = {flat[2 * r], flat[2 * r + 1]};
  return marks;
}

/// This machine since it was started, as NCCL tells machines apart: containers share a kernel, but
/// not a name.
std::string host_word() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return name.data() + (" " + boot);
}

/// Which GPU a rank has, and with how many it shares it.
struct Seat {
  int gpu = 0;
  std::string address;  // on the PCI bus
  std::int64_t ranks_on_gpu = 1;
  bool any_shared = false, one_host = true;
};

Seat seat_of(Communicator& processes, std::optional<std::int64_t> most) {
  const auto rank = static_cast<std::size_t>(processes.rank());
  const std::string host = host_word();
  const std::vector<Mark> hosts = marks_of_all(processes, host);
  const std::int64_t here = std::min(num_gpus(), most.value_or(num_gpus()));
  if (here == 0)
    throw InputError(fmt::format("rank {}", rank), "no GPU here: " + host.substr(0, host.find(' ')),
                     "see nvidia-smi there");
  const auto local = std::count(hosts.begin(), hosts.begin() + processes.rank(), hosts[rank]);
  Seat seat;
  seat.gpu = static_cast<int>(local % here);
  std::array<char, 32> address{};
  CUDA_TRY(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), seat.gpu));
  seat.address = address.data();
  const std::vector<Mark> gpus = marks_of_all(processes, host + " " + seat.address);
  seat.ranks_on_gpu = std::ranges::count(gpus, gpus[rank]);
  seat.any_shared =
      std::ranges::any_of(gpus, [&](const Mark& one) { return std::ranges::count(gpus, one) > 1; });
  seat.one_host = std::ranges::count(hosts, hosts[0]) == processes.size();
  return seat;
}

/// Before NCCL is asked anything: it reads its environment once.
void share_gpus(const Seat& seat, std::int64_t rank, bool allowed) {
  if (!seat.any_shared) return;
  if (!allowed)
    throw InputError("GPUs", "there are more ranks than GPUs",
                     "--gpus N lets ranks share GPUs, as a functional check");
  if (!seat.one_host)
    throw InputError("--gpus", "ranks share a GPU on one node only: they talk over its loopback");
  for (const auto& [name, value] :
       calibrate::environment_of({.ranks_per_gpu = 2, .forced = {}}, rank))
    setenv(name.c_str(), value.c_str(), 1);
  if (rank == 0)
    std::fprintf(stderr,
                 "stepcast-trainer: warning: several ranks share a GPU: a check that all works, "
                 "not of its times\n");
}

std::string driver_version(const std::string& address) {
  try {
    const std::string version = calibrate::Nvml(address).driver_version();
    if (!version.empty()) return version;
  } catch (const calibrate::Unsupported&) {
    // No NVML in this container.
  }
  return "unknown";
}

std::string name_of(const cudaDeviceProp& properties, const Seat& seat) {
  int runtime = 0;
  CUDA_TRY(cudaRuntimeGetVersion(&runtime));  // 13000: 13.0
  return fmt::format("{}, driver {}, CUDA {}.{}, {}, {}", properties.name,
                     driver_version(seat.address), runtime / 1000, runtime % 1000 / 10,
                     nccl_version(), calibrate::cublas_version());
}

/// Of all processes on the GPU, over those of this run: its own where it has the GPU alone.
Bytes in_use_of(const Seat& seat) {
  std::size_t free = 0, total = 0;
  CUDA_TRY(cudaMemGetInfo(&free, &total));
  return Bytes(static_cast<std::int64_t>(total - free) / seat.ranks_on_gpu);
}

template <class Real>
RankDevice<Real> make_gpu(const TrainerJob& job, Communicator& processes, Duration patience,
                          std::optional<std::int64_t> most) {
  const Seat seat = seat_of(processes, most);
  share_gpus(seat, processes.rank(), most.has_value());
  CUDA_TRY(cudaSetDevice(seat.gpu));
  cudaDeviceProp properties{};
  CUDA_TRY(cudaGetDeviceProperties(&properties, seat.gpu));
  if (scalar_of<Real> == Scalar::bfloat16 && properties.major < 8)
    throw InputError(properties.name, "does not compute in bf16", "precision.compute = \"fp16\"");

  RankDevice<Real> device;
  auto lanes = std::make_unique<CudaLanes>(processes.rank(), patience);
  const auto ranks = std::make_shared<NcclRanks>(processes, patience);
  lanes->set_watch([ranks] { ranks->check(); }, [ranks] { ranks->give_up(); });
  device.name = name_of(properties, seat);
  device.groups = make_groups(make_nccl_world(ranks, *lanes, processes), job.plan);
  device.kernels = make_cuda_kernels<Real>(make_cuda_device(seat.gpu, *lanes), job.batch.sequence,
                                           job.model.head_dim);
  device.lanes = std::move(lanes);
  device.in_use = [seat, largest = Bytes{}]() mutable {
    return largest = std::max(largest, in_use_of(seat));
  };
  return device;
}

}  // namespace

/// Lanes are not to share a hardware queue, in which one that waits for a peer would hold up
/// another, nor a kernel that is loaded at its first launch to wait for NCCL's that waits for a
/// peer; the driver reads this when it starts.
std::int64_t num_gpus() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

GpuMakers gpu_makers(std::optional<std::int64_t> most) {
  const auto maker = [most](auto make) {
    return [most, make](const TrainerJob& job, Communicator& processes, Duration patience) {
      return make(job, processes, patience, most);
    };
  };
  return {.bfloat16 = maker(make_gpu<Bfloat16>), .half = maker(make_gpu<Half>)};
}

}  // namespace stepcast::validate
