#include "validate/compare/figure.hpp"

#include <catch2/catch.hpp>
#include <pugixml.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/check.hpp"

using namespace stepcast::validate;

namespace {

const FigureText text{"Steps", "measured, s", "predicted, s"};

pugi::xml_document parsed(const std::string& svg) {
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  REQUIRE(std::strcmp(document.first_child().name(), "svg") == 0);
  return document;
}

std::vector<std::string> texts(const std::string& svg) {
  const pugi::xml_document document = parsed(svg);
  std::vector<std::string> out;
  for (const pugi::xpath_node& node : document.select_nodes("//text"))
    out.emplace_back(node.node().text().get());
  return out;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Where the marks of the only group stand: "M<x> <y>h.01" each.
std::vector<std::pair<double, double>> dots(const std::string& svg) {
  const pugi::xml_document document = parsed(svg);
  const std::string path =
      document.select_node("//g[@stroke-opacity]/path").node().attribute("d").value();
  std::vector<std::pair<double, double>> out;
  for (std::size_t at = path.find('M'); at != std::string::npos; at = path.find('M', at + 1)) {
    std::size_t used = 0;
    const double x = std::stod(path.substr(at + 1), &used);
    out.emplace_back(x, std::stod(path.substr(at + 1 + used)));
  }
  return out;
}

}  // namespace

TEST_CASE("a doubled value lies equally far along both axes, wherever it is") {
  const auto at = dots(scatter_svg({{1, 1, "a"}, {2, 2, "a"}, {4, 8, "a"}}, text, 0.1));
  REQUIRE(at.size() == 3);
  const double doubling = at[1].first - at[0].first;
  CHECK(doubling > 10);
  CHECK(at[0].second - at[1].second == Approx(doubling).margin(0.2));  // y grows downwards
  CHECK(at[2].first - at[1].first == Approx(doubling).margin(0.2));
  CHECK(at[1].second - at[2].second == Approx(2 * doubling).margin(0.2));
}

TEST_CASE("the legend counts points and those within the band, the largest source first") {
  std::vector<FigurePoint> points(4, {10, 10.5, "MEGA"});
  points.push_back({10, 15, "MEGA"});
  points.push_back({3, 2, "BERT"});
  const std::vector<std::string> all = texts(scatter_svg(points, text, 0.1));
  CHECK(has(all, "MEGA: 5, 80 %"));
  CHECK(has(all, "BERT: 1, 0 %"));
  CHECK(has(all, "points, within 10 %"));
  CHECK(std::find(all.begin(), all.end(), "MEGA: 5, 80 %") <
        std::find(all.begin(), all.end(), "BERT: 1, 0 %"));
}

TEST_CASE("the band's edges are where predictions are off by its width") {
  const std::string svg =
      scatter_svg({{1, 1, "a"}, {10, 10, "a"}, {10, 11, "a"}, {10, 9, "a"}}, text, 0.1);
  const auto at = dots(svg);
  const pugi::xml_document document = parsed(svg);
  // "M left,y1 ... H left+down Z": the upper edge starts y1 above the corner.
  const std::string path =
      document.select_node("//path[@fill-opacity]").node().attribute("d").value();
  const double upper = std::stod(path.substr(path.find(' ')));
  const double bottom = document.select_node("//rect").node().attribute("y").as_double() +
                        document.select_node("//rect").node().attribute("height").as_double();
  CHECK(bottom - upper == Approx(at[1].second - at[2].second).margin(0.2));
  const double left = document.select_node("//rect").node().attribute("x").as_double();
  const double lower = std::stod(path.substr(path.rfind('L') + 1));
  CHECK(lower - left == Approx(at[3].second - at[1].second).margin(0.2));
}

TEST_CASE("axes name their unit and mark one, two and five of every decade") {
  const std::vector<std::string> all =
      texts(scatter_svg({{0.3, 0.4, "a"}, {30, 20, "a"}}, text, 0.1));
  for (const char* tick : {"0.5", "1", "2", "5", "10", "20"}) CHECK(has(all, tick));
  CHECK(has(all, "measured, s"));
  CHECK(has(all, "predicted, s"));
}

TEST_CASE("names with markup and control bytes stay well-formed text") {
  const std::string svg = scatter_svg({{1, 1, "<a & \"b\">\x01"}}, {"x < y", "m", "p"}, 0.1);
  CHECK(has(texts(svg), "<a & \"b\">\\u0001: 1, 100 %"));
  CHECK(has(texts(svg), "x < y"));
}

TEST_CASE("a thousand points of thirty sources stay below 40 kB, no two sources alike") {
  std::vector<FigurePoint> points;
  for (int i = 0; i < 1000; ++i) {
    const double x = 0.01 * std::pow(1.01, i);
    points.push_back({x, x * (1 + 0.3 * std::sin(i)), "S" + std::to_string(i % 30)});
  }
  const std::string svg = scatter_svg(points, text, 0.1);
  CHECK(svg.size() < 40000);
  const pugi::xml_document document = parsed(svg);
  std::vector<std::string> looks;
  for (const pugi::xpath_node& node : document.select_nodes("//g[@stroke-opacity]/path")) {
    const std::string path = node.node().attribute("d").value();
    const std::size_t shape = path.find_first_of("hl");
    looks.push_back(path.substr(shape, path.find('M', 1) - shape) +
                    node.node().attribute("stroke").value());
  }
  CHECK(looks.size() == 30);
  std::sort(looks.begin(), looks.end());
  CHECK(std::adjacent_find(looks.begin(), looks.end()) == looks.end());
  CHECK(document.select_nodes("//g[@stroke-linecap='round'][text]/path").size() == 30);  // legend
}

TEST_CASE("no point is an empty figure, an impossible one a broken promise") {
  CHECK(has(texts(scatter_svg({}, text, 0.1)), "Steps"));
  CHECK_THROWS_AS(scatter_svg({{0, 1, "a"}}, text, 0.1), stepcast::BrokenPromise);
  CHECK_THROWS_AS(scatter_svg({{1, std::numeric_limits<double>::quiet_NaN(), "a"}}, text, 0.1),
                  stepcast::BrokenPromise);
  CHECK_THROWS_AS(scatter_svg({}, text, 1.0), stepcast::BrokenPromise);
}
