// stepcast-trainer SCENARIO.toml: trains the scenario's model under its plan on this machine's
// cores, or on GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {

enum class RankKind : std::uint8_t { mpi, processes, threads };

/// What the command line asks for.
struct TrainerCommand {
  sim::Scenario scenario;
  RunSettings run;
  std::optional<RankKind> ranks;     // none: what fits
  std::string rendezvous;            // of processes on several nodes
  std::optional<std::int64_t> gpus;  // of each node, at most: more ranks share them
  std::int64_t nodes = 1, node = 0;
  std::string results, timeline;  // files; empty: none
  bool quiet = false;
};

/// What this build has beside the host's cores; each may be null.
struct Machinery {
  /// Runs `body` as one rank of an MPI run.
  std::function<void(Duration patience,
                     const std::function<void(std::unique_ptr<Communicator>)>& body)>
      mpi_rank;
  std::function<std::int64_t()> num_gpus;
  /// `most`: GPUs of a node that may be used, so that several ranks may share one; none: each rank
  /// has its own.
  std::function<GpuMakers(std::optional<std::int64_t> most)> gpu_makers;
  /// The trainer that has GPUs, where this program does without; empty: there is none.
  std::string gpu_program{};
};

extern const sim::Verb trainer_verb;

/// The whole program, whose file is `program`. Throws what main() prints.
int command_trainer(const sim::Arguments& arguments, const std::string& program,
                    const Machinery& machinery, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
