// The stepped form of a collective beside its one-variable form, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/network/stepped/collective.hpp"

namespace stepcast::sim {

std::string stepped_text(const SteppedCollective&);
nlohmann::ordered_json stepped_json(const SteppedCollective&);

}  // namespace stepcast::sim
