#include "sim/confidence/interval.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "sim/confidence/evidence.hpp"

using namespace stepcast::sim;

namespace {

Residual row(const char* source, double log_ratio, Case of = {"ampere", "megatron-lm", "nodes"}) {
  return {source, "", log_ratio, std::move(of)};
}

ResidualRefs refs(const std::vector<Residual>& rows) {
  ResidualRefs out;
  for (const Residual& r : rows) out.push_back(&r);
  return out;
}

/// `sources` sources of one row each, 0.01 apart around 0.
std::vector<Residual> ladder(int sources, const Case& of = {"ampere", "megatron-lm", "nodes"}) {
  std::vector<Residual> out;
  for (int i = 0; i < sources; ++i)
    out.push_back({"S" + std::to_string(i), "", 0.01 * (i - sources / 2), of});
  return out;
}

}  // namespace

TEST_CASE("a source of a thousand rows weighs no more than one of a single row") {
  // Four sources of one row at 0, 0.1, 0.2, 0.3 and a fifth of a thousand rows at 0.4: the median
  // of the weights stands at 0.2, where that of the rows is 0.4.
  std::vector<Residual> rows{row("A", 0.0), row("B", 0.1), row("C", 0.2), row("D", 0.3)};
  for (int i = 0; i < 1000; ++i) rows.push_back(row("E", 0.4));
  const Interval interval = interval_of(refs(rows), 0.5);
  CHECK(0.5 * (interval.low + interval.high) == Approx(0.2));
  CHECK(interval.sources == 5);
}

TEST_CASE("the level is that of K + 1 sources, the one asked about among them") {
  // Nine sources, deviations 0, 1, 1, 2, 2, 3, 3, 4, 4 hundredths: 80 % of ten are eight of nine,
  // the first deviation at or above 8/9 of the weight is 0.04; 70 % are seven: 0.03.
  const std::vector<Residual> rows = ladder(9);
  const Interval at80 = interval_of(refs(rows), 0.8), at70 = interval_of(refs(rows), 0.7);
  CHECK(at80.low == Approx(-0.04));
  CHECK(at80.high == Approx(0.04));
  CHECK(at70.high == Approx(0.03));
  CHECK(at80.assured);
}

TEST_CASE("K sources assure no level above K / (K + 1)") {
  CHECK(interval_of(refs(ladder(4)), 0.8).assured);
  CHECK_FALSE(interval_of(refs(ladder(3)), 0.8).assured);
  CHECK_FALSE(interval_of(refs(ladder(9)), 0.95).assured);
}

TEST_CASE("what the residuals have measured is not widened, what they have not by the shift") {
  const std::vector<Residual> known = ladder(10);
  const double shift = 2.5;
  CHECK(widening_of(known.front().of, known, shift) == 1.0);
  CHECK(widening_of({"blackwell", "megatron-lm", "nodes"}, known, shift) == shift);
  CHECK(widening_of({"ampere", "megatron-lm", "tensor over nodes"}, known, shift) == shift);
  // Another framework is what every left-out source has: the residuals say what that costs.
  CHECK(widening_of({"ampere", "another", "nodes"}, known, shift) == 1.0);
  // No residual rests on a datasheet: half of the time that does widens by half of the way.
  CHECK(widening_of({"ampere", "megatron-lm", "nodes", 0, 0.5}, known, shift) == Approx(1.75));
  CHECK(widening_of({"ampere", "megatron-lm", "nodes", 0.25, 0}, known, shift) == Approx(1.375));
  CHECK(widening_of({"ampere", "megatron-lm", "nodes", 0.9, 0.9}, known, shift) == shift);
}

TEST_CASE("what rests on a datasheet widens as a card does that nobody has measured") {
  const std::vector<Residual> known = ladder(10);
  Case guessed = known.front().of;
  guessed.guessed = 0.5;
  CHECK(widening_of(guessed, known, {2.5, 3.0}) == Approx(2.0));
  guessed.generation = "nobody's";
  CHECK(widening_of(guessed, known, {2.5, 3.0}) == 2.5);
  CHECK(widening_of(guessed, known, {2.5, 7.0}) == Approx(4.0));
}

TEST_CASE("cases that differ in their shares alone have one basis, whichever it was made of") {
  const Evidence shipped = read_evidence(STEPCAST_SOURCE_DIR "/scenarios/confidence");
  for (const char* generation : {"volta", "ampere", "hopper", "blackwell"})
    for (const char* reach : {"one node", "nodes", "tensor over nodes"})
      for (const char* kind : {dense_16_bit, "MoE fp8"})
        for (const double level : {0.5, 0.8, 0.95}) {
          const Case few{generation, "a", reach, 0.01, 0.1, kind},
              many{generation, "b", reach, 0.9, 0.95, kind};
          const auto of_few = basis_for(few, shipped.steps, level),
                     of_many = basis_for(many, shipped.steps, level);
          for (const Case& wanted : {few, many}) {
            const Interval a = interval_on(*of_few, wanted, shipped.shift),
                           b = interval_on(*of_many, wanted, shipped.shift),
                           own = *interval_for(wanted, shipped.steps, level, shipped.shift);
            for (const Interval& other : {a, b}) {
              CHECK(other.low == own.low);
              CHECK(other.high == own.high);
              CHECK(other.kind == own.kind);
              CHECK(other.widened == own.widened);
            }
          }
        }
}

