#include "workloads/step/gradient_buckets.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

TEST_CASE("DDP all-reduces every gradient once in buckets no smaller than 25 MiB but the ends") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::ddp, 8));
  std::vector<std::int64_t> buckets;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == Op::join && i.lane == data_lane) {
      CHECK(step.collectives[i.arg].kind == CollectiveKind::all_reduce);
      buckets.push_back(step.collectives[i.arg].bytes.value);
    }
  std::int64_t sum = 0;
  for (const std::int64_t b : buckets) sum += b;
  CHECK(sum == 4 * 6'738'415'616);
  REQUIRE(buckets.size() > 100);
  CHECK(buckets.front() >= 1 << 20);
  for (std::size_t i = 1; i + 1 < buckets.size(); ++i) CHECK(buckets[i] >= 25 << 20);
}

TEST_CASE("without overlap the buckets are one reduction after backward") {
  Software software = fused();
  software.data.gradient_overlap = false;
  const auto bytes =
      bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software));
  CHECK(bytes.at("bucket.reduce") == 4 * 6'738'415'616);
  CHECK(bytes.at("parameters.gather") == 2 * 6'738'415'616);
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software);
  CHECK(data_lane_order(step).front() == "bucket.reduce");
  CHECK(data_lane_order(step)[1] == "parameters.gather");
}

TEST_CASE("all parameters can be gathered in one collective instead of by buckets") {
  const auto gathers = [](bool whole) {
    Software software = eager();
    software.data.flat_parameters = FlatParameters::buckets;
    software.data.gather_whole = whole;
    const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software);
    CHECK(bytes_by_name(step).at("parameters.gather") == 2 * 6'738'415'616);
    std::int64_t count = 0;
    for (const auto& i : step.roles[0].instructions)
      count += i.op == Op::join && step.collectives[i.arg].name == "parameters.gather";
    return count;
  };
  CHECK(gathers(true) == 1);
  CHECK(gathers(false) == 1029);  // 4 bytes a parameter, in buckets of 25 MiB
}

TEST_CASE("buckets of torch's reducer are filled by gradients as backward leaves them") {
  const auto buckets = [](bool reducer) {
    Software software = eager();
    software.data.flat_parameters = FlatParameters::buckets;
    software.data.reducer_buckets = reducer;
    const StepProgram step = step_of(llama_1b(), plan_of(DataParallel::ddp, 8), two, software);
    return std::ranges::count_if(step.roles[0].instructions, [&](const auto& i) {
      return i.op == Op::join && step.collectives[i.arg].name == "bucket.reduce";
    });
  };
  CHECK(buckets(true) < buckets(false));
  CHECK(buckets(true) >= buckets(false) / 2);
}

TEST_CASE("zero1 reduce-scatters and gathers parameters, DeepSpeed all-reduces") {
  Software software = fused();
  const auto kinds = [&] {
    std::set<CollectiveKind> out;
    const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero1, 8), two, software);
    for (const Collective& c : step.collectives)
      if (c.group == GroupKind::data) out.insert(c.kind);
    return out;
  };
  using enum CollectiveKind;
  CHECK(kinds() == std::set<CollectiveKind>{reduce_scatter, all_gather});
  software.data.reduce_scatter = false;
  CHECK(kinds() == std::set<CollectiveKind>{all_reduce, all_gather});
}

TEST_CASE("autocast casts each layer's weights in every forward") {
  Software software = eager();
  software.data.autocast = true;
  const Batch three{.micro_batch = 1, .micro_batches = 3, .sequence = 4096};
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::ddp, 8), three, software);
  CHECK(bytes_of_kernels(step, "layer.autocast") == 3 * 6 * 32 * std::int64_t{202'383'360});
}

TEST_CASE("gradients kept in 16 bits are widened for their reduction alone") {
  Software software = eager();
  software.data.flat_parameters = FlatParameters::buckets;
  software.data.reduce_scatter = false;
  const Batch three{.micro_batch = 1, .micro_batches = 3, .sequence = 4096};
  const std::int64_t parameters = 6'738'415'616;
  const auto plan = plan_of(DataParallel::zero1, 8);
  const StepProgram wide = step_of(llama_7b(), plan, three, software);
  software.data.widened_reduction = true;
  const StepProgram narrow = step_of(llama_7b(), plan, three, software);
  for (const StepProgram& step : {wide, narrow})  // 4 bytes a parameter on the wire, once
    CHECK(bytes_by_name(step).at("bucket.reduce") == 4 * parameters);
  CHECK(bytes_of_kernels(narrow, "bucket.copy_in") == 6 * parameters);
  CHECK(bytes_of_kernels(narrow, "bucket.copy_out") == 6 * parameters);
  // Sums of micro-batches in 16 bits: read two, write one, 6 bytes instead of 12.
  CHECK(2 * bytes_of_kernels(narrow, "layer.mlp.up.accumulate") ==
        bytes_of_kernels(wide, "layer.mlp.up.accumulate"));
  CHECK(bytes_of_kernels(narrow, "layer.mlp.up.widen") == 0);
  CHECK(bytes_of_kernels(narrow, "gradients.widen") > 0);
}

