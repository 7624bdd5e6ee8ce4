#include "sim/pictures/waterfall_picture.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/sim/pictures/pictures.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

struct Drawn {
  std::string kind;
  double left, width;
  double right() const { return left + width; }
};

std::vector<Drawn> bars_of(const pugi::xml_document& document) {
  std::vector<Drawn> out;
  for (const pugi::xpath_node& found : document.select_nodes("//rect")) {
    const pugi::xml_node rect = found.node();
    out.push_back({rect.attribute("class").value(), rect.attribute("x").as_double(),
                   rect.attribute("width").as_double()});
  }
  return out;
}

}  // namespace

TEST_CASE("each bar begins where the last one ended, and as long as its change") {
  // 4 s, 1 s slower, 3 s faster, to 2 s: a second is as wide in every row.
  const auto bars = bars_of(tests::parsed(
      waterfall_picture("A", 4, {{"slower", 1, ""}, {"faster", -3, ""}}, "B", 2, "")));
  REQUIRE(bars.size() == 4);
  const double second = bars[0].width / 4;
  CHECK(bars[1].kind == "slower");
  CHECK(bars[1].left == Approx(bars[0].right()));
  CHECK(bars[1].width == Approx(second).epsilon(1e-3));
  CHECK(bars[2].kind == "faster");
  CHECK(bars[2].right() == Approx(bars[1].right()));
  CHECK(bars[2].width == Approx(3 * second).epsilon(1e-3));
  CHECK(bars[3].right() == Approx(bars[2].left));
  CHECK(bars[3].width == Approx(2 * second).epsilon(1e-3));
}

TEST_CASE("small changes of a long step are seen: the axis begins near them and says so") {
  const auto document = tests::parsed(
      waterfall_picture("A", 10, {{"a", 0.1, ""}, {"b", -0.3, ""}}, "B", 9.8, "Title"));
  const auto bars = bars_of(document);
  REQUIRE(bars.size() == 4);
  CHECK(bars[1].width > 40);
  CHECK(bars[2].width == Approx(3 * bars[1].width).epsilon(1e-2));
  CHECK(tests::all(document, "//text[starts-with(., 'the axis begins at ')]").size() == 1);
}

TEST_CASE("a waterfall says labels, values and notes, and no text meets another") {
  std::vector<WaterfallBar> bars;
  double total = 3;
  for (int i = 0; i < 40; ++i) {
    bars.push_back({"cause <" + std::to_string(i) + "> & what it does to the step, at length",
                    i % 2 == 0 ? 0.05 : -0.02, "of the \"NIC\" of every node, alone and shared"});
    total += bars.back().change_s;
  }
  const auto document =
      tests::parsed(waterfall_picture("A & B", 3, bars, "C", total, "From A to C <it>"));
  CHECK(tests::overlapping_texts(document) == std::vector<std::string>{});
  const auto titles = tests::all(document, "//rect/title");
  REQUIRE(titles.size() == 42);
  CHECK(titles[0] == "A & B: 3.00 s");
  CHECK(titles[1] == bars[0].label + ": +50.0 ms, " + bars[0].note);
  CHECK(titles[2] == bars[1].label + ": \u221220.0 ms, " + bars[1].note);
}

TEST_CASE("changes that do not add up are no waterfall") {
  CHECK_THROWS_AS(waterfall_picture("A", 4, {{"a", 1, ""}}, "B", 6, ""), BrokenPromise);
}
