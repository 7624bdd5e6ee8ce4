#include "engine/units_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "engine/edit_distance.hpp"

namespace stepcast {
namespace {

struct Unit {
  std::string_view symbol;
  double factor;  // how many of the quantity's base unit
};

struct Dimension {
  std::string_view noun, example;
  std::span<const Unit> units;
  std::size_t num_for_reading;  // the first ones, ascending; to_text() uses these
};

constexpr double kibi = 0x1p10, mebi = 0x1p20, gibi = 0x1p30, tebi = 0x1p40, pebi = 0x1p50;

constexpr Unit size_units[] = {{"B", 1},      {"KiB", kibi}, {"MiB", mebi}, {"GiB", gibi},
                               {"TiB", tebi}, {"PiB", pebi}, {"kB", 1e3},   {"MB", 1e6},
                               {"GB", 1e9},   {"TB", 1e12},  {"PB", 1e15}};
constexpr Unit bandwidth_units[] = {{"B/s", 1},          {"kB/s", 1e3},       {"MB/s", 1e6},
                                    {"GB/s", 1e9},       {"TB/s", 1e12},      {"PB/s", 1e15},
                                    {"KiB/s", kibi},     {"MiB/s", mebi},     {"GiB/s", gibi},
                                    {"TiB/s", tebi},     {"bit/s", 0.125},    {"kbit/s", 0.125e3},
                                    {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9}, {"Tbit/s", 0.125e12}};
constexpr Unit flop_units[] = {{"FLOP", 1},     {"kFLOP", 1e3},  {"MFLOP", 1e6},  {"GFLOP", 1e9},
                               {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18}, {"ZFLOP", 1e21}};
constexpr Unit flop_rate_units[] = {{"FLOP/s", 1},     {"kFLOP/s", 1e3},  {"MFLOP/s", 1e6},
                                    {"GFLOP/s", 1e9},  {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15},
                                    {"EFLOP/s", 1e18}, {"ZFLOP/s", 1e21}};
constexpr Unit duration_units[] = {{"ps", 1},   {"ns", 1e3},    {"us", 1e6},   {"ms", 1e9},
                                   {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}};
constexpr Unit power_units[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}, {"GW", 1e9}};
constexpr Unit energy_units[] = {{"mJ", 1e-3}, {"J", 1},      {"kJ", 1e3},    {"MJ", 1e6},
                                 {"GJ", 1e9},  {"Wh", 3.6e3}, {"kWh", 3.6e6}, {"MWh", 3.6e9}};
constexpr Unit clock_units[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit money_units[] = {
    {"USD", 1}, {"thousand USD", 1e3}, {"million USD", 1e6}, {"billion USD", 1e9}};
constexpr Unit price_units[] = {{"USD/h", 1}};
constexpr Unit electricity_units[] = {{"USD/kWh", 1}, {"USD/MWh", 1e-3}};
constexpr Unit carbon_units[] = {{"g/kWh", 1}, {"kg/kWh", 1e3}, {"kg/MWh", 1}};
constexpr Unit count_units[] = {{"", 1},    {"k", 1e3},  {"M", 1e6},
                                {"B", 1e9}, {"T", 1e12}, {"G", 1e9}};

template <class Q>
constexpr Dimension dimension_of{};
template <>
constexpr Dimension dimension_of<Bytes>{"size", "80 GiB", size_units, 6};
template <>
constexpr Dimension dimension_of<BytesPerSecond>{"bandwidth", "50 GB/s", bandwidth_units, 6};
template <>
constexpr Dimension dimension_of<Flops>{"amount of computation", "3.5 TFLOP", flop_units, 8};
template <>
constexpr Dimension dimension_of<FlopsPerSecond>{"compute speed", "989 TFLOP/s", flop_rate_units,
                                                 8};
template <>
constexpr Dimension dimension_of<Duration>{"duration", "1.5 us", duration_units, 7};
template <>
constexpr Dimension dimension_of<Watts>{"power", "700 W", power_units, 5};
template <>
constexpr Dimension dimension_of<Joules>{"energy", "12 kJ", energy_units, 5};
template <>
constexpr Dimension dimension_of<Hertz>{"clock", "1410 MHz", clock_units, 4};
template <>
constexpr Dimension dimension_of<Usd>{"amount of money", "46000 USD", money_units, 4};
template <>
constexpr Dimension dimension_of<UsdPerHour>{"price", "2.5 USD/h", price_units, 1};
template <>
constexpr Dimension dimension_of<UsdPerKwh>{"price of electricity", "0.08 USD/kWh",
                                            electricity_units, 1};
template <>
constexpr Dimension dimension_of<GramsPerKwh>{"carbon intensity", "369 g/kWh", carbon_units, 1};
template <>
constexpr Dimension dimension_of<Count>{"count", "15T", count_units, 5};

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// The spellings of other tools in ours: Gb/s and Gbps are Gbit/s, TFLOPS is TFLOP/s.
std::string in_our_spelling(std::string unit) {
  for (std::string_view micro : {"\u00b5", "\u03bc"}) replace(unit, micro, "u");
  if (unit.size() > 2 && unit.ends_with("ps")) unit.replace(unit.size() - 2, 2, "/s");
  replace(unit, "FLOPS", unit.ends_with("/s") ? "FLOP" : "FLOP/s");
  replace(unit, "FLOPs", unit.ends_with("/s") ? "FLOP" : "FLOP/s");
  replace(unit, "/sec", "/s");
  for (const auto& [short_form, word] : {std::pair("k", "thousand"),
                                         {"K", "thousand"},
                                         {"M", "million"},
                                         {"B", "billion"},
                                         {"bn", "billion"}})
    for (const char* dollars : {"USD", " USD", "$", " $"})
      if (unit == std::string(short_form) + dollars) return std::string(word) + " USD";
  if (unit == "$") return "USD";
  const auto b = unit.find('b');
  if (b != std::string::npos && unit.compare(b, 3, "bit") != 0) unit.replace(b, 1, "bit");
  return unit;
}

std::string suggestion(std::string_view unit, const Dimension& dimension) {
  const std::string ours = in_our_spelling(std::string(unit));
  std::string_view nearest;
  std::size_t fewest = 3;  // two edits and one; beyond is another word
  for (const Unit& u : dimension.units) {
    // edit_distance() ignores case, so the exact spelling has to win by one.
    const std::size_t distance = u.symbol == ours ? 0 : 1 + edit_distance(ours, u.symbol);
    if (distance <= fewest && (nearest.empty() || distance < fewest)) {
      fewest = distance;
      nearest = u.symbol;
    }
  }
  if (nearest.empty()) return "e.g. " + quoted(dimension.example);
  return "did you mean " + quoted(nearest) + "?";
}

struct Amount {
  double number;
  std::optional<std::uint64_t> whole;  // the same number if it was written as digits only
  double factor;
};

/// Digits-only numbers are kept whole: 2^53 + 1 bytes are not 2^53 bytes.
std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t whole = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, whole);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return whole;
}

