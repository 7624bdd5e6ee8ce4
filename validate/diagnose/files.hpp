// The files of a diagnosis, each told by its content: what was run, what was measured, what stands
// around it.
#pragma once

#include <string>
#include <vector>

#include "validate/diagnose/surroundings.hpp"
#include "validate/trace/inputs.hpp"

namespace stepcast::validate {

/// A log, and what its own file and those without steps say of its run.
struct RunLog {
  StepLog log;
  Facts facts;
};

struct DiagnoseInputs {
  TraceInputs run;
  std::vector<RunLog> logs;  // each of `run` on its own
  Surroundings around;
  std::vector<std::string> network_tests, topologies;  // files

  bool shows_steps() const {
    return !run.traces.empty() || !run.timelines.empty() || !run.logs.empty();
  }
};

/// Throws InputError for a file of which nothing is understood, and where files are of several
/// runs. A run of which no step is shown is one all the same.
DiagnoseInputs read_diagnose_files(const std::vector<std::string>& files,
                                   const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
