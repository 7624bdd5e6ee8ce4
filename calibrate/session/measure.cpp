#include "calibrate/session/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <thread>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

// More than nine samples of ten under throttling: the device cannot hold its clocks at all.
constexpr std::int64_t hopeless_after = 20;
constexpr std::int64_t throttled_per_good = 9;

struct Moments {
  double mean = 0.0, deviation = 0.0;
};

/// Mean and sample standard deviation, in two passes.
template <class Values>
Moments moments(const Values& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return m;
  for (const double v : values) m.mean += v / n;
  double squares = 0.0;
  for (const double v : values) squares += (v - m.mean) * (v - m.mean);
  if (values.size() > 1) m.deviation = std::sqrt(squares / (n - 1.0));
  return m;
}

/// The value below which a share of the sorted values lies, on straight lines between them.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

/// Mean and deviation as samples come in (Welford 1962): no pass over all for each.
class RunningNoise {
 public:
  void add(double value) {
    n_ += 1.0;
    const double step = value - mean_;
    mean_ += step / n_;
    squares_ += step * (value - mean_);
  }
  double noise() const { return n_ > 1.0 ? std::sqrt(squares_ / (n_ - 1.0)) / mean_ : 0.0; }

 private:
  double n_ = 0.0, mean_ = 0.0, squares_ = 0.0;
};

class Samples {
 public:
  explicit Samples(const StoppingRule& rule) : rule_(rule) {}

  void add(const Batch& batch, std::int64_t repetitions) {
    const auto n = static_cast<double>(repetitions);
    times_.push_back(seconds(batch.total) / n);
    beside_.push_back(seconds(batch.beside) / n);
    total_ += batch.total;
    running_.add(times_.back());
    noises_.push_back(running_.noise());
    if (static_cast<std::int64_t>(noises_.size()) > rule_.noise_window) noises_.pop_front();
  }

  std::int64_t count() const { return static_cast<std::int64_t>(times_.size()); }

  bool quiet() const { return enough() && noises_.back() <= rule_.noise; }

  /// The last noises differ little from the present one.
  bool steady() const {
    if (!enough() || count() <= rule_.steady_after || count() % rule_.steady_every != 0)
      return false;
    const double present = noises_.back();
    double squares = 0.0;
    for (const double noise : noises_) squares += (noise - present) * (noise - present);
    const double deviation = std::sqrt(squares / (static_cast<double>(noises_.size()) - 1.0));
    return deviation < rule_.noise_of_noise * present;
  }

  void summarise(Timing& timing) const {
    timing.samples = count();
    if (times_.empty()) return;
    const Moments m = moments(times_);
    std::vector<double> sorted = times_;
    std::sort(sorted.begin(), sorted.end());
    const double median = quantile(sorted, 0.5);
    timing.median = to_duration(median);
    if (median > 0.0) timing.spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / median;
    if (m.mean > 0.0) timing.noise = m.deviation / m.mean;
    sorted = beside_;
    std::sort(sorted.begin(), sorted.end());
    timing.beside = to_duration(quantile(sorted, 0.5));
  }

 private:
  bool enough() const { return count() >= rule_.minimum_samples && total_ >= rule_.minimum_time; }

  const StoppingRule& rule_;
  std::vector<double> times_, beside_;  // seconds of one repetition
  std::deque<double> noises_;
  RunningNoise running_;
  Duration total_{};
};

/// Doubles the batch until it is long enough; what is run here is warm-up.
std::int64_t batch_size(const Sampler& run, const StoppingRule& rule, const Clock& clock,
                        Duration end) {
  constexpr std::int64_t most = 100'000;
  run(1);
  std::int64_t repetitions = 1;
  while (repetitions < most && clock.now() < end) {
    const Duration total = run(repetitions).total;
    if (total >= rule.shortest_batch) break;
    const double per_batch = std::max(seconds(total), 1e-9);
    const double wanted =
        static_cast<double>(repetitions) * seconds(rule.shortest_batch) / per_batch;
    const std::int64_t limit = std::min(100 * repetitions, most);
    repetitions = std::clamp(static_cast<std::int64_t>(std::ceil(1.1 * wanted)),
                             std::min(2 * repetitions, limit), limit);
    repetitions = std::max(repetitions, rule.smallest_batch);
  }
  return repetitions;
}

bool hopeless(const Timing& timing, std::int64_t good) {
  return timing.throttled >= hopeless_after && timing.throttled > throttled_per_good * good;
}

}  // namespace

StoppingRule quick_rule() {
  return {.minimum_time = std::chrono::milliseconds(5),
          .timeout = std::chrono::seconds(2),
          .minimum_samples = 5,
          .maximum_samples = 10};
}

std::string_view name_of(Stop stop) {
  switch (stop) {
    case Stop::quiet:
      return "quiet";
    case Stop::steady:
      return "steady noise";
    case Stop::max_samples:
      return "all samples";
    case Stop::timeout:
      return "time-out";
    case Stop::throttled:
      return "throttled";
  }
  return "unknown";
}

Clock wall_clock() {
  const auto begin = std::chrono::steady_clock::now();
  return {
      .now =
          [begin] {
            return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
          },
      .wait =
          [](Duration d) {
            std::this_thread::sleep_for(std::chrono::duration_cast<std::chrono::microseconds>(d));
          }};
}

Timing measure(const Sampler& run, const StoppingRule& rule, const Clock& clock) {
  expects(rule.minimum_samples > 0 && rule.maximum_samples >= rule.minimum_samples,
          "a rule that asks for samples");
  Timing timing;
  const Duration end = clock.now() + rule.timeout;
  timing.repetitions = batch_size(run, rule, clock, end);
  Samples samples(rule);
  for (;;) {
    const Batch batch = run(timing.repetitions);
    if (batch.throttled) {
      ++timing.throttled;
      clock.wait(rule.cooling);
    } else {
      samples.add(batch, timing.repetitions);
    }
    const bool late = clock.now() >= end;
    if (hopeless(timing, samples.count()) || (late && samples.count() == 0)) {
      timing.stop = Stop::throttled;
      return timing;
    }
    if (!batch.throttled && samples.quiet())
      timing.stop = Stop::quiet;
    else if (!batch.throttled && samples.steady())
      timing.stop = Stop::steady;
    else if (samples.count() >= rule.maximum_samples)
      timing.stop = Stop::max_samples;
    else if (late)
      timing.stop = Stop::timeout;
    else
      continue;
    samples.summarise(timing);
    return timing;
  }
}

}  // namespace stepcast::calibrate