TEST_CASE("the bar of a case holds that of the same case measured, times the widening") {
  const std::vector<Residual> known = ladder(11);
  const auto inside = interval_for(known.front().of, known, 0.8, 3.0);
  const auto outside = interval_for({"blackwell", "megatron-lm", "nodes"}, known, 0.8, 3.0);
  REQUIRE(inside);
  REQUIRE(outside);
  CHECK(inside->kind == "nodes");
  CHECK(outside->widened == 3.0);
  CHECK(outside->high - outside->low == Approx(3 * (inside->high - inside->low)));
  CHECK_FALSE(interval_for(known.front().of, {}, 0.8, 3.0));
}

TEST_CASE("a kind rests on its own side, and on all where too few sources have measured that") {
  Case experts{"ampere", "megatron-lm", "nodes"};
  experts.kind = "MoE fp8";
  std::vector<Residual> known = ladder(11);
  const auto dense = interval_for(known.front().of, known, 0.8, 2.0);
  // No source: the bar of all.
  CHECK(lacks_kin(experts, known));
  CHECK(interval_for(experts, known, 0.8, 2.0)->sources == 11);
  for (const char* source : {"P", "Q", "R", "S"}) {
    known.push_back(row(source, 0.5, experts));
    known.push_back(row(source, 0.7, experts));
  }
  CHECK_FALSE(lacks_kin(experts, known));
  const auto bar = interval_for(experts, known, 0.8, 2.0);
  CHECK(bar->kind == "experts and low precision");
  CHECK(bar->sources == 4);
  CHECK(bar->covers(0.6));
  CHECK_FALSE(bar->covers(0.0));
  // Dense 16-bit forecasts are as sure as before.
  const auto still = interval_for(known.front().of, known, 0.8, 2.0);
  CHECK(still->low == dense->low);
  CHECK(still->high == dense->high);
  // Another kind of that side is told by its few sources as well.
  Case fp4 = experts;
  fp4.kind = "dense nvfp4";
  const auto before = interval_for(fp4, known, 0.8, 2.0);
  known.push_back(row("P", -0.4, fp4));
  CHECK(interval_for(fp4, known, 0.8, 2.0)->low <= -0.4);
  CHECK(interval_for(fp4, known, 0.8, 2.0)->high >= before->high - 1e-12);
  CHECK(interval_for(experts, known, 0.8, 2.0)->low > -0.4);
}

TEST_CASE("few sources of a reach widen its bar and do not narrow it") {
  std::vector<Residual> known = ladder(11);
  const Case wide{"ampere", "megatron-lm", "tensor over nodes"};
  const auto before = interval_for(wide, known, 0.8, 2.0);
  known.push_back(row("T", 0.9, wide));
  const auto after = interval_for(wide, known, 0.8, 2.0);
  CHECK(after->high >= 0.9);
  CHECK(after->low <= before->low);
  known.back().log_ratio = 0.001;  // one row that was forecast well
  CHECK(interval_for(wide, known, 0.8, 2.0)->high >= before->high - 0.011);
}

TEST_CASE("own runs move the bar by n / (n + k) and narrow it to what they leave open") {
  const Interval bar{.low = -0.1, .high = 0.2};
  const Spread spread{.between = 0.1, .inside = 0.2};  // k = 4
  // Four runs, all 0.25 above: half of the way from 0.05 to 0.25. Of the variance 0.01 between
  // sources half is left: sqrt((0.005 + 0.04) / 0.05) of the radius.
  const Interval own = narrowed(bar, spread, {0.25, 0.25, 0.25, 0.25});
  CHECK(0.5 * (own.low + own.high) == Approx(0.15));
  CHECK(0.5 * (own.high - own.low) == Approx(0.15 * std::sqrt(0.9)));
  CHECK(own.own_runs == 4);
  // More runs, a narrower bar; none, the same.
  const Interval many = narrowed(bar, spread, std::vector<double>(100, 0.25));
  CHECK(many.high - many.low < own.high - own.low);
  CHECK(narrowed(bar, spread, {}).low == bar.low);
}

TEST_CASE("the spread is that of the sources' medians and that around them") {
  // Medians 0 and 0.2: 0.1 between them; inside of each 0.05.
  const std::vector<Residual> rows{row("A", -0.05), row("A", 0.05), row("B", 0.15), row("B", 0.25)};
  const Spread spread = spread_of(rows);
  CHECK(spread.between == Approx(0.1));
  CHECK(spread.inside == Approx(0.05));
}
