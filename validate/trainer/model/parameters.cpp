#include "validate/trainer/model/parameters.hpp"

#include "validate/trainer/model/parameters_sharded.hpp"
#include "validate/trainer/model/parameters_whole.hpp"

namespace stepcast::validate {

template <class Real>
std::unique_ptr<Parameters<Real>> make_parameters(const TrainerJob& job, const RankShare& share,
                                                  StepCalls<Real>& calls) {
  if (job.plan.data == workloads::DataParallel::ddp ||
      job.plan.data == workloads::DataParallel::zero1)
    return std::make_unique<WholeParameters<Real>>(job, share, calls);
  return std::make_unique<ShardedParameters<Real>>(job, share, calls);
}

template std::unique_ptr<Parameters<float>> make_parameters(const TrainerJob&, const RankShare&,
                                                            StepCalls<float>&);
template std::unique_ptr<Parameters<double>> make_parameters(const TrainerJob&, const RankShare&,
                                                             StepCalls<double>&);
template std::unique_ptr<Parameters<Bfloat16>> make_parameters(const TrainerJob&, const RankShare&,
                                                               StepCalls<Bfloat16>&);
template std::unique_ptr<Parameters<Half>> make_parameters(const TrainerJob&, const RankShare&,
                                                           StepCalls<Half>&);

}  // namespace stepcast::validate
