// Why a step takes so long, told once.
#pragma once

#include <cstddef>

#include "sim/told/told.hpp"
#include "sim/why/why.hpp"

namespace stepcast::sim {

/// At most `top` rows of a table for people, the rest of the path as one; programs get all, and
/// every edge. Borrows `why` until it is written.
ToldSection told_of(const Why& why, std::size_t top);
/// What programs get.
const Form<Why>& why_form();

/// The path by kind of edge and stage; what moves the step, where anything does; and what could be
/// otherwise than it is, rather than more or less, empty for dense 16-bit steps.
TextTable path_table(const Why& why, std::size_t top);
TextTable slopes_table(const Why& why);
TextTable levers_table(const Why& why);
nlohmann::ordered_json why_schema();

}  // namespace stepcast::sim
