#include "engine/units.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace stepcast;

namespace {
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
}  // namespace

TEST_CASE("bytes over a bandwidth are a duration, to the nearest picosecond") {
  // 2^20 / 900e9 s = 1.165084444 us
  CHECK(1_MiB / 900_GBps == 1'165'084_ps);
  CHECK(50_GBps == 400_Gbps);
  CHECK(Bytes(100) / 400_Gbps == 2_ns);
}

TEST_CASE("FLOPs over a speed are a duration") {
  CHECK(Flops(989e12) / 989_TFLOPps == Duration(1'000'000'000'000));
}

TEST_CASE("watts times seconds are joules and back") {
  CHECK((Watts(700) * 1'000_ms).value == Approx(700));
  CHECK((Joules(700) / 1'000_ms).value == Approx(700));
}

TEST_CASE("rates come back from amounts and durations") {
  CHECK((Bytes(1'000'000) / 20_us).value == Approx(50e9));
  CHECK((Flops(1e12) / 1_ms).value == Approx(1e15));
}

TEST_CASE("a decimal and a binary gigabyte differ by 7.4 percent") {
  CHECK(1_GiB / Bytes(1'000'000'000) == Approx(1.073741824));
}

TEST_CASE("rounding goes to the nearest picosecond, halves away from zero") {
  CHECK(to_duration(1.4e-12) == 1_ps);
  CHECK(to_duration(1.6e-12) == 2_ps);
  CHECK(to_duration(2.5e-12) == 3_ps);
  CHECK(to_duration(-1.6e-12) == -2_ps);
}

TEST_CASE("a duration that cannot be held is refused, not wrapped") {
  CHECK_THROWS_AS(to_duration(1e8), BeyondClock);
  CHECK_THROWS_AS(to_duration(std::numeric_limits<double>::infinity()), BeyondClock);
  CHECK_THROWS_AS(to_duration(std::numeric_limits<double>::quiet_NaN()), BrokenPromise);
  CHECK_THROWS_AS(1_GiB / BytesPerSecond(0), BeyondClock);
}

TEST_CASE("operations without a meaning do not compile") {
  STATIC_REQUIRE_FALSE(Addable<Bytes, Duration>);
  STATIC_REQUIRE_FALSE(Addable<Bytes, Flops>);
  STATIC_REQUIRE_FALSE(Addable<Bytes, int>);
  STATIC_REQUIRE_FALSE(Addable<Time, Time>);
  STATIC_REQUIRE_FALSE(Multipliable<Bytes, Bytes>);
  STATIC_REQUIRE_FALSE(Divisible<Bytes, FlopsPerSecond>);
  STATIC_REQUIRE_FALSE(Comparable<BytesPerSecond, FlopsPerSecond>);
  STATIC_REQUIRE(Addable<Time, Duration>);
  STATIC_REQUIRE(Addable<Bytes, Bytes>);
  STATIC_REQUIRE(Divisible<Bytes, BytesPerSecond>);
}
