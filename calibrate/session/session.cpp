#include "calibrate/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "calibrate/session/task_rows.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

/// The task's result is further from float64 than its type allows.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Throttled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Session {
 public:
  Session(Device& device, const SessionOptions& options, const Clock& clock);

  void measure(const Job& job);
  bool knows(const Job& job) const { return has_row(table_, job, frame_); }
  void warm_up(const std::vector<Job>& jobs);
  void measure_power(const std::vector<Job>& jobs, const std::atomic<bool>& stop);
  void save_if_due();
  void save_at_end();
  SessionReport& report() { return report_; }
  /// Five tasks in a row: the device itself is gone (an error of CUDA stays until its process
  /// ends).
  bool lost() const { return failures_in_a_row_ >= 5; }

 private:
  std::uint64_t next_seed() { return options_.seed + num_seeds_++; }
  Timing timed(Prepared& task, Cache cache) const;
  Duration alone(const Task& task, Cache cache);
  void add(const Job& job, const Measured& measured);
  void power_of(const Task& task);
  void add_power(const std::string& load, double watts);

  Device& device_;
  const SessionOptions& options_;
  const Clock& clock_;
  RowFrame frame_;
  sim::CalibrationTable table_;
  SessionReport report_;
  std::uint64_t num_seeds_ = 0;
  Duration last_save_{};
  int failures_in_a_row_ = 0;
  bool unsaved_ = false, no_power_ = false, no_disk_ = false;
};

sim::RowSource source_of(const DeviceFacts& facts, const SessionOptions& options) {
  const sim::MeasuredOn on{.device = facts.name,
                           .driver = facts.driver,
                           .runtime = facts.runtime,
                           .gemm_library = facts.gemm_library,
                           .collective_library = facts.collective_library,
                           .clocks = facts.clocks,
                           .date = options.date,
                           .command = options.command};
  // The reference holds together what one machine measured, on whatever day.
  return {.source = fmt::format("stepcast-calibrate on {}, {}", facts.name, options.date),
          .reference = fmt::format("measured: {}; {}; {}; {}; {}", facts.name, facts.driver,
                                   facts.runtime, facts.gemm_library, facts.collective_library),
          .confidence = "high",
          .on = on};
}

Session::Session(Device& device, const SessionOptions& options, const Clock& clock)
    : device_(device), options_(options), clock_(clock), last_save_(clock.now()) {
  DeviceFacts facts = device.facts();
  const std::string gpu = gpu_name(facts, options.gpus);
  if (options.gpus.by_cuda_name(facts.name) != nullptr) facts.name = gpu;  // as sources tell it
  frame_ = {.gpu = gpu,
            .facts = facts,
            .fabric = options.fabric,
            .node_bandwidth = options.node_bandwidth,
            .collective_timing = options.collective_timing,
            .source = source_of(facts, options)};
  report_.gpu = frame_.gpu;
  if (std::filesystem::exists(options.out)) table_ = sim::read_calibration(options.out);
  if (table_.title.empty()) table_.title = fmt::format("{} {}", frame_.gpu, options.date);
  table_.created = std::max(table_.created, options.date);
}

Timing Session::timed(Prepared& task, Cache cache) const {
  const Timing timing =
      calibrate::measure([&](std::int64_t repetitions) { return task.run(repetitions, cache); },
                         options_.rule, clock_);
  if (timing.stop == Stop::throttled)
    throw Throttled(fmt::format("{} of {} samples were taken while the device throttled",
                                timing.throttled, timing.throttled + timing.samples));
  return timing;
}

Duration Session::alone(const Task& task, Cache cache) {
  const auto prepared = device_.prepare(task, next_seed());
  return timed(*prepared, cache).median;
}

void Session::add(const Job& job, const Measured& measured) {
  sim::CalibrationTable rows;
  add_row(rows, job, frame_, measured);
  sim::check_rows(rows, to_text(job));  // one bad row would make the whole file unreadable
  table_ = sim::update(std::move(table_), rows);
  unsaved_ = true;
  ++report_.measured;
}

