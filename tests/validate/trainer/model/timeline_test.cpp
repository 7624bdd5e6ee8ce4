#include "validate/trainer/model/timeline.hpp"

#include <catch2/catch.hpp>

namespace stepcast::validate {
namespace {

using sim::Timeline;
using sim::TimelineEvent;

TimelineEvent collective(std::int64_t rank, const char* group, int start, int duration,
                         std::int64_t lane = 0) {
  TimelineEvent e;
  e.rank = rank;
  e.lane = lane;
  e.name = e.kind = "all_reduce";
  e.group = group;
  e.start = Duration(start);
  e.duration = Duration(duration);
  return e;
}

TimelineEvent kernel(std::int64_t rank, int start, int duration) {
  TimelineEvent e = collective(rank, "", start, duration);
  e.name = e.kind = "gemm";
  return e;
}

workloads::ParallelPlan plan_of(std::int64_t data, std::int64_t pipeline) {
  workloads::ParallelPlan plan;
  plan.data_degree = data;
  plan.pipeline = pipeline;
  return plan;
}

}  // namespace

TEST_CASE("who comes first to a collective waits for the last, who waits for nobody") {
  Timeline t{"measured", {{0, 1}, {1, 1}}, {}};
  t.events = {collective(0, "data", 10, 30), collective(0, "data", 50, 5),
              collective(1, "data", 30, 10), collective(1, "data", 45, 10)};
  align_collectives(t, plan_of(2, 1));
  CHECK(t.events[0].waited == Duration(20));
  CHECK(t.events[1].waited == Duration(0));
  CHECK(t.events[2].waited == Duration(0));
  CHECK(t.events[3].waited == Duration(5));
}

TEST_CASE("a message is awaited by its receiver alone") {
  Timeline t{"measured", {{0, 1}, {1, 1}}, {}};
  t.events = {collective(0, "pipeline_forward", 20, 2, workloads::send_next_lane),
              collective(1, "pipeline_forward", 5, 18, workloads::receive_previous_lane)};
  align_collectives(t, plan_of(1, 2));
  CHECK(t.events[0].waited == Duration(0));
  CHECK(t.events[1].waited == Duration(15));
}

TEST_CASE("the parts of a step are means over ranks, waiting apart") {
  Timeline t{"measured", {{0, 1}, {1, 1}}, {}};
  t.events = {kernel(0, 0, 10), collective(0, "data", 10, 30), kernel(1, 0, 30),
              collective(1, "data", 30, 10)};
  align_collectives(t, plan_of(2, 1));
  const StepParts parts = parts_of(t);
  CHECK(parts.compute == Duration(20));
  CHECK(parts.exposed[2] == Duration(10));
  CHECK(parts.wait == Duration(10));
  CHECK(parts.bubble == Duration(0));

  const auto times = times_by_name(t);
  REQUIRE(times.size() == 2);
  CHECK(times[0].name == "all_reduce");
  CHECK(times[0].calls == 1.0);
  CHECK(times[0].time == Duration(10));
  CHECK(times[1].time == Duration(20));
}

TEST_CASE("what runs beside something else is counted once") {
  Timeline t{"measured", {{0, 1}, {1, 1}}, {}};
  // Rank 0: of the bytes from 30 to 60, five before the last kernel and three after it show, of the
  // waiting before them six between the first two. Rank 1 comes last and shows all its bytes.
  t.events = {kernel(0, 0, 20),
              kernel(0, 26, 24),
              collective(0, "data", 5, 55, 2),
              kernel(0, 55, 2),
              kernel(1, 0, 30),
              collective(1, "data", 30, 30, 2),
              collective(1, "tensor", 40, 30)};
  align_collectives(t, plan_of(2, 1));
  const StepParts parts = parts_of(t);
  CHECK(parts.compute == Duration((20 + 24 + 2 + 30) / 2));
  CHECK(parts.exposed[2] == Duration((8 + 30) / 2));
  CHECK(parts.exposed[0] == Duration(10 / 2));
  CHECK(parts.wait == Duration(6 / 2));
}

}  // namespace stepcast::validate
