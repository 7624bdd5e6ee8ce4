// Group targeted: how well a measurement repeats. The host device is calibrated twice in a row,
// products and attention of the quick grid, and the tables are compared row by row: the median of
// |ratio - 1|. On an idle machine at most 3 % is wanted; a shared one drifts, so nothing fails.
#include <benchmark/benchmark.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibrate/host/device.hpp"
#include "calibrate/report/diff.hpp"
#include "calibrate/session/session.hpp"
#include "calibrate/session/task_list.hpp"
#include "tests/session.hpp"

namespace stepcast::bench {
namespace {

std::vector<calibrate::Job> products_and_attention(const calibrate::Bench& bench) {
  std::vector<calibrate::Job> jobs;
  for (calibrate::Job& job :
       calibrate::jobs_of(calibrate::grid_for("host", true), bench, catalogue()).jobs)
    if (std::holds_alternative<calibrate::GemmTask>(job.task) ||
        std::holds_alternative<calibrate::AttentionTask>(job.task))
      jobs.push_back(std::move(job));
  return jobs;
}

sim::CalibrationTable calibrated(calibrate::Device& device, const std::string& out) {
  calibrate::SessionOptions options;
  options.rule.minimum_time = std::chrono::milliseconds(100);
  options.rule.timeout = std::chrono::seconds(1);
  options.out = out;
  options.power_time = Duration(0);
  const std::atomic<bool> stop = false;
  std::filesystem::remove(out);
  const calibrate::Bench bench{.gpu = false, .ranks = device.facts().ranks};
  run_session(device, products_and_attention(bench), options, stop, calibrate::wall_clock(),
              [](const calibrate::SessionProgress&) {});
  sim::CalibrationTable table = sim::read_calibration(out);
  std::filesystem::remove(out);
  return table;
}

void host_agreement(benchmark::State& state) {
  if (!calibrate::host_device_available()) return state.SkipWithError("no OpenBLAS");
  calibrate::HostOptions one_core;
  one_core.ranks = one_core.busy_ranks = 1;
  const auto device = calibrate::make_host_device(one_core);
  const std::string out =
      (std::filesystem::temp_directory_path() / "stepcast_host_agreement.h5").string();
  for (auto _ : state) {
    const auto first = calibrated(*device, out), second = calibrated(*device, out);
    for (const calibrate::FamilyDiff& family : calibrate::diff(first, second)) {
      if (family.both == 0) continue;
      state.counters[family.family + "_rows"] = static_cast<double>(family.both);
      state.counters[family.family + "_median_percent"] = 100.0 * family.median_distance;
      state.counters[family.family + "_worst_ratio"] = family.worst_ratio;
    }
  }
}
BENCHMARK(host_agreement)
    ->Name("targeted/two calibrations of the host in a row")
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace stepcast::bench
