// A page that is HTML already, as a file. Knows nothing of what it says.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::sim {

/// Over no file that is there, but an earlier page of ours: one that names stepcast as its
/// generator among its first lines. Throws InputError where there is another, OutputError.
void write_html(const std::string& path, std::string_view html);

}  // namespace stepcast::sim