Amount parse_amount(std::string_view text, std::string_view where, const Dimension& dimension) {
  const std::string noun(dimension.noun), example = "e.g. " + quoted(dimension.example);
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw InputError(std::string(where), what, hint);
  };
  if (text.empty()) refuse(noun + " is empty", example);
  if (text.front() == '-') refuse(noun + " " + quoted(text) + " is negative", example);

  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range)
    refuse(noun + " " + quoted(text) + " is out of range", example);
  if (error != std::errc{} || !std::isfinite(number))
    refuse(noun + " " + quoted(text) + " does not begin with a number", example);

  const std::string_view digits(text.data(), static_cast<std::size_t>(stop - text.data()));
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty() && !dimension.units.front().symbol.empty())
    refuse(noun + " needs a unit", example);
  for (const Unit& u : dimension.units)
    if (u.symbol == unit) return {number, whole_number(digits), u.factor};
  refuse(quoted(unit) + " is not a unit of " + noun, suggestion(unit, dimension));
  return {};
}

double parse_real(std::string_view text, std::string_view where, const Dimension& dimension) {
  const Amount amount = parse_amount(text, where, dimension);
  const double value = amount.number * amount.factor;
  if (!std::isfinite(value))
    throw InputError(std::string(where),
                     std::string(dimension.noun) + " " + quoted(text) + " is out of range");
  return value;
}

