// What a rank trains on: the lanes and kernels of a processor core or a GPU, and the groups whose
// collectives reach that device's memory.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/units.hpp"
#include "validate/trainer/device/kernels.hpp"
#include "validate/trainer/device/lanes.hpp"
#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

template <class Real>
struct RankDevice {
  Groups groups;
  std::unique_ptr<Lanes> lanes;
  std::unique_ptr<Kernels<Real>> kernels;
  std::string name;  // "NVIDIA H100 80GB HBM3, driver 580.65, CUDA 13.0, NCCL 2.28.9"
  /// What the device has given to this process, buffers and all else, at its most; none: not known.
  std::function<Bytes()> in_use{};
};

/// This core; with a thread for each lane unless collectives hold it. Collective over `processes`,
/// which outlives it and stays usable while the lanes are empty.
template <class Real>
RankDevice<Real> make_host_device(const TrainerJob& job, Communicator& processes);

/// How a rank gets a GPU; empty in a build without CUDA or NCCL. Collective over the processes of
/// all ranks; PeerLost where one lets the others wait longer than `patience`.
template <class Real>
using MakeGpu = std::function<RankDevice<Real>(const TrainerJob& job, Communicator& processes,
                                               Duration patience)>;
struct GpuMakers {
  MakeGpu<Bfloat16> bfloat16;
  MakeGpu<Half> half;
};

}  // namespace stepcast::validate
