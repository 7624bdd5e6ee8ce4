// Numbers as traces and logs write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::validate {

/// The whole text as an integer.
std::optional<std::int64_t> integer_of(std::string_view text);

/// Microseconds with up to three decimals as nanoseconds, to the digit: Kineto's absolute times
/// have nineteen digits, more than a double holds. Further decimals are cut off.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);

/// The number at the start of the text, thousands separated by ',' or not: "6,667 tflops" is 6667.
std::optional<double> leading_number(std::string_view text);

/// At most 60 characters of the text, bytes that are no printable ASCII as '?'.
std::string printable(std::string_view text);

}  // namespace stepcast::validate
