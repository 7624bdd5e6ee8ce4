// What stands below the time of a collective: `stepcast collective ... --explain` and `--stepped`.
#pragma once

#include "sim/network/stepped/collective.hpp"
#include "sim/run/step_report.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {

/// Of a report with an explanation. Borrows it until it is written.
ToldSection explanation_of(const CollectiveReport& report);
/// The stepped form beside the one-variable form. Borrows `both` likewise.
ToldSection told_of(const SteppedCollective& both);

}  // namespace stepcast::sim
