// What stands below the time of a collective: `stepcast collective ... --explain` and `--stepped`.
#pragma once

#include "sim/form/form.hpp"
#include "sim/network/stepped/collective.hpp"
#include "sim/run/step_report.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {

/// Of a report with an explanation.
ToldSection explanation_of(const CollectiveReport& report);
const Form<CollectiveReport>& explanation_form();
/// The stepped form beside the one-variable form.
ToldSection told_of(const SteppedCollective& both);
const Form<SteppedCollective>& stepped_form();

}  // namespace stepcast::sim
