// A run's results as a file: JSON with units in the names.
#pragma once

#include <string>

#include "validate/trainer/run/run.hpp"

namespace stepcast::validate {

/// Throws InputError where it cannot be written.
void write_results(const std::string& path, const TrainerResults& results);

/// All but the timeline, which is a file of its own (sim::write_timelines).
TrainerResults read_results(const std::string& path);

/// For people: step time, its parts, losses.
std::string text_of_results(const TrainerResults& results);

}  // namespace stepcast::validate
