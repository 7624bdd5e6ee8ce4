// How a page looks and the little that it does: its style sheet and its script. Both stand inside
// the file.
#pragma once

#include <string_view>

namespace stepcast::sim {

extern const std::string_view page_style, page_script;

}  // namespace stepcast::sim
