#include "workloads/step/sharded_units.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;
using engine::Op;

namespace {

constexpr std::int64_t layer_7b = 202'383'360;
constexpr std::int64_t root_7b = 2 * 32000 * 4096 + 4096;

}  // namespace

TEST_CASE(
    "zero2 gathers 2P once and reduces 4P in fp32 or 2P in bf16, zero3 gathers layers twice") {
  const auto z2 = bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero2, 8)));
  CHECK(z2.at("layer.gather") == 32 * 2 * layer_7b);
  CHECK(z2.at("root.gather") == 2 * root_7b);
  CHECK(z2.at("layer.reduce") == 32 * 4 * layer_7b);
  CHECK(z2.at("root.reduce") == 4 * root_7b);
  Precision narrow;
  narrow.gradient_reduce = Dtype::bf16;
  const auto bf16 =
      bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero2, 8), two, eager(), narrow));
  CHECK(bf16.at("layer.reduce") == 32 * 2 * layer_7b);
  const auto z3 = bytes_by_name(step_of(llama_7b(), plan_of(DataParallel::zero3, 8)));
  CHECK(z3.at("layer.gather") == 2 * 32 * 2 * layer_7b);
  CHECK(z3.at("root.gather") == 2 * root_7b);
  CHECK(z3.at("layer.reduce") == 32 * 4 * layer_7b);
}

TEST_CASE("gradient accumulation reduces once, or with each micro-batch") {
  const Batch four{.micro_batch = 1, .micro_batches = 4, .sequence = 4096};
  ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const auto last = bytes_by_name(step_of(llama_7b(), plan, four));
  CHECK(last.at("layer.gather") == 32 * 2 * layer_7b);
  CHECK(last.at("layer.reduce") == 32 * 4 * layer_7b);
  plan.reduce = ReduceWhen::each;
  const auto each = bytes_by_name(step_of(llama_7b(), plan, four));
  CHECK(each.at("layer.gather") == 4 * 32 * 2 * layer_7b);
  CHECK(each.at("layer.reduce") == 4 * 32 * 4 * layer_7b);
  plan.data = DataParallel::zero3;
  CHECK(bytes_by_name(step_of(llama_7b(), plan, four)).at("layer.gather") == 8 * 32 * 2 * layer_7b);
}

TEST_CASE("FSDP2 copies 2P out of the gather buffer and widens 2P to 4P before the reduction") {
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero2, 8));
  const std::int64_t all = 32 * layer_7b;
  CHECK(bytes_of_kernels(step, "layer.copy_out") == 4 * all);
  CHECK(bytes_of_kernels(step, "layer.chunk_cat") == 6 * all);
  CHECK(bytes_of_kernels(step, "layer.cast") == 6 * all / 8);
  CHECK(bytes_of_kernels(step, "layer.copy_in") == 4 * all / 8);
}

TEST_CASE("explicit prefetch issues the next unit's gather before this unit's kernels") {
  TransformerShape s = llama_7b();
  s.layers = 3;
  Software software = eager();
  ParallelPlan plan = plan_of(DataParallel::zero2, 8);
  const auto first_kernel_after_gathers = [&](std::int64_t depth, bool explicit_prefetch) {
    plan.prefetch = depth;
    software.data.explicit_prefetch = explicit_prefetch;
    const StepProgram step = step_of(s, plan, two, software);
    int gathers = 0;
    for (const auto& i : step.roles[0].instructions) {
      if (i.op == Op::join && i.lane == data_lane) ++gathers;
      if (i.op == Op::work && step.kernels[i.arg].name == "layer.norm1.forward.upcast")
        return gathers;
    }
    return -1;
  };
  // Root and layer 0, and what is ahead of layer 0.
  CHECK(first_kernel_after_gathers(1, false) == 2);
  CHECK(first_kernel_after_gathers(0, true) == 2);
  CHECK(first_kernel_after_gathers(1, true) == 3);
  CHECK(first_kernel_after_gathers(2, true) == 4);
}

TEST_CASE("zero3's backward gathers unit k-1 before it reduces unit k") {
  TransformerShape s = llama_7b();
  s.layers = 3;
  CHECK(data_lane_order(step_of(s, plan_of(DataParallel::zero3, 8))) ==
        std::vector<std::string>{"root.gather", "layer.gather", "layer.gather", "layer.gather",
                                 "layer.gather", "layer.gather", "layer.reduce", "layer.gather",
                                 "layer.reduce", "layer.reduce", "root.reduce"});
}

TEST_CASE("the reduction's copy runs beside compute in 2.3 and on the compute lane later") {
  Software software = eager();
  const auto lane_of = [&](const std::string& name) {
    const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero2, 8), two, software);
    std::set<int> lanes;
    for (const auto& i : step.roles[0].instructions)
      if (i.op == Op::work && step.kernels[i.arg].name == name) lanes.insert(i.lane);
    return lanes;
  };
  CHECK(lane_of("layer.copy_in") == std::set<int>{copy_lane});
  CHECK(lane_of("layer.copy_out") == std::set<int>{compute});
  CHECK(lane_of("layer.chunk_cat") == std::set<int>{copy_lane});
  software.data.reduce_copy_compute = true;
  CHECK(lane_of("layer.chunk_cat") == std::set<int>{compute});
}

