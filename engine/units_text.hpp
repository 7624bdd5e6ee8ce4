// Quantities as people write them: "400 Gbit/s", "80 GiB", "1.5 us". Case matters, a bit is `bit`
// and a byte is `B`; k M G T P are powers of 1000, Ki Mi Gi Ti Pi powers of 1024. A number without
// a unit is a mistake. Knows no files: `where` is the place that the message shall name.
#pragma once

#include <string>
#include <string_view>

#include "engine/units.hpp"

namespace stepcast {

/// Reads one quantity; the space between number and unit may be missing. Throws InputError for
/// anything else than a finite, non-negative number in range with a unit of Q's dimension.
/// For all quantities of units.hpp and Duration. A Count alone may lack a unit: 15T, 300B, 42.
template <class Q>
Q parse(std::string_view text, std::string_view where);
template <>
Bytes parse<Bytes>(std::string_view text, std::string_view where);
template <>
BytesPerSecond parse<BytesPerSecond>(std::string_view text, std::string_view where);
template <>
Flops parse<Flops>(std::string_view text, std::string_view where);
template <>
FlopsPerSecond parse<FlopsPerSecond>(std::string_view text, std::string_view where);
template <>
Duration parse<Duration>(std::string_view text, std::string_view where);
template <>
Watts parse<Watts>(std::string_view text, std::string_view where);
template <>
Joules parse<Joules>(std::string_view text, std::string_view where);
template <>
Hertz parse<Hertz>(std::string_view text, std::string_view where);
template <>
Usd parse<Usd>(std::string_view text, std::string_view where);
template <>
UsdPerHour parse<UsdPerHour>(std::string_view text, std::string_view where);
template <>
UsdPerKwh parse<UsdPerKwh>(std::string_view text, std::string_view where);
template <>
GramsPerKwh parse<GramsPerKwh>(std::string_view text, std::string_view where);
template <>
Count parse<Count>(std::string_view text, std::string_view where);

/// For reading: three significant digits and a fitting unit, as in "4.21 s" or "13.5 GiB".
std::string to_text(Bytes);
std::string to_text(BytesPerSecond);
std::string to_text(Flops);
std::string to_text(FlopsPerSecond);
std::string to_text(Duration);
std::string to_text(Watts);
std::string to_text(Joules);
std::string to_text(Hertz);
std::string to_text(Usd);
std::string to_text(UsdPerHour);
std::string to_text(UsdPerKwh);
std::string to_text(GramsPerKwh);
std::string to_text(Count);

/// For files: the shortest text with parse<Q>(to_exact_text(q)) == q. Finite, non-negative q only.
std::string to_exact_text(Bytes);
std::string to_exact_text(BytesPerSecond);
std::string to_exact_text(Flops);
std::string to_exact_text(FlopsPerSecond);
std::string to_exact_text(Duration);
std::string to_exact_text(Watts);
std::string to_exact_text(Joules);
std::string to_exact_text(Hertz);
std::string to_exact_text(Usd);
std::string to_exact_text(UsdPerHour);
std::string to_exact_text(UsdPerKwh);
std::string to_exact_text(GramsPerKwh);
std::string to_exact_text(Count);

}  // namespace stepcast
