// A user's own measured steps, [calibration] runs: a table that says what each run differs in from
// the scenario that names it, and how long its step took.
#pragma once

#include <string>
#include <vector>

#include "engine/units.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

struct OwnRun {
  Scenario scenario;
  Duration step{};  // measured
};

/// Columns, in any order: step_time_s or tokens_per_s_per_gpu, what was measured; the columns of
/// published runs model, gpus, seq_len, global_batch_seqs, micro_batch_seqs, dp_mode, tp, sp, pp,
/// virtual_pp, cp, activation_checkpointing, or any key of a scenario ("plan.prefetch"); id and
/// notes, for the reader alone. A blank cell, or a column that is not there, is as in `base`.
/// Throws InputError with file:line.
std::vector<OwnRun> read_own_runs(const std::string& path, const Scenario& base,
                                  const Catalogue& catalogue);

}  // namespace stepcast::sim
