#include "engine/units_text.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

using namespace stepcast;
using Catch::Contains;

namespace {
template <class Q>
std::string message(std::string_view text) {
  try {
    parse<Q>(text, "a.toml:3");
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("quantities are read with or without the space") {
  CHECK(parse<BytesPerSecond>("400 Gbit/s", "") == 50_GBps);
  CHECK(parse<BytesPerSecond>("400Gbit/s", "") == 50_GBps);
  CHECK(parse<BytesPerSecond>("450 GB/s", "") == 450_GBps);
  CHECK(parse<Bytes>("80 GiB", "") == 80_GiB);
  CHECK(parse<Bytes>("64MiB", "") == 64_MiB);
  CHECK(parse<Duration>("1.5 us", "") == 1'500_ns);
  CHECK(parse<Duration>("2 h", "") == 7'200'000_ms);
  CHECK(parse<FlopsPerSecond>("989 TFLOP/s", "") == 989_TFLOPps);
  CHECK(parse<Flops>("1e3 GFLOP", "") == Flops(1e12));
  CHECK(parse<Watts>("700 W", "") == Watts(700));
  CHECK(parse<Joules>("2 kWh", "") == Joules(7.2e6));
}

TEST_CASE("money, carbon, clocks and counts are quantities") {
  CHECK(parse<UsdPerHour>("2.5 USD/h", "") == UsdPerHour(2.5));
  CHECK(parse<Usd>("2.5 million USD", "") == Usd(2.5e6));
  CHECK(parse<UsdPerKwh>("80 USD/MWh", "") == UsdPerKwh(0.08));
  CHECK(parse<GramsPerKwh>("0.369 kg/kWh", "") == GramsPerKwh(369));
  CHECK(parse<Hertz>("1410 MHz", "") == Hertz(1.41e9));
  CHECK(parse<Count>("15T", "") == Count(15e12));
  CHECK(parse<Count>("300 B", "") == Count(3e11));
  CHECK(parse<Count>("42", "") == Count(42));
  CHECK(to_text(Count(15e12)) == "15.0T");
  CHECK(to_exact_text(Count(15e12)) == "15T");
  CHECK(to_text(Usd(2.03e6)) == "2.03 million USD");
  CHECK(to_exact_text(UsdPerHour(2.95)) == "2.95 USD/h");
  CHECK_THAT(message<UsdPerHour>("2.5 EUR/h"), Contains("not a unit of price"));
  CHECK_THAT(message<Count>("15 tokens"), Contains("not a unit of count"));
}

TEST_CASE("decimal and binary prefixes are different numbers") {
  CHECK(parse<Bytes>("1 GB", "") == Bytes(1'000'000'000));
  CHECK(parse<Bytes>("1 GiB", "") == Bytes(1'073'741'824));
  CHECK(parse<Bytes>("1 kB", "") == Bytes(1'000));
  CHECK(parse<Bytes>("1.5 KiB", "") == Bytes(1'536));
}

TEST_CASE("whole counts are kept to the last byte") {
  CHECK(parse<Bytes>("9007199254740993 B", "") == Bytes(9'007'199'254'740'993));
  CHECK(parse<Bytes>("9223372036854775807 B", "") ==
        Bytes(std::numeric_limits<std::int64_t>::max()));
}

TEST_CASE("a bare number is a mistake with an example") {
  CHECK(message<BytesPerSecond>("50") == "a.toml:3: bandwidth needs a unit, e.g. \"50 GB/s\"");
  CHECK_THAT(message<Bytes>("0"), Contains("size needs a unit"));
  CHECK_THAT(message<Duration>("1e-6 "), Contains("duration needs a unit"));
}

TEST_CASE("an unknown unit is answered with the one that was meant") {
  CHECK(message<BytesPerSecond>("400 Gb/s") ==
        "a.toml:3: \"Gb/s\" is not a unit of bandwidth, did you mean \"Gbit/s\"?");
  CHECK_THAT(message<BytesPerSecond>("400 Gbps"), Contains("\"Gbit/s\"?"));
  CHECK_THAT(message<BytesPerSecond>("50 GBps"), Contains("\"GB/s\"?"));
  CHECK_THAT(message<BytesPerSecond>("50 GB"), Contains("\"GB/s\"?"));
  CHECK_THAT(message<BytesPerSecond>("50 GB/S"), Contains("\"GB/s\"?"));
  CHECK_THAT(message<BytesPerSecond>("50 GB/s "), Contains("\"GB/s\"?"));
  CHECK_THAT(message<Bytes>("80 gib"), Contains("\"GiB\"?"));
  CHECK_THAT(message<Bytes>("80 KB"), Contains("\"kB\"?"));
  CHECK_THAT(message<FlopsPerSecond>("989 TFLOPS"), Contains("\"TFLOP/s\"?"));
  CHECK_THAT(message<FlopsPerSecond>("989 TFLOPs/s"), Contains("\"TFLOP/s\"?"));
  CHECK_THAT(message<Duration>("1.5 \u00b5s"), Contains("\"us\"?"));
  CHECK_THAT(message<Duration>("3 sec"), Contains("did you mean"));
  CHECK_THAT(message<Duration>("3 fortnights"), Contains("e.g. \"1.5 us\""));
}

TEST_CASE("what is not a plain finite number in range is refused") {
  for (const char* text : {"",
                           " ",
                           " 1 B",
                           "-1 B",
                           "- 1 B",
                           "+1 B",
                           "nan B",
                           "inf B",
                           "GiB",
                           "1 B B",
                           "1 B 2",
                           "0x10 B",
                           "1,5 GiB",
                           "1e400 B",
                           "1e-400 B",
                           "9223372036854775808 B",
                           "8388608 TiB",
                           "1e19 B",
                           "99999999999999 GB",
                           "0.3 B",
                           "1\tB"}) {
    INFO('"' << text << '"');
    CHECK_THROWS_AS(parse<Bytes>(text, "x"), InputError);
  }
  for (const char* text : {"1e308 GB/s", "nan GB/s", "inf GB/s", "-0 GB/s", "1 GB/s/s"}) {
    INFO('"' << text << '"');
    CHECK_THROWS_AS(parse<BytesPerSecond>(text, "x"), InputError);
  }
  CHECK_THROWS_AS(parse<Duration>("3000 h", "x"), InputError);  // the range is 106 days
  CHECK_THROWS_AS(parse<Bytes>(std::string(100'000, '9') + " B", "x"), InputError);
}

TEST_CASE("text for reading has three significant digits and a fitting unit") {
  CHECK(to_text(Duration(4'213'000'000'000)) == "4.21 s");
  CHECK(to_text(Duration(0)) == "0 ps");
  CHECK(to_text(7_ps) == "7 ps");
  CHECK(to_text(-1'500_ns) == "-1.50 us");
  CHECK(to_text(Duration(999'600'000)) == "1.00 ms");
  CHECK(to_text(Duration(1'000'000'000'000'000)) == "16.7 min");
  CHECK(to_text(Bytes(14'495'514'624)) == "13.5 GiB");
  CHECK(to_text(Bytes(512)) == "512 B");
  CHECK(to_text(1_GiB - 1_B) == "1.00 GiB");
  CHECK(to_text(BytesPerSecond(360e9)) == "360 GB/s");
  CHECK(to_text(400_Gbps) == "50.0 GB/s");
  CHECK(to_text(FlopsPerSecond(989e12)) == "989 TFLOP/s");
  CHECK(to_text(Flops(3.9e25)) == "39000 ZFLOP");
  CHECK(to_text(Watts(0)) == "0 W");
  CHECK(to_text(Watts(9.996)) == "10.0 W");
  CHECK(to_text(BytesPerSecond(std::numeric_limits<double>::infinity())) == "infinite");
}

TEST_CASE("exact text is short where the number is round") {
  CHECK(to_exact_text(80_GiB) == "80 GiB");
  CHECK(to_exact_text(Bytes(1'000'000'000)) == "1 GB");
  CHECK(to_exact_text(Bytes(0)) == "0 B");
  CHECK(to_exact_text(1'500_ns) == "1.5 us");
  CHECK(to_exact_text(400_Gbps) == "50 GB/s");
  CHECK(to_exact_text(989_TFLOPps) == "989 TFLOP/s");
  CHECK(to_exact_text(Watts(700)) == "700 W");
}

TEMPLATE_TEST_CASE("exact text reads back as the same quantity", "", BytesPerSecond, Flops,
                   FlopsPerSecond, Watts, Joules) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-3, 25), mantissa(1, 10);
  for (int i = 0; i < 5'000; ++i) {
    const double x = mantissa(random) * std::pow(10, exponent(random));
    const double round = i % 2 ? x : std::round(x);
    const std::string text = to_exact_text(TestType(round));
    INFO(text);
    REQUIRE(parse<TestType>(text, "x") == TestType(round));
  }
}

TEST_CASE("exact text of counts reads back as the same count") {
  std::mt19937_64 random(8);
  for (int i = 0; i < 20'000; ++i) {
    const auto count = static_cast<std::int64_t>(random() >> (1 + i % 62));
    REQUIRE(parse<Bytes>(to_exact_text(Bytes(count)), "x") == Bytes(count));
    REQUIRE(parse<Duration>(to_exact_text(Duration(count)), "x") == Duration(count));
  }
}

TEST_CASE("text for reading is never further from the number than half of the third digit") {
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> exponent(0, 17);
  for (int i = 0; i < 20'000; ++i) {
    const double x = std::pow(10, exponent(random));
    const std::string text = to_text(BytesPerSecond(x));
    INFO(x << " is " << text);
    REQUIRE(parse<BytesPerSecond>(text, "x").value == Approx(x).epsilon(0.00501));
  }
}
