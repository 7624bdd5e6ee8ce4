// stepcast-trainer SCENARIO.toml: trains the scenario's model under its plan on this machine's
// cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/scenario.hpp"
#include "validate/trainer_communicator.hpp"
#include "validate/trainer_run.hpp"

namespace stepcast::validate {

enum class RankKind : std::uint8_t { mpi, threads };

/// What the command line asks for.
struct TrainerCommand {
  sim::Scenario scenario;
  RunSettings run;
  RankKind ranks = RankKind::mpi;
  std::string results, timeline;  // files; empty: none
  Duration patience{};            // for a peer that does not come
  bool json = false, quiet = false;
};

/// Runs `body` as one rank of an MPI run; null in a program without MPI.
using MpiRank = std::function<void(Duration patience,
                                   const std::function<void(std::unique_ptr<Communicator>)>& body)>;

/// The whole program: `words` are its arguments. Throws what main() prints.
int command_trainer(const std::vector<std::string>& words, const std::string& program,
                    const MpiRank& mpi_rank);

}  // namespace stepcast::validate
