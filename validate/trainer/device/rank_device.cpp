#include "validate/trainer/device/rank_device.hpp"

#include <utility>

#include "calibrate/host/facts.hpp"
#include "validate/trainer/device/queued_communicator.hpp"
#include "validate/trainer/device/queued_kernels.hpp"
#include "validate/trainer/device/thread_lanes.hpp"

namespace stepcast::validate {

template <class Real>
RankDevice<Real> make_host_device(const TrainerJob& job, Communicator& processes) {
  RankDevice<Real> device;
  const bool experts = job.model.experts.count > 0;
  device.name = calibrate::host::processor_name();
  device.kernels = make_host_kernels<Real>(job.batch.sequence, job.model.head_dim);
  if (job.software.host.collectives_hold_core) {
    device.groups = make_groups(processes.split(0), job.plan, experts);
    device.lanes = make_host_lanes();
    return device;
  }
  processes.allow_threads();
  auto lanes = std::make_unique<ThreadLanes>(
      [&processes](const std::exception_ptr& cause) { processes.give_up(cause); });
  device.groups = make_groups(
      std::make_unique<QueuedCommunicator>(processes.split(0), *lanes, false), job.plan, experts);
  device.kernels = std::make_unique<QueuedKernels<Real>>(std::move(device.kernels), *lanes);
  device.lanes = std::move(lanes);
  return device;
}

template RankDevice<float> make_host_device(const TrainerJob&, Communicator&);
template RankDevice<double> make_host_device(const TrainerJob&, Communicator&);

}  // namespace stepcast::validate
