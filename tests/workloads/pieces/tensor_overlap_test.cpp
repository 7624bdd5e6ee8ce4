#include <catch2/catch.hpp>

#include "tests/workloads/timed_step.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr std::int64_t t = 4;

ParallelPlan plan_with(TensorOverlap overlap) {
  ParallelPlan plan = plan_of(DataParallel::ddp, 1, t);
  plan.sequence_parallel = true;
  plan.tensor_overlap = overlap;
  return plan;
}

TransformerShape one_layer() { return llama(1, 1024, 16, 16, 4096); }

Software software_of(TensorOverlap overlap) {
  Software software = overlap == TensorOverlap::async_tp ? compiled() : fused();
  software.products.packed = true;
  return software;
}

StepProgram step_with(TensorOverlap overlap) {
  return step_of(one_layer(), plan_with(overlap), two, software_of(overlap));
}

/// The step when products called `product` take G altogether, messages called `message` C.
Duration step_time(TensorOverlap overlap, const std::string& product, Duration g,
                   const std::string& message, Duration c) {
  const StepProgram step = step_with(overlap);
  std::int64_t parts = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].name == product) ++parts;
  return timed_run(
             step, plan_with(overlap),
             [&](const Kernel& k) { return k.name == product ? g / parts : Duration{}; },
             [&](const Collective& m) { return m.name == message ? c : Duration{}; })
      .step;
}

/// Each message of no length takes a picosecond.
Duration to_the_nanosecond(Duration d) { return (d + 500_ps) / 1_ns * 1_ns; }

/// Bytes of the hidden tensor that cross the links of a rank, as if in whole collectives: a copy
/// of a ring is one of t - 1.
double tensor_bytes(const StepProgram& step) {
  double sum = 0;
  for (const auto& i : step.roles[0].instructions) {
    if (i.op != engine::Op::join) continue;
    const Collective& c = step.collectives[i.arg];
    const auto bytes = static_cast<double>(c.bytes.value);
    if (c.group == GroupKind::tensor_ring) sum += bytes;
    if (c.group == GroupKind::tensor && c.name.starts_with("layer."))
      sum += bytes * (c.kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (t - 1) / t;
  }
  return sum;
}

}  // namespace

TEST_CASE("a gather round the ring hides under its product but for one part") {
  using enum TensorOverlap;
  for (const TensorOverlap overlap : {userbuffers, async_tp})
    for (const auto& [product, message] :
         {std::pair{"layer.attention.qkv.forward", "layer.attention.qkv.forward"},
          {"layer.mlp.gate_up.forward", "layer.mlp.up.forward"},
          {"layer.mlp.down.dgrad", "layer.mlp.down.backward"}}) {
      const Duration g = 400_us;  // 100 us for each of 4 parts
      for (const Duration c : {0_us, 60_us, 100_us, 170_us})
        CHECK(to_the_nanosecond(step_time(overlap, product, g, message, c)) ==
              (t - 1) * std::max(c, g / t) + g / t);
    }
}

TEST_CASE("user buffers scatter a product in four parts, the last of them exposed") {
  const Duration g = 400_us;
  for (const Duration c : {0_us, 60_us, 100_us, 170_us})
    CHECK(to_the_nanosecond(step_time(TensorOverlap::userbuffers, "layer.attention.o.forward", g,
                                      "layer.attention.o.forward", c)) ==
          g / 4 + 3 * std::max(c, g / 4) + c);
}

TEST_CASE("copies scatter a product under its next part") {
  const Duration g = 400_us;
  for (const Duration c : {0_us, 60_us, 100_us, 170_us})
    CHECK(to_the_nanosecond(step_time(TensorOverlap::async_tp, "layer.mlp.down.forward", g,
                                      "layer.mlp.down.forward", c)) ==
          g / t + (t - 1) * std::max(c, g / t));
}

TEST_CASE("parts of products and messages add up to the whole") {
  using enum TensorOverlap;
  for (const TensorOverlap overlap : {userbuffers, async_tp}) {
    const StepProgram parts = step_with(overlap);
    const StepProgram whole = step_of(one_layer(), plan_with(none), two, software_of(overlap));
    CHECK(flops_of(parts, 0) == Approx(flops_of(whole, 0)).epsilon(1e-12));
    CHECK(tensor_bytes(parts) == Approx(tensor_bytes(whole)).epsilon(1e-12));
  }
}

TEST_CASE("rings hold no SM, kernels of user buffers 16") {
  for (const Collective& c : step_with(TensorOverlap::userbuffers).collectives) {
    if (c.group == GroupKind::tensor_ring) CHECK(c.sms == 0);
    if (c.name == "layer.attention.o.forward") CHECK(c.sms == 16);
  }
  for (const Collective& c : step_with(TensorOverlap::none).collectives) CHECK(c.sms == -1);
}

TEST_CASE("parts of a product run on the library's streams, whole products on one") {
  using enum TensorOverlap;
  for (const auto& [overlap, streams] : {std::pair{none, 1}, {userbuffers, 3}, {async_tp, 2}})
    for (const Kernel& k : step_with(overlap).kernels) {
      if (k.family != KernelFamily::gemm) continue;
      const bool part = k.name == "layer.attention.qkv.forward" || k.name == "layer.mlp.down.dgrad";
      if (part) CHECK(k.streams == streams);
      if (k.name.ends_with("wgrad")) CHECK(k.streams == 1);
    }
}
