#include "sim/pictures/curve_picture.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/pictures/pictures.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using tests::all;
using tests::parsed;

namespace {

CurveMark mark(double at, double value) { return {at, value, {value, value}, "m"}; }

CurvePicture picture_of(std::vector<CurveMark> points, std::optional<std::size_t> best = {}) {
  return {"A & <B>", "cap, W", {{"step, s", std::move(points), best}}};
}

std::vector<double> of_circles(const std::string& svg, const char* attribute) {
  const pugi::xml_document document = parsed(svg);
  std::vector<double> out;
  for (const pugi::xpath_node& found : document.select_nodes("//circle[title]"))
    out.push_back(found.node().attribute(attribute).as_double());
  return out;
}

}  // namespace

TEST_CASE("a curve stands as far above nothing as its values say") {
  const std::string svg = curve_picture(picture_of({mark(300, 1), mark(400, 2), mark(700, 4)}, 2));
  const auto y = of_circles(svg, "cy"), x = of_circles(svg, "cx");
  REQUIRE(y.size() == 3);
  CHECK(y[0] - y[2] == Approx(3 * (y[0] - y[1])).margin(0.2));
  CHECK(x[2] - x[0] == Approx(4 * (x[1] - x[0])).margin(0.2));
  const double bottom = 2 * y[0] - y[1];  // one more below
  CHECK(bottom - y[1] == Approx(2 * (bottom - y[0])).margin(0.3));
  CHECK(tests::overlapping_texts(parsed(svg)).empty());
  CHECK(all(parsed(svg), "/svg/title") == std::vector<std::string>{"A & <B>"});
  CHECK(parsed(svg).select_nodes("//circle[@class='best']").size() == 1);
}

TEST_CASE("a place without an answer breaks the line and its band") {
  std::vector<CurveMark> points{mark(1, 1), mark(2, 1), {3, {}, {}, ""}, mark(4, 1), mark(5, 1)};
  for (CurveMark& p : points)
    if (p.value) p.band = {*p.value / 2, *p.value * 2};
  const std::string svg = curve_picture(picture_of(std::move(points)));
  CHECK(of_circles(svg, "cx").size() == 4);
  CHECK(parsed(svg).select_nodes("//path[@class='band']").size() == 2);
  const std::string path =
      parsed(svg).select_node("//path[@class='curve']").node().attribute("d").value();
  CHECK(std::count(path.begin(), path.end(), 'M') == 2);
}

TEST_CASE("of a long curve the best alone is marked") {
  std::vector<CurveMark> points;
  for (int i = 0; i < 1000; ++i) points.push_back(mark(i, 1000 - i));
  CHECK(of_circles(curve_picture(picture_of(std::move(points), 999)), "cx").size() == 1);
}

TEST_CASE("places over more than a decade stand evenly by their ratios") {
  const auto x = of_circles(
      curve_picture(picture_of({mark(1, 1), mark(4, 1), mark(16, 1), mark(64, 1)})), "cx");
  REQUIRE(x.size() == 4);
  CHECK(x[2] - x[1] == Approx(x[1] - x[0]).margin(0.2));
  CHECK(x[3] - x[2] == Approx(x[1] - x[0]).margin(0.2));
}
