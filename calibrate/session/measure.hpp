// How often a task runs until its time is known, and how well it is known then: warm-up, batches
// long enough for the clock, nvbench's stopping rule, samples under throttling thrown away. Knows
// no device: batches come from a function, time from a clock, so that it is tested on made-up
// noise.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "calibrate/device/device.hpp"
#include "engine/units.hpp"

namespace stepcast::calibrate {

/// nvbench's criterion "stdrel" (stdrel_criterion.cxx:34-38, 72-139, read 2026-11): enough device
/// time and either little noise or a noise that no longer changes. Noise is the standard deviation
/// of all samples over their mean.
struct StoppingRule {
  Duration minimum_time = std::chrono::milliseconds(500);  // of the samples together
  Duration timeout = std::chrono::seconds(15);             // of everything, warm-up included
  std::int64_t minimum_samples = 10;
  std::int64_t maximum_samples = 100'000;
  double noise = 0.005;          // at most: quiet
  double noise_of_noise = 0.05;  // relative deviation of the last `noise_window` noises: steady
  std::int64_t noise_window = 512;
  std::int64_t steady_after = 64;  // samples, and then at every `steady_every`-th
  std::int64_t steady_every = 16;
  Duration cooling = std::chrono::milliseconds(50);  // after a throttled sample (nvbench too)

  // Batches. Events resolve about 0.5 us (CUDA's documentation of cudaEventElapsedTime), so a batch
  // of 1 ms is timed to 0.05 %; ten kernels hide the first one's launch.
  Duration shortest_batch = std::chrono::milliseconds(1);
  std::int64_t smallest_batch = 10;  // repetitions, where one is shorter than shortest_batch
};

/// For a look in half a minute: bounded by samples, not by noise.
StoppingRule quick_rule();

enum class Stop : std::uint8_t {
  quiet,        // noise below the rule's
  steady,       // noisy, but the noise is known
  max_samples,  // as many as the rule allows
  timeout,      // the time is up: spread says how good it is
  throttled,    // nearly all samples were thrown away: no time is given
};
std::string_view name_of(Stop);

struct Timing {
  Duration median{};             // of one repetition; zero when throttled
  Duration beside{};             // OverlapTask: median of the collective's
  double spread = 0.0;           // (third - first quartile) / median of the samples
  double noise = 0.0;            // standard deviation / mean
  std::int64_t samples = 0;      // that count
  std::int64_t throttled = 0;    // thrown away
  std::int64_t repetitions = 0;  // in a batch
  Stop stop{};
};

/// Time passes, and can be waited for.
struct Clock {
  std::function<Duration()> now;
  std::function<void(Duration)> wait;
};
Clock wall_clock();

using Sampler = std::function<Batch(std::int64_t repetitions)>;

/// One warm-up repetition, more until a batch is long enough, then samples until the rule ends it.
Timing measure(const Sampler& run, const StoppingRule& rule, const Clock& clock);

}  // namespace stepcast::calibrate
