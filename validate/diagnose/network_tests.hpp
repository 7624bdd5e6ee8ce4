// Measurements of nccl-tests beside the same machine's forecast: whether the network is slow
// without any training.
#pragma once

#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "validate/diagnose/surroundings.hpp"

namespace stepcast::validate {

/// Whether a file is of nccl-tests: its log, its JSON, its CSV; false for what is none.
bool is_network_test(const std::string& path);

/// The largest message of each collective: a sign where it takes a quarter longer than expected on
/// the scenario's machine, else a note. What the log does not say the scenario does; what neither
/// says is a note.
void add_network_test(const std::string& path, const sim::Scenario& scenario, sim::Session& session,
                      Surroundings& around, std::vector<std::string>& notes);

}  // namespace stepcast::validate
