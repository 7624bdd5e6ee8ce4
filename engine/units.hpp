// Time, bytes, FLOPs, rates, power: tagged numbers that know only their legal operators.
// Time is integer picoseconds; rounding from a real number to a picosecond happens in to_duration()
// alone. GB is 1e9 bytes, GiB is 2^30. Knows no text: see units_text.hpp.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>

#include "engine/check.hpp"

namespace stepcast {

struct SimClock;
/// A span of simulated time; the range is +-106 days.
using Duration = std::chrono::duration<std::int64_t, std::pico>;
/// An instant of simulated time; Time + Time does not compile.
using Time = std::chrono::time_point<SimClock, Duration>;

/// A number with a dimension. Like adds to like; a plain number scales it; like over like is a
/// plain number. Products of different dimensions exist only where declared below.
template <class Tag, class Rep>
struct Quantity {
  using rep = Rep;
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr Quantity& operator+=(Quantity o) { return value += o.value, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value -= o.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.value / k); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops =
    Quantity<struct FlopsTag, double>;  // a count: one step of 405B x 16M tokens is 3.9e19
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;
using Watts = Quantity<struct WattsTag, double>;
using Joules = Quantity<struct JoulesTag, double>;
using Hertz = Quantity<struct HertzTag, double>;
using Usd = Quantity<struct UsdTag, double>;  // US dollars; the date stands beside the price
using UsdPerHour = Quantity<struct UsdPerHourTag, double>;
using UsdPerKwh = Quantity<struct UsdPerKwhTag, double>;      // of electricity
using GramsPerKwh = Quantity<struct GramsPerKwhTag, double>;  // CO2 equivalent of electricity
using Count = Quantity<struct CountTag, double>;              // of tokens or samples: 15T is 1.5e13

/// Times up to here leave room to add one more duration of any kernel or transfer.
inline constexpr std::int64_t last_instant_ps = std::int64_t{1} << 62;

/// The one place where a real number of seconds becomes picoseconds: to the nearest.
/// Throws BrokenPromise on what is no number, BeyondClock beyond the range of Duration.
inline Duration to_duration(double seconds) {
  const double ps = seconds * 1e12;
  expects(!std::isnan(ps), "a duration is a number");
  if (std::abs(ps) >= 9.2e18) throw BeyondClock("a time of more than 106 days");
  return Duration(static_cast<std::int64_t>(std::llround(ps)));
}

constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double seconds(Time t) { return seconds(t.time_since_epoch()); }

inline Duration operator/(Bytes b, BytesPerSecond r) {
  return to_duration(static_cast<double>(b.value) / r.value);
}
inline Duration operator/(Flops f, FlopsPerSecond r) { return to_duration(f.value / r.value); }
inline BytesPerSecond operator/(Bytes b, Duration d) {
  return BytesPerSecond(static_cast<double>(b.value) / seconds(d));
}
inline FlopsPerSecond operator/(Flops f, Duration d) {
  return FlopsPerSecond(f.value / seconds(d));
}
inline Joules operator*(Watts w, Duration d) { return Joules(w.value * seconds(d)); }
inline Watts operator/(Joules j, Duration d) { return Watts(j.value / seconds(d)); }

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v) << 30);
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9);
}
constexpr BytesPerSecond operator""_Gbps(unsigned long long v) {  // gigabit per second
  return BytesPerSecond(static_cast<double>(v) * 1e9 / 8);
}
constexpr FlopsPerSecond operator""_TFLOPps(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
constexpr Duration operator""_ps(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v));
}
constexpr Duration operator""_ns(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1'000);
}
constexpr Duration operator""_us(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1'000'000);
}
constexpr Duration operator""_ms(unsigned long long v) {
  return Duration(static_cast<std::int64_t>(v) * 1'000'000'000);
}
}  // namespace literals

}  // namespace stepcast