TEST_CASE("zero2 that reduces with each micro-batch adds shards, not whole gradients") {
  Software software;
  software.data.flat_parameters = FlatParameters::buckets;
  ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const Batch four{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  const std::int64_t all = 4 * 6'738'415'616;  // in fp32
  const auto accumulated = [](const StepProgram& step) {
    return std::any_of(
        step.roles[0].instructions.begin(), step.roles[0].instructions.end(), [&](const auto& i) {
          return i.op == Op::work && step.kernels[i.arg].name.ends_with(".accumulate");
        });
  };
  plan.reduce = ReduceWhen::last;
  const StepProgram last = step_of(llama_7b(), plan, four, software);
  CHECK(bytes_by_name(last).at("bucket.reduce") == all);
  CHECK(accumulated(last));
  plan.reduce = ReduceWhen::each;
  const StepProgram each = step_of(llama_7b(), plan, four, software);
  CHECK(bytes_by_name(each).at("bucket.reduce") == 4 * all);
  CHECK(bytes_of_kernels(each, "bucket.shard_sum") ==
        Approx(4.0 * 3.0 * static_cast<double>(all) / 8).epsilon(1e-6));
  CHECK_FALSE(accumulated(each));
}

TEST_CASE("a framework that clips each micro-batch passes over all gradients 24 bytes more") {
  Software software = eager();
  software.data.autocast = true;
  const Batch three{.micro_batch = 1, .micro_batches = 3, .sequence = 512};
  const auto plan = plan_of(DataParallel::ddp, 8);
  CHECK(bytes_of_kernels(step_of(bert_large(), plan, three, software), "micro_batch.") == 0);
  software.optimizer.clips_each_micro_batch = true;
  const StepProgram step = step_of(bert_large(), plan, three, software);
  const double parameters = static_cast<double>(workloads::parameters(bert_large()));
  CHECK(static_cast<double>(bytes_of_kernels(step, "micro_batch.")) ==
        Approx(3 * 24 * parameters).epsilon(1e-4));
}

TEST_CASE("parameters gathered under the next forward are the same bytes, before their layers") {
  Software software = fused();
  const auto plan = plan_of(DataParallel::zero1, 8);
  const StepProgram after = step_of(llama_7b(), plan, two, software);
  software.data.gather_overlap = true;
  const StepProgram under = step_of(llama_7b(), plan, two, software);
  CHECK(bytes_by_name(under).at("parameters.gather") ==
        bytes_by_name(after).at("parameters.gather"));
  CHECK(data_lane_order(after).front() == "bucket.reduce");
  CHECK(data_lane_order(under).front() == "parameters.gather");
  // The first product of the last layer comes after a wait for the last gather, and no gather is
  // left for the end of the step.
  CHECK(data_lane_order(under).back() == "bucket.reduce");
  const auto waits = [](const StepProgram& step) {
    return std::ranges::count_if(step.roles[0].instructions, [](const auto& i) {
      return i.op == Op::wait && i.lane == compute;
    });
  };
  CHECK(waits(under) > waits(after));
}

TEST_CASE("buckets grow with the ranks that share them where the software says so") {
  Software software = fused();
  software.data.bucket_bytes = 100'000'000;
  software.data.bucket_bytes_per_rank = 50'000'000;
  const auto buckets = [&](std::int64_t ranks) {
    const auto order =
        data_lane_order(step_of(llama_7b(), plan_of(DataParallel::zero1, ranks), two, software));
    return std::ranges::count(order, "bucket.reduce");
  };
  // Head, embedding, and per layer down 180 MB, gate and up 361 MB, o and q, k, v 268 MB.
  CHECK(buckets(2) == 2 + 3 * 32);
  CHECK(buckets(64) < 12);  // in 3.2 GB
}
