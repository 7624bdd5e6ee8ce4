// Colour on a terminal for what matters: what is best, what is refused, what is warned of. Nowhere
// else, and not where NO_COLOR says something (no-color.org) or the terminal is dumb.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace stepcast::sim {

enum class Hue { best, refused, warning };

bool may_colour(std::FILE* to);

std::string in_hue(Hue hue, std::string_view text);

/// A text that is printable already: the word of a line that warns, what a line says of plans that
/// do not fit or points that are refused, and each line that begins with `best`, where that is not
/// empty.
std::string with_hues(std::string_view text, std::string_view best = {});

/// tell() of a text whose best line begins so.
void tell_best(std::FILE* to, std::string_view text, std::string_view best);
/// tell() of a text that refuses.
void tell_refused(std::FILE* to, std::string_view text);

}  // namespace stepcast::sim