/// Counted quantities: to the nearest byte or picosecond, but never from something to nothing.
std::int64_t parse_count(std::string_view text, std::string_view where,
                         const Dimension& dimension) {
  const Amount amount = parse_amount(text, where, dimension);
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  const auto factor = static_cast<std::uint64_t>(amount.factor);
  if (amount.whole && *amount.whole <= static_cast<std::uint64_t>(largest) / factor)
    return static_cast<std::int64_t>(*amount.whole * factor);
  const double value = amount.number * amount.factor;
  const std::string what = std::string(dimension.noun) + " " + quoted(text);
  if (amount.whole || value >= 0x1p63) throw InputError(std::string(where), what + " is too large");
  if (value > 0 && value < 0.5)
    throw InputError(std::string(where),
                     what + " is less than one " + std::string(dimension.units.front().symbol));
  return std::llround(value);
}

/// Three significant digits without an exponent: 4.21, 13.5, 360, 2540.
std::string three_digits(double value) {
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  for (double v = value; v > 0 && v < 0.9995 && decimals < 12; v *= 10) ++decimals;
  if (value >= 999.5) {
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
    value = std::round(value / unit) * unit;
  }
  std::array<char, 400> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, decimals);
  ensures(error == std::errc{}, "the number fits");
  return std::string(buffer.data(), end);
}

/// " GB/s"; the letter of a count stands at its number.
std::string after_number(const Unit& unit, const Dimension& dimension) {
  return (dimension.units.front().symbol.empty() ? "" : " ") + std::string(unit.symbol);
}

/// `counted`: multiples of the smallest unit are whole and stand without decimals.
std::string readable(double value, const Dimension& dimension, bool counted) {
  if (std::isnan(value)) return "unknown";
  if (value < 0) return "-" + readable(-value, dimension, counted);
  if (std::isinf(value)) return "infinite";
  const auto units = dimension.units.first(dimension.num_for_reading);
  std::size_t i = 0;
  if (value == 0) {
    while (units[i].factor < 1) ++i;
    return "0" + after_number(units[i], dimension);
  }
  while (i + 1 < units.size() && value / units[i].factor >= 999.5) ++i;
  const double number = value / units[i].factor;
  const bool whole = counted && i == 0;
  return (whole ? std::to_string(static_cast<std::int64_t>(number)) : three_digits(number)) +
         after_number(units[i], dimension);
}

std::string shortest(double value, std::chars_format format) {
  std::array<char, 800> buffer;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  ensures(error == std::errc{}, "the number fits");
  return std::string(buffer.data(), end);
}

/// Tries every unit; `base` is the quantity in its base unit and exact by construction.
template <class Q>
std::string exact(Q quantity, double value, std::string base) {
  expects(std::isfinite(value) && value >= 0, "a quantity that parse() can return");
  const Dimension& dimension = dimension_of<Q>;
  std::string best = std::move(base);
  if (value == 0) return best;
  for (const Unit& u : dimension.units) {
    const std::string text =
        shortest(value / u.factor, std::chars_format::fixed) + after_number(u, dimension);
    if (text.size() < best.size() && !text.starts_with("0.") &&
        parse<Q>(text, "to_exact_text") == quantity)
      best = text;
  }
  return best;
}

template <class Q>
std::string exact_real(Q q, std::string_view base_unit) {
  return exact(q, q.value,
               shortest(q.value, std::chars_format::general) + (base_unit.empty() ? "" : " ") +
                   std::string(base_unit));
}

template <class Q>
Q parse_real_quantity(std::string_view text, std::string_view where) {
  return Q(parse_real(text, where, dimension_of<Q>));
}

}  // namespace

