// One run of the trainer: every rank trains, times itself and hands in; rank 0 has the whole. Knows
// neither MPI nor processes, nor CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/run/timeline.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/trainer/device/rank_device.hpp"
#include "validate/trainer/model/kernel_waits.hpp"
#include "validate/trainer/model/timeline.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

struct RunSettings {
  std::int64_t steps = 60;
  std::int64_t warm_up = 10;    // the first of them, trained but not counted
  std::string text;             // file; empty: generated
  std::string checkpoint;       // folder; empty: none
  std::int64_t save_every = 0;  // steps; 0: at the end
  bool resume = false;
  Duration patience = to_duration(60.0);  // with a rank that lets its peers wait
  KernelTimer kernel_time{};  // given: kernels are waited for, not run; nothing is learned
};

/// Called on rank 0 after each step.
using OnStep = std::function<void(std::int64_t step, Duration time, std::optional<double> loss)>;

/// What a run came to, over all ranks.
struct TrainerResults {
  std::int64_t ranks = 0, first_step = 0, warm_up = 0;
  std::vector<double> losses;        // of every step, mean over replicas; none: nothing learned
  std::vector<Duration> step_times;  // of up to 1000 steps after warm-up, mean over ranks; where
                                     // timing costs, of those that are not timed inside
  Duration step_time{};              // their median
  std::string device;                // of rank 0
  Bytes buffers{};                   // that the fullest rank allocated for the device
  Bytes resident{};             // largest resident set of a rank's process, or in use on its GPU
  sim::Timeline timeline;       // of the step timed inside whose time is the median
  std::vector<PartTime> parts;  // by name: of each call the median over steps
};

/// Collective over `world`; whole on rank 0, empty on the others.
std::optional<TrainerResults> run_trainer(const sim::Scenario& scenario,
                                          const RunSettings& settings,
                                          std::unique_ptr<Communicator> world,
                                          const GpuMakers& gpus = {}, const OnStep& on_step = {});

/// Of the same id are scenarios that agree in everything.
std::string job_id(const sim::Scenario& scenario);

/// Whether the ranks run on GPUs and not on this machine's cores.
bool trains_on_gpus(const sim::Scenario& scenario);

/// Throws InputError for a scenario that the trainer cannot run.
void check_trainable(const sim::Scenario& scenario);

/// Throws InputError where kernels cannot be waited for instead of run: what is sent hangs on what
/// they compute.
void check_waits(const sim::Scenario& scenario);

}  // namespace stepcast::validate
