// Which tasks to measure: exactly those of some scenarios, from the step programs that the
// simulator runs, so that nothing is forgotten; or a grid for Llama-like models. Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "calibrate/device/device.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::calibrate {

/// A task in one state of the cache.
struct Job {
  Task task;
  Cache cache = Cache::cold;
  friend bool operator==(const Job&, const Job&) = default;
};

std::string to_text(const Job& job);

struct JobList {
  std::vector<Job> jobs;
  std::vector<std::string> not_here;  // and why: "allreduce of 64 ranks: 2 take part here"
};

/// What the tasks must know of the device.
struct Bench {
  bool gpu = true;         // false: this machine's cores, where nothing runs beside a collective
  std::int64_t ranks = 1;  // that take part in collectives

  const char* attention() const { return gpu ? "own_flash" : "host"; }
};

/// Every point of the files' sweeps; degrees that are "best" as all that divide. Throws InputError.
std::vector<sim::Scenario> scenarios_in(const std::vector<std::string>& files,
                                        const sim::Catalogue& catalogue);

/// Kernels and collectives of the scenarios, each once, cold; with them the launch, the copies, and
/// where several ranks take part, the largest kernels beside the largest collectives.
JobList jobs_of(const std::vector<sim::Scenario>& scenarios, const Bench& bench);

struct Grid {
  std::string dtype = "bf16";
  std::int64_t tokens = 4096;  // of a micro-batch: one sequence
  std::vector<std::int64_t> tensor_degrees = {1, 2, 4, 8};
  std::vector<std::string> models = {"llama2-7b", "llama2-13b", "llama2-70b"};
  bool thorough = true;      // hot caches, best of eight, forced algorithms as well
  double most_flops = 1e15;  // longer tasks are left out
};

/// The grid of a device: all on a GPU, small shapes on this machine's cores; `quick` less of both.
Grid grid_for(const std::string& device_kind, bool quick);

/// Shapes of Megatron's cuts: products of all layers in three passes, attention,
/// element-wise kernels, copies, the launch, collectives by size, overlap.
JobList jobs_of(const Grid& grid, const Bench& bench, const sim::Catalogue& catalogue);

}  // namespace stepcast::calibrate