void Session::measure(const Job& job) {
  const std::string name = to_text(job);
  const std::size_t failed = report_.failed.size();
  try {
    Measured measured;
    if (const auto* overlap = std::get_if<OverlapTask>(&job.task)) {
      measured.kernel_alone =
          std::visit([&](const auto& kernel) { return alone(kernel, job.cache); }, overlap->kernel);
      measured.collective_alone = alone(overlap->collective, job.cache);
    }
    const auto prepared = device_.prepare(job.task, next_seed());
    measured.error = prepared->relative_error();
    if (!(measured.error <= prepared->tolerance()))
      throw WrongResult(fmt::format("relative error {:.2g}, at most {:.2g} is the type's own",
                                    measured.error, prepared->tolerance()));
    measured.timing = timed(*prepared, job.cache);
    measured.flops = prepared->flops();
    measured.bytes = prepared->bytes();
    add(job, measured);
  } catch (const Unsupported& reason) {
    report_.unsupported.push_back({name, reason.what()});
  } catch (const WrongResult& reason) {
    report_.wrong.push_back({name, reason.what()});
  } catch (const Throttled& reason) {
    report_.throttled.push_back({name, reason.what()});
  } catch (const InputError& reason) {
    report_.failed.push_back({name, reason.what()});
  }
  failures_in_a_row_ = report_.failed.size() > failed ? failures_in_a_row_ + 1 : 0;
}

/// Runs the first product until the clocks have settled.
void Session::warm_up(const std::vector<Job>& jobs) {
  const auto first = std::find_if(jobs.begin(), jobs.end(), [](const Job& job) {
    return std::holds_alternative<GemmTask>(job.task);
  });
  if (first == jobs.end() || options_.warm_up <= Duration(0)) return;
  try {
    const auto prepared = device_.prepare(first->task, next_seed());
    const Duration end = clock_.now() + options_.warm_up;
    while (clock_.now() < end) prepared->run(1, Cache::cold);
  } catch (const Unsupported&) {  // told when its turn comes
  } catch (const InputError&) {
  }
}

void Session::power_of(const Task& task) {
  try {
    const auto prepared = device_.prepare(task, next_seed());
    add_power(to_text(task), device_.watts_of(*prepared, seconds(options_.power_time)));
  } catch (const Unsupported&) {  // told among the tasks
  } catch (const InputError& reason) {
    report_.failed.push_back({"power of " + to_text(task), reason.what()});
  }
}

void Session::add_power(const std::string& load, double watts) {
  if (watts <= 0.0) {
    if (!std::exchange(no_power_, true))
      report_.warnings.emplace_back("the device does not tell its power: none is in the table");
    return;
  }
  sim::CalibrationTable rows;
  rows.powers.push_back({frame_.gpu, load, Watts(watts), frame_.source});
  table_ = sim::update(std::move(table_), rows);
  unsaved_ = true;
}

/// The last task of a kind with the most to do.
template <class Kind, class Amount>
std::optional<Task> heaviest(const std::vector<Job>& jobs, Amount&& amount) {
  const Kind* best = nullptr;
  for (const Job& job : jobs)
    if (const auto* task = std::get_if<Kind>(&job.task))
      if (best == nullptr || amount(*task) > amount(*best)) best = task;
  return best == nullptr ? std::nullopt : std::optional<Task>(*best);
}

/// At rest, and of the heaviest product, attention and copy.
void Session::measure_power(const std::vector<Job>& jobs, const std::atomic<bool>& stop) {
  if (options_.power_time <= Duration(0) || stop) return;
  add_power("idle", device_.idle_watts(seconds(options_.power_time)));
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const std::optional<Task> loads[] = {
      heaviest<GemmTask>(jobs,
                         [&](const GemmTask& t) { return real(t.m) * real(t.n) * real(t.k); }),
      heaviest<AttentionTask>(jobs,
                              [&](const AttentionTask& t) {
                                return real(t.batch * t.heads) * real(t.sequence) *
                                       real(t.sequence);
                              }),
      heaviest<CopyTask>(jobs, [&](const CopyTask& t) { return real(t.bytes.value); })};
  for (const auto& load : loads)
    if (load && !stop) power_of(*load);
}

