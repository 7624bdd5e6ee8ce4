// The words of NCCL's own log: algorithms and protocols as its versions spell and number them, the
// process a line is from, ranges of channels. Knows no lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::calibrate {

/// Our name of "NVLSTree", "NVLS_TREE" or "5".
std::optional<std::string> algorithm_named(std::string_view word);
/// Our name of "LL128" or "1".
std::optional<std::string> protocol_named(std::string_view word);

/// "host:pid" of "host:pid:tid [0] NCCL INFO"; "" where a log came without it.
std::string process_in(std::string_view prefix);

/// How many channels "channel{Lo..Hi}={0..15}" names; none when it is no such range.
std::optional<std::int64_t> channels_in(std::string_view word);

}  // namespace stepcast::calibrate
