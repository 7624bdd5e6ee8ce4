// gzip, for files that other tools open packed (.json.gz). Knows no format.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::sim {

/// The text as one gzip member; the same bytes for the same text.
std::string gzip(std::string_view text);

/// A whole file, unpacked where it is gzip. Throws InputError where it cannot be read or is
/// damaged.
std::string read_packed(const std::string& path);

}  // namespace stepcast::sim
