// Schedules against their published makespans, bubbles and memory, with no time for messages.
#include <catch2/catch.hpp>

#include "tests/workloads/plan/order_clock.hpp"

using namespace stepcast::workloads;

namespace {

PipelineShape shape_of(Schedule schedule, std::int64_t stages, std::int64_t micro_batches,
                       std::int64_t chunks = 1) {
  return {.schedule = schedule, .stages = stages, .micro_batches = micro_batches, .chunks = chunks};
}

std::int64_t makespan(const PipelineShape& shape, const PassTimes& times) {
  return OrderClock(shape, times).makespan();
}

/// Hundredths; F&B 3.00, or 2.55 where it overlaps.
constexpr PassTimes equal{100, 100, 100, 300}, overlapped{100, 100, 100, 255};

struct Makespan {
  std::int64_t stages, micro_batches, plain, paired;  // paired: tenths
};

}  // namespace

// Makespans of simulations of deepseek-ai's dualpipe.py and dualpipev.py, read 2026.
TEST_CASE("DualPipe takes as long as its order says") {
  for (const Makespan& c : {Makespan{4, 8, 26, 242},
                            {4, 16, 50, 446},
                            {8, 16, 54, 495},
                            {8, 20, 66, 597},
                            {8, 40, 126, 1107},
                            {16, 32, 110, 1001}}) {
    INFO(c.stages << " stages, " << c.micro_batches << " micro-batches");
    const PipelineShape shape = shape_of(Schedule::dualpipe, c.stages, c.micro_batches, 2);
    CHECK(makespan(shape, equal) == 100 * c.plain);
    CHECK((makespan(shape, overlapped) + 5) / 10 == c.paired);
  }
}

TEST_CASE("DualPipeV takes as long as its order says") {
  for (const Makespan& c : {Makespan{4, 8, 54, 495}, {4, 10, 66, 597}, {8, 16, 110, 1001}}) {
    INFO(c.stages << " stages, " << c.micro_batches << " micro-batches");
    const PipelineShape shape = shape_of(Schedule::dualpipe_v, c.stages, c.micro_batches, 2);
    CHECK(makespan(shape, equal) == 100 * c.plain);
    CHECK((makespan(shape, overlapped) + 5) / 10 == c.paired);
  }
}

// (p/2-1)(F&B + B - 3W) of DualPipe's README: exact where I = F, else an upper bound.
TEST_CASE("DualPipe's outer stages idle as its formula says") {
  for (const std::int64_t p : {4, 8, 16})
    for (const std::int64_t m : {2 * p, 2 * p + 4, 5 * p})
      for (const std::int64_t w : {50, 80, 100}) {  // no longer than a forward
        const PassTimes t{100, 100, w, 200 + w};
        const OrderClock clock(shape_of(Schedule::dualpipe, p, m, 2), t);
        CHECK(clock.idle(0) == (p / 2 - 1) * (t.pair + t.input + t.weight - 3 * t.weight));
      }
  const auto idle = [](std::int64_t input, std::int64_t weight) {
    const PassTimes t{100, input, weight, 100 + input + weight};
    return OrderClock(shape_of(Schedule::dualpipe, 8, 20, 2), t).idle(0);
  };
  CHECK(idle(110, 90) == 660);   // of 690
  CHECK(idle(150, 100) == 800);  // of 900
}

TEST_CASE("ZB-H1 idles (p-1)(F+I-W), as do its interleaved chunks") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {p, 2 * p, 4 * p})
      for (const PassTimes& t : {PassTimes{}, {10, 11, 9, 30}, {10, 12, 10, 32}})
        for (const std::int64_t v : {1, 2}) {
          const OrderClock clock(shape_of(Schedule::zb_h1, p, m, v), t);
          INFO(p << " stages, " << m << " micro-batches, " << v << " chunks");
          CHECK(clock.idle(0) == (p - 1) * (t.forward + t.input - t.weight));
        }
}

