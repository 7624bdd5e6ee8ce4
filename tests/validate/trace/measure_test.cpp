#include "validate/trace/measure.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "engine/check.hpp"
#include "tests/validate/trace_writer.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using workloads::CollectiveKind;

namespace {

constexpr const char* all_reduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
constexpr const char* facts =
    ", \"Collective name\": \"allreduce\", \"In msg nelems\": 500000, \"Out msg nelems\": 500000, "
    "\"Group size\": 2, \"dtype\": \"BFloat16\"";

/// Three steps of 100 us. Rank 0 reaches the collective at 30 us, rank 1 `late` us later; the
/// transfer takes 20 us and half of it lies under a product.
RankTrace rank_trace(int rank, double late) {
  TraceWriter writer(rank, 2);
  for (int step = 0; step < 4; ++step) {
    const double at = 100 * step;
    writer.mark("gpu_user_annotation", step, at, 95);
    writer.kernel("gemm", at, 30 + (rank == 1 ? late : 0));
    writer.collective(all_reduce, at + 30 + (rank == 1 ? late : 0), 20 + (rank == 1 ? 0 : late),
                      "0", facts);
    writer.kernel("vectorized_elementwise_kernel", at + 40 + late, 40 - late);
  }
  return read_text(writer.text());
}

}  // namespace

TEST_CASE("what a rank waits for its peer is told from the transfer by the peer's own trace") {
  const MeasuredStep both = measure_traces({rank_trace(0, 10), rank_trace(1, 10)}, {});
  CHECK(both.mean.step == 100_us);
  // Rank 0: product 0-30, kernel 30-60, sum 50-80: exposed 20, of it 10 before the peer comes.
  // Rank 1: product 0-40, kernel 40-60, sum 50-80: exposed 10.
  CHECK(both.mean.exposed == 15_us);
  CHECK(both.mean.transferring == 10_us);
  CHECK(both.mean.waiting == 5_us);
  CHECK(both.mean.communication == 25_us);
  CHECK(both.mean.compute == 65_us);
  CHECK(both.mean.idle == 20_us);
  const StepTally& tally = both.mean.collectives.at(CollectiveKind::all_reduce);
  CHECK(tally.duration == 20_us);
  CHECK(tally.calls == 1);
  CHECK(tally.sized);
  CHECK(tally.bytes == 1e6);

  const MeasuredStep alone = measure_traces({rank_trace(0, 10)}, {});
  CHECK(alone.mean.exposed == 20_us);
  CHECK_FALSE(alone.mean.waiting);
  CHECK(alone.mean.collectives.at(CollectiveKind::all_reduce).duration == 30_us);
  CHECK_THAT(alone.notes.back(), Catch::Contains("includes waiting"));
}

TEST_CASE("compute, exposed communication and idle time add up to the step") {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    std::vector<RankTrace> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      TraceWriter writer(rank, 2);
      for (int step = 0; step < 4; ++step) {
        writer.mark("gpu_user_annotation", step, 1000 * step, 1000);
        for (int k = 0; k < 12; ++k) {
          const double begin = 1000 * step + static_cast<double>(random() % 1000);
          const double length = static_cast<double>(1 + random() % 300);
          if (k % 3 == 0)
            writer.collective(all_reduce, begin, length, k % 2 == 0 ? "0" : "1", facts);
          else
            writer.kernel(k % 3 == 1 ? "gemm" : "elementwise_kernel", begin, length);
        }
      }
      ranks.push_back(read_text(writer.text()));
    }
    const StepBreakdown mean = measure_traces(ranks, {}).mean;
    const auto sum = *mean.compute + *mean.exposed + *mean.idle;
    CHECK(std::abs((sum - *mean.step).count()) <= 3);  // each rounded to a picosecond
    CHECK(std::abs((*mean.transferring + *mean.waiting - *mean.exposed).count()) <= 3);
    CHECK(mean.transferring <= mean.exposed);
    CHECK(mean.exposed <= mean.communication);
  }
}

TEST_CASE("a transfer never takes longer when one more rank's trace is given") {
  for (const double late : {0.0, 3.0, 15.0}) {
    const auto time = [](const MeasuredStep& step) {
      return step.mean.collectives.at(CollectiveKind::all_reduce).duration;
    };
    CHECK(time(measure_traces({rank_trace(0, late), rank_trace(1, late)}, {})) <=
          time(measure_traces({rank_trace(0, late)}, {})));
  }
}

