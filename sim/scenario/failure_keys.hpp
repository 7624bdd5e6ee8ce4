// The table [failures] with its catalogue of rates: TOML to values, and back.
#pragma once

#include "sim/files/toml_table.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/failures.hpp"

namespace stepcast::sim {

/// An entry of scenarios/failures, a file of that form, or a table with all of it. Throws
/// InputError.
FailureRates read_failure_rates(const TomlValue& value, const Catalogue& catalogue);

/// Reads [failures]. Throws InputError.
Failures read_failures(TableReader& table, const Catalogue& catalogue);

/// [failures] as it would be read.
TomlValue failures_table(const Failures& failures);

}  // namespace stepcast::sim
