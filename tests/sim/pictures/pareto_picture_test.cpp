#include "sim/pictures/pareto_picture.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "engine/check.hpp"
#include "tests/sim/pictures/pictures.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

/// Of plans, step against memory.
ParetoPicture picture_of(std::vector<ParetoPoint> points, double card_gib = 80,
                         const std::string& title = "") {
  return {title,
          {"memory per GPU, GiB", card_gib, "GPU: " + std::to_string(int(card_gib)) + " GiB"},
          {"step, s"},
          "plan",
          "front: no plan is faster with less memory",
          {"best", "own"},
          std::move(points)};
}

/// Plans spread over memory and time; best and own close beside each other.
std::vector<ParetoPoint> plans(int num) {
  std::vector<ParetoPoint> out;
  for (int i = 0; i < num; ++i) {
    const double share = static_cast<double>(i) / num;
    out.push_back({.across = 20 + 55 * share,
                   .up = 2.4 + 3 * (1 - share) + (i % 3),
                   .label = "tensor " + std::to_string(i) + " & <more>, pipeline 8, micro-batch 1",
                   .on_front = i % 3 == 0});
    if (i == num - 1) out.back().signs = {ParetoSign::diamond};
    if (i == num - 2) out.back().signs = {ParetoSign::square};
  }
  return out;
}

}  // namespace

TEST_CASE("a picture of plans is XML, says every label and lets no text meet another") {
  for (const int num : {3, 20, 200}) {
    const std::string svg =
        pareto_picture(picture_of(plans(num), 80, "Plans of \"70B\" <512> & more"));
    const auto document = tests::parsed(svg);
    const auto titles = tests::all(document, "//path/title");
    const auto said = [&](const ParetoPoint& plan) {
      return std::any_of(titles.begin(), titles.end(),
                         [&](const std::string& title) { return title == plan.label; });
    };
    const auto points = plans(num);
    CHECK(std::all_of(points.begin(), points.end(), said));
    CHECK(tests::overlapping_texts(document) == std::vector<std::string>{});
    const auto texts = tests::all(document, "//text");
    CHECK(std::count(texts.begin(), texts.end(), "GPU: 80 GiB") == 1);
    CHECK(std::count_if(texts.begin(), texts.end(),
                        [](const auto& t) { return t.starts_with("best, "); }) == 1);
    CHECK(std::count_if(texts.begin(), texts.end(),
                        [](const auto& t) { return t.starts_with("own, "); }) == 1);
  }
}

TEST_CASE("the front goes across to the plan with more memory, then down to its time") {
  std::vector<ParetoPoint> points{
      {.across = 60, .up = 2}, {.across = 30, .up = 4}, {.across = 70, .up = 8}};
  mark_front(points);
  CHECK(points[0].on_front);
  CHECK(points[1].on_front);
  CHECK_FALSE(points[2].on_front);
  const std::string svg = pareto_picture(picture_of(points));
  const auto document = tests::parsed(svg);
  const std::string path =
      document.select_node("//path[@class='front'][@fill='none']").node().attribute("d").value();
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  REQUIRE(std::sscanf(path.c_str(), "M%lf %lfH%lfV%lf", &x0, &y0, &x1, &y1) == 4);
  CHECK(x1 - 70 == Approx(2 * (x0 - 70)).epsilon(1e-3));  // 60 GiB against 30, from the axis on
  CHECK(y1 > y0);                                         // faster is lower
}

TEST_CASE("a point with three signs has all of their marks and one line of words") {
  ParetoPicture picture =
      picture_of({{.across = 60,
                   .up = 2,
                   .label = "a",
                   .on_front = true,
                   .signs = {ParetoSign::diamond, ParetoSign::square, ParetoSign::triangle}}});
  picture.sign_words = {"cheapest", "fastest", "<greenest>"};
  const auto document = tests::parsed(pareto_picture(picture));
  const auto texts = tests::all(document, "//text");
  CHECK(std::count(texts.begin(), texts.end(), "cheapest, fastest, <greenest>") == 1);
  CHECK(document.select_nodes("//path[@class='cheapest']").size() == 2);  // and in the legend
  CHECK(document.select_nodes("//path[@class='fastest']").size() == 2);
  CHECK(document.select_nodes("//path[@class='<greenest>']").size() == 2);
}

TEST_CASE("a limit upwards has its line and its words, in the frame wherever the points lie") {
  for (const double limit : {0.5, 3.0, 40.0}) {
    ParetoPicture picture = picture_of(plans(20));
    picture.up.limit = limit;
    picture.up.limit_text = "budget: 3 million USD";
    const auto document = tests::parsed(pareto_picture(picture));
    CHECK(tests::overlapping_texts(document) == std::vector<std::string>{});
    const auto texts = tests::all(document, "//text");
    CHECK(std::count(texts.begin(), texts.end(), "budget: 3 million USD") == 1);
  }
}

TEST_CASE("a picture without plans has the GPU's memory") {
  const auto document = tests::parsed(pareto_picture(picture_of({}, 141, "None")));
  const auto texts = tests::all(document, "//text");
  CHECK(std::count(texts.begin(), texts.end(), "GPU: 141 GiB") == 1);
}

TEST_CASE("a plan without a time is no point") {
  CHECK_THROWS_AS(pareto_picture(picture_of({{.across = 1, .up = 0}})), BrokenPromise);
}
