// What a rank must keep to go on later: weights, AdamW's moments, steps done. One HDF5 file per
// rank in a folder per step; `latest` names the step that all ranks have written whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/processes/line_channel.hpp"
#include "sim/program/exit_codes.hpp"
#include "validate/trainer/model/optimizer.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

/// A rank's state, in the host's memory.
struct KeptState {
  std::span<float> weights, first_moments, second_moments;
  LossScale* scale = nullptr;
};

/// What is trained how; a checkpoint of another is refused.
struct KeptJob {
  std::string text;      // model, plan and batch, to be read
  std::string scenario;  // the id of all of it
};

/// The folder as one run's: another that would save there as well is refused (InputError). Only
/// rank 0 takes it.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& folder);

 private:
  sim::Descriptor lock_;
};

/// Collective: all ranks write, then the step before is removed. Throws OutputError where the
/// folder cannot be written, Diverged where the state is not finite: what was saved before stays.
void save_checkpoint(const std::string& folder, const KeptJob& job, std::int64_t step,
                     const KeptState& state, Communicator& world);

/// Collective: the step that was saved last. Throws InputError where there is none, one of another
/// job, files of other ranks or of several checkpoints, or a damaged one.
std::int64_t load_checkpoint(const std::string& folder, const KeptJob& job, KeptState state,
                             Communicator& world);

/// Training that has left the finite numbers.
struct Diverged : sim::Failure {
  explicit Diverged(const std::string& what) : Failure(sim::exit_too_inaccurate, what) {}
};

}  // namespace stepcast::validate
