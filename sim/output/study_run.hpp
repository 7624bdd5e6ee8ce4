// Runs a study: each point is read, answered and kept as it comes, on several threads. A sweep
// never ends because of one point. Knows neither what answers a scenario nor how rows are written.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "sim/program/shard.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

class OutputFolder;

/// Hands out points of a sweep, each once, to whichever thread asks; none: there are no more.
using NextPoint = std::function<std::optional<std::size_t>()>;

struct StudyRun {
  std::function<Scenario(const TomlValue& document)> read;
  Simulator simulator;
  unsigned threads = 1;
  const std::atomic<bool>& stop;
  Shard shard{};
  NextPoint next{};                // instead of the points of `shard`, in their order
  bool only_known = false;         // answers none: takes the rows that `folder` knows
  OutputFolder* folder = nullptr;  // keeps the points as they end, and knows earlier ones
  std::function<void(std::size_t done)> finished = [](std::size_t) {};
};

/// Points that this run is about.
std::size_t num_points(const Study& study, const Shard& shard);

/// Answers every point. In a sweep, what a point's values do not allow is its row `refused`, an
/// exception its row `failed`. A mistake is the document's, and thrown as it is, where no point can
/// be read and all say the same (tried on a thousand spread over the sweep, before anything runs),
/// or where all were answered with it. Without [sweep] every error is thrown.
Results run_study(Study study, const StudyRun& run);

}  // namespace stepcast::sim
