#include "sim/pictures/pareto_picture.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "engine/check.hpp"
#include "tests/sim/pictures/pictures.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

/// Plans spread over memory and time, the first on the front; best and own close beside each other.
std::vector<ParetoPoint> plans(int num) {
  std::vector<ParetoPoint> out;
  for (int i = 0; i < num; ++i) {
    const double share = static_cast<double>(i) / num;
    out.push_back({.step_s = 2.4 + 3 * (1 - share) + (i % 3),
                   .memory_gib = 20 + 55 * share,
                   .label = "tensor " + std::to_string(i) + " & <more>, pipeline 8, micro-batch 1",
                   .on_front = i % 3 == 0,
                   .best = i == num - 1,
                   .own = i == num - 2});
  }
  return out;
}

}  // namespace

TEST_CASE("a picture of plans is XML, says every label and lets no text meet another") {
  for (const int num : {3, 20, 200}) {
    const std::string svg = pareto_picture(plans(num), 80, "Plans of \"70B\" <512> & more");
    const auto document = tests::parsed(svg);
    const auto titles = tests::all(document, "//path/title");
    const auto said = [&](const ParetoPoint& plan) {
      return std::any_of(titles.begin(), titles.end(), [&](const std::string& title) {
        return title.ends_with(": " + plan.label);
      });
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
  const std::string svg = pareto_picture({{.step_s = 2, .memory_gib = 60, .on_front = true},
                                          {.step_s = 4, .memory_gib = 30, .on_front = true},
                                          {.step_s = 8, .memory_gib = 70}},
                                         80, "");
  const auto document = tests::parsed(svg);
  const std::string path =
      document.select_node("//path[@class='front'][@fill='none']").node().attribute("d").value();
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  REQUIRE(std::sscanf(path.c_str(), "M%lf %lfH%lfV%lf", &x0, &y0, &x1, &y1) == 4);
  CHECK(x1 - 70 == Approx(2 * (x0 - 70)).epsilon(1e-3));  // 60 GiB against 30, from the axis on
  CHECK(y1 > y0);                                         // faster is lower
}

TEST_CASE("one plan that is best and own has both marks and one word") {
  const std::string svg = pareto_picture(
      {{.step_s = 2, .memory_gib = 60, .label = "a", .on_front = true, .best = true, .own = true}},
      80, "");
  const auto document = tests::parsed(svg);
  const auto texts = tests::all(document, "//text");
  CHECK(std::count(texts.begin(), texts.end(), "best, own") == 1);
  CHECK(document.select_nodes("//path[@class='best']").size() == 2);  // and in the legend
  CHECK(document.select_nodes("//path[@class='own']").size() == 2);
}

TEST_CASE("a picture without plans has the GPU's memory") {
  const auto document = tests::parsed(pareto_picture({}, 141, "None"));
  const auto texts = tests::all(document, "//text");
  CHECK(std::count(texts.begin(), texts.end(), "GPU: 141 GiB") == 1);
}

TEST_CASE("a plan without a time is no point") {
  CHECK_THROWS_AS(pareto_picture({{.step_s = 0, .memory_gib = 1}}, 80, ""), BrokenPromise);
}
