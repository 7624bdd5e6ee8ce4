// A Why as text and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "sim/files/text_table.hpp"
#include "sim/why/why.hpp"

namespace stepcast::sim {

/// At most `top` rows of the path, the rest as one.
std::string why_text(const Why& why, std::size_t top);
/// Stages that may go slower, as a table; nothing where there is no pipeline.
std::string slack_text(const PipelineSlack& slack);
/// The path by kind of edge and stage; what moves the step, where anything does; and what could be
/// otherwise than it is, rather than more or less, empty for dense 16-bit steps.
TextTable path_table(const Why& why, std::size_t top);
TextTable slopes_table(const Why& why);
TextTable levers_table(const Why& why);
/// Complete: every edge.
std::string why_json(const Why& why);

}  // namespace stepcast::sim
