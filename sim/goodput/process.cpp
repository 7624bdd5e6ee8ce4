#include "sim/goodput/process.hpp"

namespace stepcast::sim {

double FailureProcess::interruptions_per_second() const {
  double sum = 0.0;
  for (const Interruption& i : interruptions) sum += i.per_second;
  return sum;
}

double FailureProcess::mean_down_s() const {
  double sum = 0.0;
  for (const Interruption& i : interruptions) sum += i.per_second * i.down_s;
  return sum > 0.0 ? sum / interruptions_per_second() : 0.0;
}

}  // namespace stepcast::sim
