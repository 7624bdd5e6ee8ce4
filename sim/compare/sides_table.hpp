// The sides of a comparison as a table, a row a side.
#pragma once

#include <string>

#include "sim/compare/comparison.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {

/// "1.20 s"; nothing is "0".
std::string time_text(double time_s);
/// The columns of sides_table() in files, whatever parts the sides have.
TextTable sides_columns();

}  // namespace stepcast::sim
