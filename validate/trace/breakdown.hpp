// One step, per rank, in the quantities that a trace, a log and the simulator have in common.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "validate/trace/records/kernels.hpp"

namespace stepcast::validate {

struct StepTally {
  Duration duration{};  // summed over the calls
  double calls = 0;     // a mean over ranks and steps need not be whole
  double bytes = 0;     // of collectives, nccl-tests' size
  bool sized = true;    // every call stated its bytes
  double parts = 0;     // calls that only sum what another kernel of the product left
};

/// Means over ranks and steps. What the source does not show is none.
struct StepBreakdown {
  std::optional<Duration> step;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> flops_per_second_per_gpu;  // of the model, as the source counts them
  std::optional<double> mfu;
  std::optional<Duration> compute;  // some kernel runs that is no communication
  std::optional<Duration>
      communication;                     // sum of communication kernels, waiting for peers included
  std::optional<Duration> exposed;       // communication, waiting included, and no compute
  std::optional<Duration> transferring;  // of `exposed`: bytes move
  std::optional<Duration> waiting;       // of `exposed`: for peers
  std::optional<Duration> idle;          // no kernel at all
  std::optional<Bytes> memory;           // largest allocated
  std::map<TraceKind, StepTally> kernels;
  std::map<workloads::CollectiveKind, StepTally> collectives;  // waiting left out where it is known
};

/// What was measured, and how far it can be trusted.
struct MeasuredStep {
  StepBreakdown mean;
  std::vector<std::string> notes;
};

}  // namespace stepcast::validate
