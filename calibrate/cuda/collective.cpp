#include "calibrate/cuda/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "engine/check.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::calibrate {
namespace {

/// An order that takes longer has hung: 8 GiB over loopback sockets (about 1 GB/s) in batches of
/// ten take 80 s.
constexpr double patience_s = 200;

std::string worker_program(const TeamOptions& options) {
  return options.program.empty() ? sim::beside_program("stepcast-nccl-worker") : options.program;
}

std::string nccl_version(const std::string& program) {
  const std::string text = sim::first_line_of({program, "version"});
  return text.empty() ? "" : "NCCL " + text;
}

double mean(const std::vector<std::string>& answers) {
  double sum = 0;
  for (const auto& answer : answers) sum += std::stod(answer);
  return sum / static_cast<double>(answers.size());
}

class PreparedCollective final : public Prepared {
 public:
  PreparedCollective(WorkerTeam& team, const CollectiveTask& task, std::uint64_t seed)
      : team_(team), task_(task) {
    team_.ask(fmt::format("prepare {} {} {}", task.collective, task.bytes.value, seed % (1 << 30)),
              patience_s);
    team_.ask("warm", patience_s);
  }
  double relative_error() override {
    double worst = 0;
    for (const auto& answer : team_.ask("error", patience_s))
      worst = std::max(worst, std::stod(answer));
    return worst;
  }
  double tolerance() const override { return 1e-5; }  // sums of up to some thousand fp32
  /// nccl-tests' default: the mean over the ranks of each one's own wall-clock time.
  Batch run(std::int64_t repetitions, Cache) override {
    const double ps = mean(team_.ask(fmt::format("run {}", repetitions), patience_s));
    return {.total = Duration(std::llround(ps))};
  }
  Bytes bytes() const override { return task_.bytes; }

 private:
  WorkerTeam& team_;
  CollectiveTask task_;
};

/// Of a kernel and of a collective: the slowest rank's, since the others wait for it.
struct Pair {
  double kernel_ps = 0, collective_ps = 0;
};

Pair slowest(const std::vector<std::string>& answers) {
  Pair pair;
  for (const auto& answer : answers) {
    const auto space = answer.find(' ');
    pair.kernel_ps = std::max(pair.kernel_ps, std::stod(answer.substr(0, space)));
    pair.collective_ps = std::max(pair.collective_ps, std::stod(answer.substr(space + 1)));
  }
  return pair;
}

class PreparedOverlap final : public Prepared {
 public:
  PreparedOverlap(WorkerTeam& team, const OverlapTask& task, std::uint64_t seed)
      : team_(team), collective_(team, task.collective, seed) {
    team_.ask(fmt::format("beside {} {}", seed % (1 << 30), to_text(task.kernel)), patience_s);
    alone_ = slowest(team_.ask("alone 10", patience_s));
    expects(alone_.kernel_ps > 0 && alone_.collective_ps > 0, "kernels that take time");
  }
  double relative_error() override { return collective_.relative_error(); }
  double tolerance() const override { return collective_.tolerance(); }
  Batch run(std::int64_t repetitions, Cache) override;

 private:
  WorkerTeam& team_;
  PreparedCollective collective_;
  Pair alone_;
};

/// Kernels enough to see three collectives end, collectives enough to outlast the kernels: two and
/// a half times their time, and more where that falls short. Streams take no more than 1,024
/// launches before the host waits.
Batch PreparedOverlap::run(std::int64_t repetitions, Cache) {
  constexpr double most = 400;
  const double enough = std::ceil(3 * alone_.collective_ps / alone_.kernel_ps);
  const double kernels = std::clamp(std::max(static_cast<double>(repetitions), enough), 1.0, most);
  double factor = 2.5;
  while (true) {
    const double needed = factor * kernels * alone_.kernel_ps / alone_.collective_ps + 2;
    const double collectives = std::clamp(std::ceil(needed), 3.0, most);
    try {
      const Pair pair = slowest(
          team_.ask(fmt::format("together {:.0f} {:.0f}", kernels, collectives), patience_s));
      const auto times = static_cast<double>(repetitions);
      return {.total = Duration(std::llround(pair.kernel_ps * times)),
              .beside = Duration(std::llround(pair.collective_ps * times))};
    } catch (const Unsupported&) {
      factor *= 2;
      if (factor > 12 || collectives >= most) throw;
    }
  }
}

}  // namespace

Collectives::Collectives(const TeamOptions& options) : options_(options) {
  const bool several = options.gpus * options.ranks_per_gpu > 1 || options.nodes > 1;
  if (!several || !std::filesystem::exists(worker_program(options))) return;
  library_ = nccl_version(worker_program(options));
  if (options.ranks_per_gpu > 1)
    library_ += fmt::format(", {} ranks on each GPU over loopback sockets", options.ranks_per_gpu);
  nodes_.emplace(options);
}

WorkerTeam& Collectives::team_for(const Forced& forced) {
  if (!team_ || forced_ != forced) {
    team_.reset();
    team_ = std::make_unique<WorkerTeam>(*nodes_, forced);
    forced_ = forced;
  }
  return *team_;
}

template <class Make>
std::unique_ptr<Prepared> Collectives::with_team(const CollectiveTask& task, Make make) {
  if (!nodes_)
    throw Unsupported(options_.gpus * options_.ranks_per_gpu * options_.nodes > 1
                          ? "stepcast-nccl-worker was not built: no NCCL"
                          : "one GPU has nobody to talk to");
  const Forced forced = spelled_for_nccl(task.algorithm, task.protocol);
  if (const auto known = broken_.find(forced); known != broken_.end())
    throw Unsupported(known->second);
  try {
    return make(team_for(forced));
  } catch (const InputError& error) {
    team_.reset();
    broken_[forced] = error.what();
    throw Unsupported(error.what());
  }
}

std::unique_ptr<Prepared> Collectives::make(const CollectiveTask& task, std::uint64_t seed) {
  return with_team(task, [&](WorkerTeam& team) {
    return std::make_unique<PreparedCollective>(team, task, seed);
  });
}

std::unique_ptr<Prepared> Collectives::make(const OverlapTask& task, std::uint64_t seed) {
  if (options_.ranks_per_gpu > 1 || num_ranks() < 2)
    throw Unsupported("overlap needs two GPUs: ranks on one GPU take turns on it");
  return with_team(task.collective, [&](WorkerTeam& team) {
    return std::make_unique<PreparedOverlap>(team, task, seed);
  });
}

}  // namespace stepcast::calibrate