TEST_CASE("FSDP1 gathers into views, joins gradients flat, casts and divides the full gradient") {
  Software software = eager();
  software.data.flat_parameters = FlatParameters::fsdp1;
  software.data.explicit_prefetch = false;
  const StepProgram step = step_of(llama_7b(), plan_of(DataParallel::zero3, 8), two, software);
  const std::int64_t all = 32 * layer_7b;
  CHECK(bytes_of_kernels(step, "layer.copy") == 0);
  CHECK(bytes_of_kernels(step, "layer.flat_gradient") == 4 * all);
  CHECK(bytes_of_kernels(step, "layer.reduce_cast") == 6 * all);
  CHECK(bytes_of_kernels(step, "layer.divide") == 8 * all);
  CHECK(bytes_by_name(step).at("layer.gather") == 2 * 32 * 2 * layer_7b);
}

TEST_CASE("FSDP1's host waits before the third gather of resharded units, FSDP2's never") {
  Software software = eager();
  software.host.step_sync = false;
  software.data.explicit_prefetch = false;
  const auto host_waits = [&](DataParallel kind) {
    const StepProgram step = step_of(llama_7b(), plan_of(kind, 8), two, software);
    return std::count_if(step.roles[0].instructions.begin(), step.roles[0].instructions.end(),
                         [](const auto& i) { return i.op == Op::host_wait; });
  };
  CHECK(host_waits(DataParallel::zero3) == 0);
  software.data.flat_parameters = FlatParameters::fsdp1;
  // Forward: units 2 to 31 wait for the one two before. Backward: unit 31 waits, unit 30 is
  // gathered before another one is freed, units 29 to 0 wait.
  CHECK(host_waits(DataParallel::zero3) == 30 + 1 + 30);
  CHECK(host_waits(DataParallel::zero2) == 0);  // nothing is freed before backward
}

TEST_CASE("fp16 reductions are divided before and after, fp32 ones by NCCL") {
  Precision precision;
  const auto divides = [&] {
    return bytes_of_kernels(
        step_of(llama_7b(), plan_of(DataParallel::zero2, 8), two, eager(), precision),
        "layer.divide");
  };
  CHECK(divides() == 0);
  precision.compute = precision.gradient_reduce = Dtype::fp16;
  CHECK(divides() == 4 * 32 * layer_7b);
}

TEST_CASE("hsdp moves shards between the ranks of a copy and sums them over the copies") {
  ParallelPlan plan = plan_of(DataParallel::zero3, 16);
  const auto whole = bytes_by_name(step_of(llama_7b(), plan));
  plan.shard_degree = 8;
  for (const FlatParameters layout : {FlatParameters::fsdp1, FlatParameters::fsdp2}) {
    Software software = eager();
    software.data.flat_parameters = layout;
    const StepProgram step = step_of(llama_7b(), plan, two, software);
    const auto bytes = bytes_by_name(step);
    CHECK(bytes.at("layer.gather") == whole.at("layer.gather"));
    CHECK(bytes.at("layer.reduce") == whole.at("layer.reduce"));
    CHECK(bytes.at("layer.sum_replicas") * 8 == bytes.at("layer.reduce"));
    for (const Collective& c : step.collectives) {
      if (c.name == "layer.gather" || c.name == "layer.reduce") CHECK(c.group == GroupKind::shard);
      if (c.name == "layer.sum_replicas") CHECK(c.group == GroupKind::replica);
    }
  }
}

TEST_CASE("a shard degree of all ranks is zero3 itself") {
  ParallelPlan plan = plan_of(DataParallel::zero3, 8);
  const StepProgram whole = step_of(llama_7b(), plan);
  plan.shard_degree = 8;
  CHECK(step_of(llama_7b(), plan).roles == whole.roles);
}

TEST_CASE("DeepSpeed 0.4 gathers tensor by tensor, behind an empty device, nothing ahead") {
  Software software = eager();
  software.host.step_sync = false;
  software.data.gather_each_tensor = true;
  software.data.flat_parameters = FlatParameters::fsdp1;
  const ParallelPlan plan = plan_of(DataParallel::zero3, 8);
  const StepProgram step = step_of(llama_7b(), plan, two, software);
  const auto& all = step.roles[0].instructions;
  const auto joins = [&](const char* name) {
    return std::count_if(all.begin(), all.end(), [&](const auto& i) {
      return i.op == Op::join && step.collectives[i.arg].name == name;
    });
  };
  // A layer of Llama has 9 tensors, gathered in forward and in backward; the root's are embedding,
  // norm and head.
  CHECK(joins("layer.gather") == 2 * 32 * 9);
  CHECK(joins("root.gather") == 3);
  const auto bytes = bytes_by_name(step);
  CHECK(bytes.at("layer.gather") == 2 * 32 * 2 * layer_7b);
  CHECK(bytes.at("layer.reduce") == 32 * 4 * layer_7b);
  // Before each the host waits for compute, and for the gather before it in the unit; FSDP1's limit
  // of units in flight is none here.
  const auto waits =
      std::count_if(all.begin(), all.end(), [](const auto& i) { return i.op == Op::host_wait; });
  CHECK(waits == 2 * (2 * 32 * 9 + 3) - (2 * 32 + 1));
  // Nothing of a later unit is gathered before this one's kernels: 9 gathers, then a product.
  std::size_t gathers = 0;
  bool product = false;
  for (const auto& i : all) {
    if (i.op == Op::join && step.collectives[i.arg].name == "layer.gather") {
      if (gathers % 9 == 0 && gathers > 0) CHECK(product);
      ++gathers, product = false;
    }
    if (i.op == Op::work && step.kernels[i.arg].family == KernelFamily::gemm) product = true;
  }
}