void Session::save_if_due() {
  if (!unsaved_ || clock_.now() - last_save_ < options_.save_every) return;
  try {
    sim::write_calibration(options_.out, table_);
    unsaved_ = false;
  } catch (const InputError& reason) {  // the file as it was is still there
    if (!std::exchange(no_disk_, true)) report_.warnings.emplace_back(reason.what());
  }
  last_save_ = clock_.now();
}

/// Where the table cannot be written, beside other temporary files rather than not at all.
void Session::save_at_end() {
  if (!unsaved_) return;
  try {
    sim::write_calibration(options_.out, table_);
  } catch (const InputError& reason) {
    const auto name = std::filesystem::path(options_.out).filename();
    const std::string elsewhere = (std::filesystem::temp_directory_path() / name).string();
    report_.warnings.emplace_back(reason.what());
    report_.lost = std::filesystem::weakly_canonical(elsewhere) ==
                   std::filesystem::weakly_canonical(options_.out);
    if (report_.lost) return;
    try {
      sim::write_calibration(elsewhere, table_);
      report_.saved_to = elsewhere;
    } catch (const InputError& again) {
      report_.warnings.emplace_back(again.what());
      report_.lost = true;
    }
  }
}

}  // namespace

SessionReport run_session(Device& device, const std::vector<Job>& jobs,
                          const SessionOptions& options, const std::atomic<bool>& stop,
                          const Clock& clock, const ShowProgress& show) {
  Session session(device, options, clock);
  std::vector<Job> open;
  for (const Job& job : jobs)
    if (!options.resume || !session.knows(job)) open.push_back(job);
  session.report().known = static_cast<std::int64_t>(jobs.size() - open.size());
  const Duration begin = clock.now();
  SessionProgress progress{.done = 0, .total = open.size(), .elapsed = {}, .left = {}, .task = {}};
  if (!stop) session.warm_up(open);
  for (const Job& job : open) {
    if (stop) break;
    progress.elapsed = clock.now() - begin;
    if (progress.done > 0)
      progress.left = to_duration(seconds(progress.elapsed) / static_cast<double>(progress.done) *
                                  static_cast<double>(progress.total - progress.done));
    progress.task = to_text(job);
    show(progress);
    session.measure(job);
    ++progress.done;
    session.save_if_due();
    if (session.lost()) {
      session.report().warnings.emplace_back(
          "five tasks in a row failed: given up, --resume goes on");
      break;
    }
  }
  session.report().interrupted = stop;
  if (!stop && !open.empty() && !session.lost()) session.measure_power(jobs, stop);
  session.save_at_end();
  progress.elapsed = clock.now() - begin;
  progress.left = {};
  progress.task.clear();
  show(progress);
  return std::move(session.report());
}

std::string to_text(const SessionReport& report) {
  std::string text = fmt::format("{}: {} measured", report.gpu, report.measured);
  if (report.known > 0) text += fmt::format(", {} known before", report.known);
  text += report.interrupted ? ", then interrupted: --resume goes on\n" : "\n";
  const auto list = [&](const char* title, const std::vector<Unmeasured>& tasks) {
    if (tasks.empty()) return;
    text += fmt::format("{} {}:\n", tasks.size(), title);
    for (const auto& [task, why] : tasks) text += fmt::format("  {}: {}\n", task, why);
  };
  list("this device cannot do", report.unsupported);
  list("WRONG, so not timed", report.wrong);
  list("throttled, so not timed", report.throttled);
  list("failed", report.failed);
  for (const std::string& warning : report.warnings) text += "warning: " + warning + "\n";
  if (!report.saved_to.empty()) text += "the table is in " + report.saved_to + "\n";
  return text;
}

}  // namespace stepcast::calibrate
