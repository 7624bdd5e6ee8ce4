// What every picture of ours begins with: SVG that is legible on light and dark pages. Knows no
// scale and no data.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stepcast::sim {

// #777 has a contrast of 4.5 on white and 4.7 on black; the others lie about as far from both.
inline constexpr std::string_view svg_ink = "#777";
inline constexpr std::array<std::string_view, 8> svg_colours = {
    "#3a86c8", "#d9622b", "#2a9d6a", "#b05fc4", "#c09000", "#d64a78", "#2aa3ad", "#8a6d5a"};

/// Text of an element or an attribute, on one line; what printable() spells is spelled.
std::string svg_escaped(const std::string& text);

/// The opening tag, in user units that a page scales as it likes, and the title for readers.
std::string svg_head(double width, double height, const std::string& title);

}  // namespace stepcast::sim