TEST_CASE("messages meet by sender and receiver, not by order") {
  // Rank 0 sends then receives, rank 1 receives later, then sends: each pair 5 us at its shortest.
  const auto trace = [](int rank) {
    TraceWriter writer(rank, 2);
    for (int step = 0; step < 3; ++step) {
      const double at = 100 * step;
      const auto message = [&](double begin, double length, int from, int to) {
        const std::string ends = rank == from ? ", \"Dst Rank\": " + std::to_string(to)
                                              : ", \"Src Rank\": " + std::to_string(from);
        writer.collective("ncclDevKernel_SendRecv", begin, length, "2",
                          ", \"Collective name\": \"" +
                              std::string(rank == from ? "send" : "recv") + "\"" + ends);
      };
      writer.mark("gpu_user_annotation", step, at, 90);
      writer.kernel("gemm", at, 10);
      if (rank == 0) message(at + 20, 5, 0, 1), message(at + 40, 30, 1, 0);
      if (rank == 1) message(at + 12, 13, 0, 1), message(at + 65, 5, 1, 0);
    }
    return read_text(writer.text());
  };
  const StepBreakdown mean = measure_traces({trace(0), trace(1)}, {}).mean;
  CHECK(mean.collectives.at(CollectiveKind::send_receive).duration == 10_us);
  CHECK(mean.collectives.at(CollectiveKind::send_receive).calls == 2);
  CHECK(mean.waiting == to_duration((25 + 8) / 2.0 * 1e-6));
}

TEST_CASE("an all-to-all that NCCL sends as messages counts as what was called") {
  TraceWriter writer(0, 2);
  writer.mark("gpu_user_annotation", 0, 0, 50);
  writer.collective("ncclDevKernel_SendRecv", 0, 10, "1", ", \"Collective name\": \"all_to_allv\"");
  const StepBreakdown mean = measure_traces({read_text(writer.text())}, {}).mean;
  CHECK(mean.collectives.contains(CollectiveKind::all_to_all));
  CHECK_FALSE(mean.collectives.at(CollectiveKind::all_to_all).sized);
}

TEST_CASE("copies from the host are no compute") {
  TraceWriter writer;
  writer.mark("gpu_user_annotation", 0, 0, 50);
  writer.kernel("gemm", 0, 10);
  writer.event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, 10, "");
  const StepBreakdown mean = measure_traces({read_text(writer.text())}, {}).mean;
  CHECK(mean.compute == 10_us);
  CHECK(mean.idle == 40_us);
  CHECK(mean.kernels.at(TraceKind::host_copy).duration == 10_us);
}

TEST_CASE("the first steps are left out as asked, the first of several unasked") {
  TraceWriter writer;
  for (int step = 0; step < 5; ++step) {
    writer.mark("gpu_user_annotation", step, step == 0 ? 0 : 300 + 100 * step, 90);
    writer.kernel("gemm", step == 0 ? 0 : 300 + 100 * step, 90);
  }
  const std::string text = writer.text();
  CHECK(measure_traces({read_text(text)}, {}).mean.step == 100_us);
  CHECK(measure_traces({read_text(text)}, 0).mean.step == 175_us);  // (400 + 3 x 100) / 4
  CHECK_THROWS_WITH(measure_traces({read_text(text)}, 4), Catch::Contains("4 whole steps"));
}

TEST_CASE("two traces of one rank are refused") {
  CHECK_THROWS_WITH(measure_traces({rank_trace(1, 0), rank_trace(1, 0)}, {}),
                    Catch::Contains("is of rank 1"));
}

TEST_CASE("bytes are the larger side of a collective") {
  CHECK(bytes_of({.in = 10, .out = 80, .dtype = "Float"}) == 320.0);  // an all-gather of 8
  CHECK(bytes_of({.in = 80, .out = 10, .dtype = "BFloat16"}) == 160.0);
  CHECK_FALSE(bytes_of({.dtype = "Float"}));
  CHECK_FALSE(bytes_of({.in = 1, .out = 1, .dtype = "Quaternion"}));
}
