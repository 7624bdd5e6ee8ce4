#include "validate/trace/steps.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/validate/trace_writer.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

Interval span(int from_us, int to_us) {
  return {Time(std::chrono::microseconds(from_us)), Time(std::chrono::microseconds(to_us))};
}

}  // namespace

TEST_CASE("a kernel belongs to the step that launched it, however late it runs") {
  // The host is 50 us ahead: step 8's first kernel starts at 160, after the host's step 9 began.
  TraceWriter writer;
  for (int step = 0; step < 3; ++step) {
    const double host = 100 * step;
    writer.mark("user_annotation", 7 + step, host, 100);
    writer.launch(host + 10, 2 * step);
    writer.launch(host + 90, 2 * step + 1);
    writer.kernel("gemm", host + 60, 40, 7, "", 2 * step);
    writer.kernel("gemm", host + 140, 10, 7, "", 2 * step + 1);
  }
  const TraceSteps steps = steps_of(read_text(writer.text()));
  CHECK(steps.step_of == std::vector<std::int64_t>{7, 7, 8, 8, 9, 9});
  REQUIRE(steps.steps.size() == 2);  // nothing tells where step 9 would have ended
  CHECK(steps.steps[0].number == 7);
  CHECK(steps.steps[0].span == span(60, 160));
  CHECK(steps.steps[1].span == span(160, 260));
}

TEST_CASE("without launches the marks of the GPU cut the steps") {
  TraceWriter writer;
  for (int step = 0; step < 3; ++step) {
    writer.mark("gpu_user_annotation", step, 100 * step + 5, 80);   // on one stream
    writer.mark("gpu_user_annotation", step, 100 * step + 10, 85);  // and on another
    writer.kernel("gemm", 100 * step + 5, 80);
  }
  const TraceSteps steps = steps_of(read_text(writer.text()));
  REQUIRE(steps.steps.size() == 2);
  CHECK(steps.steps[0].span == span(0, 100));  // times count from the first event
  CHECK(steps.step_of == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("one step alone lasts from its first kernel to the end of its last") {
  TraceWriter writer;
  writer.mark("gpu_user_annotation", 4, 0, 90);
  writer.kernel("gemm", 10, 20);
  const TraceSteps steps = steps_of(read_text(writer.text()));
  REQUIRE(steps.steps.size() == 1);
  CHECK(steps.steps[0].span == span(0, 90));
}

TEST_CASE("a gap in the numbers is not a long step") {
  TraceWriter writer;
  for (const int step : {1, 2, 3, 7, 8, 9}) {
    writer.mark("gpu_user_annotation", step, 100 * step, 90);
    writer.kernel("gemm", 100 * step, 90);
  }
  const TraceSteps steps = steps_of(read_text(writer.text()));
  REQUIRE(steps.steps.size() == 4);  // 1, 2, 7, 8
  for (const TraceStep& step : steps.steps) CHECK(step.span.end - step.span.begin == 100_us);
}

TEST_CASE("a trace without marks is cut behind its optimizer") {
  TraceWriter writer;
  for (int step = 0; step < 4; ++step) {
    writer.kernel("gemm", 100 * step, 20);
    writer.kernel("multi_tensor_apply_kernel<L2NormFunctor>", 100 * step + 60, 5);
    writer.kernel("multi_tensor_apply_kernel<AdamFunctor>", 100 * step + 80, 10);
    writer.kernel("vectorized_elementwise_kernel<fill>", 100 * step + 92, 3);
  }
  const TraceSteps steps = steps_of(read_text(writer.text()));
  REQUIRE(steps.steps.size() == 3);
  CHECK(steps.steps[0].span == span(90, 190));
  CHECK(steps.steps[2].span == span(290, 390));
}

TEST_CASE("a trace without marks and optimizer says what to do") {
  TraceWriter writer;
  writer.kernel("gemm", 0, 20);
  CHECK_THROWS_WITH(steps_of(read_text(writer.text())), Catch::Contains("profiler.step()"));
}