template <>
Bytes parse<Bytes>(std::string_view text, std::string_view where) {
  return Bytes(parse_count(text, where, dimension_of<Bytes>));
}
template <>
Duration parse<Duration>(std::string_view text, std::string_view where) {
  return Duration(parse_count(text, where, dimension_of<Duration>));
}
template <>
BytesPerSecond parse<BytesPerSecond>(std::string_view text, std::string_view where) {
  return parse_real_quantity<BytesPerSecond>(text, where);
}
template <>
Flops parse<Flops>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Flops>(text, where);
}
template <>
FlopsPerSecond parse<FlopsPerSecond>(std::string_view text, std::string_view where) {
  return parse_real_quantity<FlopsPerSecond>(text, where);
}
template <>
Watts parse<Watts>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Watts>(text, where);
}
template <>
Joules parse<Joules>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Joules>(text, where);
}
template <>
Hertz parse<Hertz>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Hertz>(text, where);
}
template <>
Usd parse<Usd>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Usd>(text, where);
}
template <>
UsdPerHour parse<UsdPerHour>(std::string_view text, std::string_view where) {
  return parse_real_quantity<UsdPerHour>(text, where);
}
template <>
UsdPerKwh parse<UsdPerKwh>(std::string_view text, std::string_view where) {
  return parse_real_quantity<UsdPerKwh>(text, where);
}
template <>
GramsPerKwh parse<GramsPerKwh>(std::string_view text, std::string_view where) {
  return parse_real_quantity<GramsPerKwh>(text, where);
}
template <>
Count parse<Count>(std::string_view text, std::string_view where) {
  return parse_real_quantity<Count>(text, where);
}

std::string to_text(Bytes q) {
  return readable(static_cast<double>(q.value), dimension_of<Bytes>, true);
}
std::string to_text(Duration q) {
  return readable(static_cast<double>(q.count()), dimension_of<Duration>, true);
}
std::string to_text(BytesPerSecond q) {
  return readable(q.value, dimension_of<BytesPerSecond>, false);
}
std::string to_text(Flops q) { return readable(q.value, dimension_of<Flops>, false); }
std::string to_text(FlopsPerSecond q) {
  return readable(q.value, dimension_of<FlopsPerSecond>, false);
}
std::string to_text(Watts q) { return readable(q.value, dimension_of<Watts>, false); }
std::string to_text(Joules q) { return readable(q.value, dimension_of<Joules>, false); }
std::string to_text(Hertz q) { return readable(q.value, dimension_of<Hertz>, false); }
std::string to_text(Usd q) { return readable(q.value, dimension_of<Usd>, false); }
std::string to_text(UsdPerHour q) { return readable(q.value, dimension_of<UsdPerHour>, false); }
std::string to_text(UsdPerKwh q) { return readable(q.value, dimension_of<UsdPerKwh>, false); }
std::string to_text(GramsPerKwh q) { return readable(q.value, dimension_of<GramsPerKwh>, false); }
std::string to_text(Count q) { return readable(q.value, dimension_of<Count>, false); }

std::string to_exact_text(Bytes q) {
  return exact(q, static_cast<double>(q.value), std::to_string(q.value) + " B");
}
std::string to_exact_text(Duration q) {
  return exact(q, static_cast<double>(q.count()), std::to_string(q.count()) + " ps");
}
std::string to_exact_text(BytesPerSecond q) { return exact_real(q, "B/s"); }
std::string to_exact_text(Flops q) { return exact_real(q, "FLOP"); }
std::string to_exact_text(FlopsPerSecond q) { return exact_real(q, "FLOP/s"); }
std::string to_exact_text(Watts q) { return exact_real(q, "W"); }
std::string to_exact_text(Joules q) { return exact_real(q, "J"); }
std::string to_exact_text(Hertz q) { return exact_real(q, "Hz"); }
std::string to_exact_text(Usd q) { return exact_real(q, "USD"); }
std::string to_exact_text(UsdPerHour q) { return exact_real(q, "USD/h"); }
std::string to_exact_text(UsdPerKwh q) { return exact_real(q, "USD/kWh"); }
std::string to_exact_text(GramsPerKwh q) { return exact_real(q, "g/kWh"); }
std::string to_exact_text(Count q) { return exact_real(q, ""); }

}  // namespace stepcast
