// What a rank must keep to go on later: weights, AdamW's moments, steps done. One HDF5 file per
// rank in a folder per step; `latest` names the step that all ranks have written whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "validate/trainer/model/optimizer.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

/// A rank's state, in the host's memory.
struct KeptState {
  std::span<float> weights, first_moments, second_moments;
  LossScale* scale = nullptr;
};

/// Collective: all ranks write, then the step before is removed. `job` says what is trained how; a
/// checkpoint of another job is refused. Throws InputError where the folder cannot be written.
void save_checkpoint(const std::string& folder, const std::string& job, std::int64_t step,
                     const KeptState& state, Communicator& world);

/// Collective: the step that was saved last. Throws InputError where there is none, one of another
/// job, or a damaged one.
std::int64_t load_checkpoint(const std::string& folder, const std::string& job, KeptState state,
                             Communicator& world);

}  // namespace stepcast::validate
