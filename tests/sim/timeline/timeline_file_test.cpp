#include "sim/timeline/timeline_file.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/timeline/arrows.hpp"
#include "sim/timeline/counters.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Scenario told_step(const std::string& plan, const std::string& more = "") {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 4\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = "
      "4\nmicro_batch = 1\n[software]\nframework = \"megatron-lm\"\n[plan]\n";
  return read_scenario(read_toml(text + plan + more, "a.toml"), catalogue());
}

Timeline told(const Scenario& scenario, RankChoice asked, TimelineSize* size = nullptr) {
  Timeline out;
  out.asked = std::move(asked);
  session().timeline(scenario, out, [&](const TimelineSize& s) {
    if (size != nullptr) *size = s;
  });
  return out;
}

using Kind = RankChoice::Kind;

}  // namespace

TEST_CASE("ranks that are asked for do what they do in a run of every rank") {
  Scenario scenario = told_step("data = \"ddp\"\npipeline = 2\n");
  const Timeline folded = told(scenario, {Kind::listed, {1, 6}});
  REQUIRE(folded.to_show().size() == 2);
  scenario.run.fold = false;
  const Timeline whole = told(scenario, {Kind::listed, {1, 6}});
  CHECK(whole.ranks.size() == 2);
  for (const std::int64_t rank : {1, 6}) {
    const auto of = [](const Timeline& t, std::int64_t r) {
      std::vector<TimelineEvent> out;
      for (TimelineEvent e : t.events)
        if (e.rank == t.to_show().at(r)) e.rank = r, out.push_back(e);
      return out;
    };
    CHECK(of(folded, rank) == of(whole, rank));
  }
  CHECK_THROWS_WITH(told(scenario, {Kind::listed, {8}}), Catch::Contains("there is no rank 8"));
}

TEST_CASE("where every rank is simulated, one of each class is shown, and the slowest") {
  Scenario scenario = told_step("data = \"ddp\"\npipeline = 2\n", "[noise]\nkernel_sigma = 0.02\n");
  TimelineSize size;
  const Timeline noisy = told(scenario, {Kind::representatives}, &size);
  REQUIRE(noisy.slowest);
  CHECK(noisy.ranks.contains(*noisy.slowest));
  CHECK(noisy.ranks.size() == static_cast<std::size_t>(size.ranks));
  CHECK(size.ranks <= 3);  // two stages
  CHECK(size.all_ranks == 8);
  const auto compute = [&](std::int64_t rank) {
    Duration sum{};
    for (const TimelineEvent& e : noisy.events)
      if (e.rank == rank && !e.is_collective()) sum += e.duration;
    return sum;
  };
  for (const auto& [rank, alike] : noisy.ranks) CHECK(compute(rank) <= compute(*noisy.slowest));
}

TEST_CASE("every message between stages is an arrow from its sender to its receiver") {
  const Scenario scenario = told_step("data = \"ddp\"\npipeline = 4\n");
  const Timeline timeline = told(scenario, {Kind::all});
  std::size_t sent = 0;
  for (const auto& [rank, simulated] : timeline.to_show())
    for (const TimelineEvent& e : timeline.events)
      if (e.rank == simulated &&
          (e.lane == workloads::send_next_lane || e.lane == workloads::send_previous_lane))
        ++sent;
  const auto arrows = arrows_of(timeline);
  CHECK(sent > 0);
  CHECK(arrows.size() == sent);
  for (const TimelineArrow& a : arrows) {
    CHECK(a.message);
    CHECK(a.to > a.from);
    CHECK(std::abs(a.from_rank - a.to_rank) == 2);  // stages are two ranks apart
  }
}

TEST_CASE("a file is about as large as was said before, in every format") {
  for (const std::string plan : {"data = \"zero1\"\n", "data = \"ddp\"\npipeline = 2\n"}) {
    const Scenario scenario = told_step(plan);
    TimelineSize size;
    Timeline timeline = told(scenario, {Kind::all}, &size);
    CHECK(size.ranks == 8);
    const TimelineSize recorded = size_of(timeline);
    CHECK(recorded.events == size.events);
    CHECK(recorded.name_bytes == size.name_bytes);
    add_power(timeline, scenario.node.gpu);
    add_memory(timeline, scenario);
    add_bytes_in_flight(timeline);
    for (const char* name : {"size.json", "size.json.gz", "size.pftrace"}) {
      INFO(plan << name);
      const std::string path = (tests::own_folder() / name).string();
      write_timelines(path, {&timeline, 1});
      const auto bytes = static_cast<double>(std::filesystem::file_size(path));
      const auto said = static_cast<double>(estimated_size(path, size).value);
      CHECK(said > bytes / 1.5);
      CHECK(said < bytes * 1.5);
      std::filesystem::remove(path);
    }
    CHECK_THROWS_WITH(no_larger_than(Bytes(1000), "a.json")(size), Catch::Contains("of 8 of 8"));
    no_larger_than(Bytes(1'000'000'000), "a.json")(size);
  }
}

}  // namespace stepcast::sim