TEST_CASE("ZB-H2 and ZB-V idle only at the start and the end of a step") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {2 * p, 4 * p}) {
      CHECK(OrderClock(shape_of(Schedule::zb_h2, p, m), {}).idle(0) == p - 1);
      CHECK(OrderClock(shape_of(Schedule::zb_v, p, m, 2), {}).idle(0) == p - 1);
      const PassTimes slow{10, 12, 10, 32};
      CHECK(OrderClock(shape_of(Schedule::zb_v, p, m, 2), slow).idle(0) == (p - 1) * slow.input);
    }
}

// One more forward before the first backward, then every forward runs beside a backward. The
// makespans are those of simulations of Megatron-LM's order (schedules.py, 2026).
TEST_CASE("interleaved pairs take as long as their order says") {
  struct Case {
    std::int64_t stages, chunks, micro_batches, plain, paired;
  };
  for (const Case& c :
       {Case{4, 2, 8, 5700, 5205}, {8, 2, 16, 11700, 10665}, {8, 4, 32, 40500, 35865}}) {
    PipelineShape shape = shape_of(Schedule::one_f_one_b, c.stages, c.micro_batches, c.chunks);
    INFO(c.stages << " stages, " << c.chunks << " chunks, " << c.micro_batches << " micro-batches");
    CHECK(makespan(shape, overlapped) == c.plain);
    shape.paired = true;
    CHECK(makespan(shape, overlapped) == c.paired);
    const std::vector<std::int64_t> each(static_cast<std::size_t>(c.chunks), 1);
    CHECK(peak_in_flight(shape, 0, each) == 2 * (c.stages - 1) + (c.chunks - 1) * c.stages + 2);
  }
}

TEST_CASE("without stages a forward runs beside the backward before it") {
  PipelineShape shape = shape_of(Schedule::one_f_one_b, 1, 4);
  shape.paired = true;
  CHECK(makespan(shape, overlapped) == 100 + 3 * 255 + 200);
}

TEST_CASE("what schedules hold: ZB-H1 p stages' activations, ZB-H2 2p-1, DualPipe p + 1") {
  for (const std::int64_t p : {2, 4, 8}) {
    const std::int64_t m = 4 * p;
    for (std::int64_t r = 0; r < p; ++r) {
      INFO("stage " << r << " of " << p);
      CHECK(peak_in_flight(shape_of(Schedule::zb_h1, p, m), r, {1}) == p);
      CHECK(peak_in_flight(shape_of(Schedule::zb_h2, p, m), r, {1}) == 2 * p - 1);
      CHECK(peak_in_flight(shape_of(Schedule::zb_v, p, m, 2), r, {1, 1}) <= 2 * p);
      CHECK(peak_in_flight(shape_of(Schedule::dualpipe, p, m, 2), r, {1, 1}) <= p + 1);
      CHECK(peak_in_flight(shape_of(Schedule::dualpipe_v, p, m, 2), r, {1, 1}) <= 2 * p + 1);
    }
    CHECK(peak_in_flight(shape_of(Schedule::zb_v, p, m, 2), 0, {1, 1}) == 2 * p);
    CHECK(peak_in_flight(shape_of(Schedule::dualpipe, p, m, 2), 0, {1, 1}) == p + 1);
    CHECK(peak_in_flight(shape_of(Schedule::dualpipe_v, p, m, 2), 0, {1, 1}) == 2 * p + 1);
  }
}

TEST_CASE("between input and weight gradients more is held") {
  // Stage 0 of ZB-H1 computes each weight gradient at once: one waits.
  CHECK(peak_in_flight(shape_of(Schedule::zb_h1, 4, 16), 0, {10}, {1}) == 41);
  // The last has three that wait, and one more for a moment.
  CHECK(peak_in_flight(shape_of(Schedule::zb_h1, 4, 16), 3, {10}, {1}) == 44);
}
