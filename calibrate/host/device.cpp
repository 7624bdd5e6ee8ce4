#include "calibrate/host/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "calibrate/host/facts.hpp"
#include "calibrate/host/gemm.hpp"
#include "calibrate/host/ranks.hpp"
#include "calibrate/host/worker.hpp"

namespace stepcast::calibrate {
namespace {

using host::HostTask;
using Clock = std::chrono::steady_clock;

Duration since(Clock::time_point start) {
  return to_duration(std::chrono::duration<double>(Clock::now() - start).count());
}

/// A kernel with its buffers, those of its companions included.
class PreparedKernel final : public Prepared {
 public:
  /// Two arenas for the measured rank, then two for each companion.
  PreparedKernel(HostTask task, std::span<std::unique_ptr<host::Arena>> arenas, Bytes span_each,
                 std::uint64_t seed)
      : task_(std::move(task)),
        seed_(seed),
        worker_(task_, *arenas[0], *arenas[1], span_each),
        companions_(task_, arenas.subspan(2), span_each) {}

  double relative_error() override { return task_.check(seed_++); }
  double tolerance() const override { return task_.tolerance; }
  double flops() const override { return task_.flops; }
  Bytes bytes() const override { return task_.bytes; }

  Batch run(std::int64_t repetitions, Cache cache) override {
    companions_.start(cache);
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < repetitions; ++i) worker_.run_once(cache);
    const Duration total = since(start);
    companions_.stop();
    return {.total = total};
  }

 private:
  HostTask task_;
  std::uint64_t seed_;
  host::Worker worker_;
  host::Companions companions_;
};

class PreparedCollective final : public Prepared {
 public:
  PreparedCollective(host::Ranks& ranks, CollectiveTask task, std::uint64_t seed)
      : ranks_(ranks), task_(std::move(task)), seed_(seed) {}

  double relative_error() override { return ranks_.check(task_, seed_++); }
  double tolerance() const override { return 1e-6; }  // sums of a few floats
  Bytes bytes() const override { return task_.bytes; }
  Batch run(std::int64_t repetitions, Cache) override {
    return {.total = ranks_.time(task_, repetitions)};
  }

 private:
  host::Ranks& ranks_;
  CollectiveTask task_;
  std::uint64_t seed_;
};

/// Nothing to launch on: what remains is the call.
class PreparedCall final : public Prepared {
 public:
  double relative_error() override { return 0.0; }
  double tolerance() const override { return 0.0; }
  Batch run(std::int64_t repetitions, Cache) override {
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < repetitions; ++i) call_({}, {});
    return {.total = since(start)};
  }

 private:
  std::function<void(std::span<float>, std::span<float>)> call_ = [](auto, auto) {};
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(HostOptions options) : options_(std::move(options)) {
    const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
    options_.busy_ranks = std::clamp<std::int64_t>(options_.busy_ranks, 1, cores);
    for (std::int64_t i = 0; i < 2 * options_.busy_ranks; ++i)
      arenas_.push_back(std::make_unique<host::Arena>());
    if (options_.cold_span.value == 0)
      options_.cold_span = Bytes(std::min((2 * host::last_level_cache()).value, (1_GiB).value));
  }

  DeviceFacts facts() const override {
    return {.name = "host-core",
            .driver = host::system_name(),
            .runtime = fmt::format("{} busy ranks of one thread", options_.busy_ranks),
            .gemm_library = host::gemm_library(),
            .collective_library = host::ranks_library(),
            .clocks = host::processor_name() + ", " + host::clocks(),
            .ranks = options_.ranks,
            .nodes = 1,
            .cache = host::last_level_cache()};
  }

  std::unique_ptr<Prepared> prepare(const Task& task, std::uint64_t seed) override {
    return std::visit([&](const auto& t) { return make(t, seed); }, task);
  }

  double watts_of(Prepared& task, double seconds_wanted) override {
    const auto before = host::energy_counter();
    if (!before) return -1.0;
    const auto start = Clock::now();
    while (seconds(since(start)) < seconds_wanted) task.run(1, Cache::cold);
    const double elapsed = seconds(since(start));
    const auto after = host::energy_counter();
    return after && *after > *before ? (*after - *before) / elapsed : -1.0;  // counters wrap
  }

 private:
  template <class KernelTask>
  std::unique_ptr<Prepared> make(const KernelTask& task, std::uint64_t seed) {
    const Bytes each(options_.cold_span.value / options_.busy_ranks);
    return std::make_unique<PreparedKernel>(host::host_task(task), arenas_, each, seed);
  }
  std::unique_ptr<Prepared> make(const LaunchTask&, std::uint64_t) {
    return std::make_unique<PreparedCall>();
  }
  std::unique_ptr<Prepared> make(const CollectiveTask& task, std::uint64_t seed) {
    if (!task.algorithm.empty() || !task.protocol.empty())
      throw Unsupported("MPI's algorithms are its own choice");
    if (options_.ranks < 2) throw Unsupported("one rank has nobody to talk to");
    if (!ranks_)
      ranks_ = std::make_unique<host::Ranks>(options_.ranks, options_.ranks_program,
                                             options_.collective_time_limit);
    return std::make_unique<PreparedCollective>(*ranks_, task, seed);
  }
  std::unique_ptr<Prepared> make(const OverlapTask&, std::uint64_t) {
    throw Unsupported("on the host a collective holds its core: nothing overlaps");
  }

  HostOptions options_;
  std::vector<std::unique_ptr<host::Arena>> arenas_;
  std::unique_ptr<host::Ranks> ranks_;
};

}  // namespace

bool host_device_available() { return host::has_openblas(); }

std::unique_ptr<Device> make_host_device(const HostOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace stepcast::calibrate
