#include "validate/trace/intervals.hpp"

#include <bitset>
#include <catch2/catch.hpp>
#include <random>

using namespace stepcast;
using namespace stepcast::validate;

namespace {

constexpr std::size_t instants = 64;
using Painted = std::bitset<instants>;  // bit t: the picosecond from t to t + 1

Time at(std::size_t t) { return Time(Duration(static_cast<std::int64_t>(t))); }

Painted painted(const std::vector<Interval>& list) {
  Painted out;
  for (const Interval& i : list)
    for (std::size_t t = 0; t < instants; ++t)
      if (at(t) >= i.begin && at(t) < i.end) out.set(t);
  return out;
}

std::vector<Interval> random_intervals(std::mt19937& random) {
  std::vector<Interval> out;
  for (std::size_t n = random() % 9; n > 0; --n) {
    const std::size_t begin = random() % instants;
    out.push_back({at(begin), at(begin + random() % 12)});
  }
  return out;
}

}  // namespace

TEST_CASE("sets of time are those of their picoseconds") {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Interval> a = random_intervals(random), b = random_intervals(random);
    const Intervals all(a), less = all.minus(Intervals(b));
    CHECK(painted(all.list()) == painted(a));
    CHECK(painted(less.list()) == (painted(a) & ~painted(b)));
    const std::size_t from = random() % instants, to = from + random() % (instants - from);
    const Painted window = painted({{at(from), at(to)}});
    CHECK(less.within({at(from), at(to)}).count() ==
          static_cast<std::int64_t>((painted(a) & ~painted(b) & window).count()));
  }
}

TEST_CASE("touching intervals become one") {
  const Intervals one({{at(3), at(5)}, {at(1), at(3)}, {at(7), at(7)}});
  CHECK(one.list() == std::vector<Interval>{{at(1), at(5)}});
}
