#include "sim/run/timeline.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

Scenario scenario_of(const std::string& more) {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 3\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = "
      "2\n[software]\nframework = \"pytorch-fsdp2\"\nversion = \"2.3\"\n";
  return read_scenario(read_toml(text + more, "a.toml"), catalogue());
}

const std::vector<std::string> plans{
    "[plan]\ndata = \"ddp\"\n", "[plan]\ndata = \"zero3\"\n",
    "[plan]\ndata = \"zero2\"\ntensor = 2\nsequence_parallel = true\n",
    "[plan]\ndata = \"ddp\"\ntensor = 2\npipeline = 2\n"};

}  // namespace

TEST_CASE("telling a step does not change it, and shows each lane doing one thing at a time") {
  for (const std::string& plan : plans) {
    INFO(plan);
    const Scenario scenario = scenario_of(plan);
    Timeline timeline;
    const StepReport told = session().timeline(scenario, timeline);
    CHECK(told.step_time == session().step(scenario).step_time);
    std::map<std::pair<std::int64_t, std::int64_t>, Duration> lane_end;
    std::int64_t overlaps = 0, late = 0, ranks = 0;
    for (const TimelineEvent& e : timeline.events) {
      Duration& end = lane_end[{e.rank, e.lane}];
      overlaps += e.start < end ? 1 : 0;
      end = e.start + e.duration;
      late += end > 2 * told.step_time ? 1 : 0;
    }
    CHECK(overlaps == 0);
    CHECK(late == 0);
    for (const auto& [rank, alike] : timeline.ranks) ranks += alike;
    CHECK(ranks == scenario.gpus);
  }
}

TEST_CASE("the kernels shown add up to the compute that is reported") {
  // One lane alone: no kernel runs beside compute, so the report's compute is these kernels.
  const Scenario scenario = scenario_of("[plan]\ndata = \"ddp\"\ntensor = 8\n");
  Timeline timeline;
  const StepReport report = session().timeline(scenario, timeline);
  Duration compute{}, exposed{};
  double ranks = 0.0;
  for (const auto& [rank, alike] : timeline.ranks) ranks += static_cast<double>(alike);
  for (const TimelineEvent& e : timeline.events) {
    const std::int64_t alike = timeline.ranks.at(e.rank);
    if (e.is_collective())
      exposed += (e.duration - e.waited) * alike;
    else
      compute += e.duration * alike;
  }
  CHECK(seconds(compute) / ranks == Approx(seconds(report.compute)).epsilon(1e-9));
  CHECK(seconds(exposed) / ranks == Approx(seconds(report.exposed.total())).epsilon(1e-9));
}

TEST_CASE("timelines side by side read back as they were written") {
  Timeline simulated;
  session().timeline(scenario_of(plans[1]), simulated);
  Timeline other{"measured", {{0, 1}, {1, 1}}, {}};
  TimelineEvent odd{1, 3, "a \"name\"", "all_reduce", "data", Bytes(7), Duration(5), Duration(9)};
  odd.waited = Duration(2);
  other.events.push_back(odd);
  const std::string path = (tests::own_folder() / "stepcast_timeline_test.json").string();
  other.step = Duration(123456789);
  const std::vector<Timeline> both{simulated, other};
  write_timelines(path, both);
  CHECK(read_timelines(path) == both);
  write_timelines(path + ".gz", both);
  CHECK(read_packed(path + ".gz") == read_packed(path));
  CHECK(std::filesystem::file_size(path + ".gz") < std::filesystem::file_size(path) / 4);
  CHECK(read_timelines(path + ".gz") == both);
  std::filesystem::resize_file(path + ".gz", 200);
  CHECK_THROWS_WITH(read_timelines(path + ".gz"), Catch::Contains("ends too early"));
  std::filesystem::remove(path + ".gz");

  std::ofstream(path) << "{\"traceEvents\": [{\"pid\": 3}]}";
  CHECK_THROWS_AS(read_timelines(path), InputError);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(read_timelines(path), InputError);
  CHECK_THROWS_AS(write_timelines("/dev/full", both), InputError);
}

TEST_CASE("sums over the calls of a kernel add up to its events") {
  for (const std::string& plan : plans) {
    Timeline events, sums;
    sums.sums = true;
    const Scenario scenario = scenario_of(plan);
    session().timeline(scenario, events);
    session().timeline(scenario, sums);
    CHECK(sums.ranks == events.ranks);
    CHECK(sums.events.size() < events.events.size() / 2);
    const auto total = [](const Timeline& timeline) {
      std::map<std::tuple<std::int64_t, std::string, std::string>, std::array<std::int64_t, 3>> out;
      for (const TimelineEvent& e : timeline.events) {
        auto& [calls, duration, waited] = out[{e.rank, e.name, e.kind}];
        calls += e.calls;
        duration += e.duration.count();
        waited += e.waited.count();
      }
      return out;
    };
    CHECK(total(sums) == total(events));
  }
}

TEST_CASE("every rank and every lane in use has a name") {
  Timeline timeline;
  session().timeline(scenario_of(plans[1]), timeline);
  const std::string path = (tests::own_folder() / "stepcast_lanes_test.json").string();
  write_timelines(path, {&timeline, 1});
  const nlohmann::json file = nlohmann::json::parse(read_packed(path));
  std::filesystem::remove(path);
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<int, std::string> processes;
  for (const auto& e : file["traceEvents"]) {
    if (e["name"] == "thread_name") lanes[{e["pid"], e["tid"]}] = e["args"]["name"];
    if (e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
  }
  for (const auto& e : file["traceEvents"]) {
    if (e["ph"] != "X") continue;
    CHECK(lanes.contains({e["pid"], e["tid"]}));
    CHECK(processes.contains(e["pid"]));
  }
  CHECK(lanes.at({0, workloads::compute}) == "compute");
  CHECK(lanes.at({0, workloads::data_lane}) == "data");
  CHECK(processes.at(0) == "simulated rank 0 (one of 8 alike)");
}

}  // namespace stepcast::sim
