#include "validate/trainer/device/rank_device.hpp"

#include "calibrate/host/facts.hpp"

namespace stepcast::validate {

template <class Real>
RankDevice<Real> make_host_device(const TrainerJob& job, Communicator& processes) {
  return {.groups = make_groups(processes.split(0), job.plan),
          .lanes = make_host_lanes(),
          .kernels = make_host_kernels<Real>(job.batch.sequence, job.model.head_dim),
          .name = calibrate::host::processor_name()};
}

template RankDevice<float> make_host_device(const TrainerJob&, Communicator&);
template RankDevice<double> make_host_device(const TrainerJob&, Communicator&);

}  // namespace stepcast::validate
