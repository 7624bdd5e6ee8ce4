#include "sim/pictures/bar_picture.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/pictures/gantt_picture.hpp"
#include "sim/pictures/heat_picture.hpp"
#include "tests/sim/pictures/pictures.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using tests::all;
using tests::parsed;

namespace {

/// Of the bars: rectangles with a tooltip.
std::vector<double> bar_widths(const std::string& svg) {
  const pugi::xml_document document = parsed(svg);
  std::vector<double> out;
  for (const pugi::xpath_node& found : document.select_nodes("//rect[title]"))
    out.push_back(found.node().attribute("width").as_double());
  return out;
}

}  // namespace

TEST_CASE("bars are as long as what they stand for") {
  const std::string svg = bar_picture({.name = "a",
                                       .title = "A & <B>",
                                       .axis = "s",
                                       .series = {"one", "two"},
                                       .rows = {{"x", {1, 3}, "4"}, {"y", {2, 0}, "2"}}});
  const std::vector<double> widths = bar_widths(svg);
  REQUIRE(widths.size() == 3);  // a part of nothing has none
  CHECK(widths[1] == Approx(3 * widths[0]).margin(0.02));
  CHECK(widths[2] == Approx(2 * widths[0]).margin(0.02));
  CHECK(tests::overlapping_texts(parsed(svg)).empty());
  CHECK(all(parsed(svg), "/svg/title") == std::vector<std::string>{"A & <B>"});
}

TEST_CASE("parts differ by pattern, not by colour alone") {
  const pugi::xml_document document = parsed(bar_picture({.name = "a",
                                                          .title = "",
                                                          .axis = "",
                                                          .series = {"p", "q", "r"},
                                                          .rows = {{"x", {1, 1, 1}}}}));
  std::vector<std::string> tiles;
  for (const pugi::xpath_node& found : document.select_nodes("//pattern/path[2]")) {
    const std::string tile = found.node().attribute("d").value();
    CHECK(std::count(tiles.begin(), tiles.end(), tile) == 0);
    tiles.push_back(tile);
  }
  CHECK(tiles.size() == 3);
}

TEST_CASE("a change for the better lies on the other side of nothing") {
  const pugi::xml_document document = parsed(bar_picture(
      {.name = "a", .title = "", .axis = "", .rows = {{"less", {-2}, ""}, {"more", {1}, ""}}}));
  const auto bars = document.select_nodes("//rect[title]");
  REQUIRE(bars.size() == 2);
  const auto edge = [&](std::size_t i, bool right) {
    const pugi::xml_node bar = bars[i].node();
    return bar.attribute("x").as_double() + (right ? bar.attribute("width").as_double() : 0);
  };
  CHECK(edge(0, true) == Approx(edge(1, false)).margin(0.02));
}

TEST_CASE("spans too short to be seen are drawn as one with their like, others stay apart") {
  GanttPicture picture{.name = "g", .title = "", .series = {"forward", "backward"}, .length_s = 1};
  GanttRow row{"stage 0", {}};
  for (int i = 0; i < 1000; ++i)
    row.spans.push_back({i * 4e-4, (i + 1) * 4e-4 - 1e-5, 0});  // gaps of 0.008 user units
  row.spans.push_back({0.5, 0.6, 1});
  row.spans.push_back({0.7, 0.8, 1});
  const auto drawn = drawn_spans(row, picture);
  REQUIRE(drawn.size() == 3);
  CHECK(drawn[0].from_s == 0);
  CHECK(drawn[0].to_s == Approx(0.4).margin(1e-4));
  picture.rows.push_back(row);
  CHECK(tests::overlapping_texts(parsed(gantt_picture(picture))).empty());
}

TEST_CASE("short turns of two series are a block in two steps without hatching, not stripes") {
  // 400 forwards and backwards in turns, 2 user units each, then a long one of each.
  GanttPicture picture{.name = "g", .title = "", .series = {"forward", "backward"}, .length_s = 2};
  GanttRow row{"stage 0", {}};
  for (int i = 0; i < 200; ++i) {
    row.spans.push_back({i * 5e-3, i * 5e-3 + 2.5e-3, 0});
    row.spans.push_back({i * 5e-3 + 2.5e-3, (i + 1) * 5e-3, 1});
  }
  row.spans.push_back({1.5, 1.505, 0});
  row.spans.push_back({1.6, 1.8, 1});
  picture.rows.push_back(row);
  const pugi::xml_document document = parsed(gantt_picture(picture));
  const auto heights = [&](const char* path) {
    std::vector<std::pair<double, std::string>> out;
    for (const auto& found : document.select_nodes(path))
      if (found.node().attribute("width").as_double() != 14)  // the legend's
        out.emplace_back(found.node().attribute("height").as_double(),
                         found.node().attribute("fill").as_string());
    return out;
  };
  const auto drawn = heights("//g//rect");
  REQUIRE(drawn.size() == 4);
  CHECK(drawn[0] == std::pair(20.0, std::string("url(#g-0)")));
  CHECK(drawn[1].first == 20.0);
  CHECK(drawn[1].second.starts_with("#"));  // too narrow for a pattern
  CHECK(drawn[2].first < 20.0);
  CHECK(drawn[3] == std::pair(drawn[2].first, std::string("url(#g-1)")));
}

TEST_CASE("a square's area is the value, and the least is framed") {
  const pugi::xml_document document = parsed(heat_picture({.title = "t",
                                                           .rows_name = "tensor",
                                                           .columns_name = "pipeline",
                                                           .rows = {"1"},
                                                           .columns = {"1", "2", "4"},
                                                           .values = {{4.0, 1.0, std::nullopt}},
                                                           .texts = {{"4 s", "1 s", "-"}}}));
  const auto squares = document.select_nodes("//rect[@fill!='none']");
  REQUIRE(squares.size() == 2);
  CHECK(squares[0].node().attribute("width").as_double() ==
        Approx(2 * squares[1].node().attribute("width").as_double()).margin(0.11));
  CHECK(document.select_nodes("//rect[@fill='none']").size() == 1);
}
