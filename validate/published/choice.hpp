// What a row leaves open of its plan: recompute and micro-batch, as its users would choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/published/defaults.hpp"
#include "validate/rows/row.hpp"

namespace stepcast::validate {

/// Stated, or from the accumulation steps; none: open.
std::optional<std::int64_t> stated_micro_batch(const PublishedRow& row, std::int64_t sequences);

/// Stated, or the framework's; open where that could not have run.
std::optional<workloads::Recompute> recompute_of(const PublishedRow& row,
                                                 const FrameworkDefaults& framework,
                                                 const sim::Scenario& scenario,
                                                 std::int64_t micro_batch);

struct Choice {
  std::optional<workloads::Recompute> recompute;  // none: open
  std::int64_t selective_every = 0;  // of "selective": every n-th layer; 0: attention alone
  std::optional<std::int64_t> micro_batch;
  std::int64_t sequences = 1;  // of a replica and step
};

/// What the row leaves open is chosen as its users would: the least recompute that may fit, then
/// the largest micro-batch that fits.
void choose(sim::Scenario& scenario, const Choice& choice, std::vector<std::string>& assumed,
            sim::Session& session);

}  // namespace stepcast::validate
