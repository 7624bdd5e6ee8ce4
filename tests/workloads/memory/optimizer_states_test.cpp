#include "workloads/memory/optimizer_states.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/fixtures.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/optimizer.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr Batch one{.micro_batch = 1, .micro_batches = 1, .sequence = 4096};
constexpr std::int64_t words = 32'000 * 4096;  // of llama_7b: the embedding, and the head

std::int64_t kept(Optimizer optimizer, const Software& software, DataParallel data,
                  std::int64_t degree, bool masters = true) {
  ParallelPlan plan;
  plan.data = data;
  plan.data_degree = degree;
  plan.optimizer = optimizer;
  Precision precision;
  precision.masters = masters;
  const TransformerShape shape = llama_7b();
  const StepInputs in{shape, plan, one, precision, software};
  return kept_states(MemoryRank(in, 0));
}

Software of_fsdp(FlatParameters flat) {
  Software software = eager();
  software.data.flat_parameters = flat;
  return software;
}

}  // namespace

TEST_CASE("moments of 8 bits are a byte each and a scale a block, small tensors in fp32") {
  const std::int64_t all = parameters(llama_7b());
  // 65 norms of 4,096 elements are the smallest tensors: a block of 256 divides all.
  CHECK(kept(Optimizer::adam, eager(), DataParallel::ddp, 1) == 8 * all);
  const std::int64_t narrow = kept(Optimizer::adam_8bit, eager(), DataParallel::ddp, 1);
  CHECK(narrow == 2 * all + 2 * 4 * all / 256);

  Software coarse = eager();
  coarse.optimizer.moments_block = 2048;
  CHECK(kept(Optimizer::adam_8bit, coarse, DataParallel::ddp, 1) == 2 * all + 2 * 4 * all / 2048);

  Software wide = eager();
  wide.optimizer.wide_embedding_moments = true;
  CHECK(kept(Optimizer::adam_8bit, wide, DataParallel::ddp, 1) - narrow ==
        8 * words - (2 * words + 2 * 4 * words / 256));

  const ParameterTensor small{"norm", least_of_8bit - 1};
  const TransformerShape shape = llama_7b();
  ParallelPlan plan;
  plan.optimizer = Optimizer::adam_8bit;
  const Precision precision;
  const Software software = eager();
  const StepInputs in{shape, plan, one, precision, software};
  CHECK(kept_states(MemoryRank(in, 0), small, small.elements) ==
        KeptStates{4 * small.elements, 4 * small.elements});
}

TEST_CASE("Adafactor keeps a row and a column of a matrix that it sees, all of one that is flat") {
  // A layer: q, k, v, o; gate, up, down; two norms. Then embedding, head and the last norm.
  const std::int64_t layer = 4 * (4096 + 4096) + 3 * (11'008 + 4096) + 2 * 4096;
  const std::int64_t factored = 4 * (32 * layer + 2 * (32'000 + 4096) + 4096);
  CHECK(kept(Optimizer::adafactor, eager(), DataParallel::ddp, 1) == factored);
  CHECK(kept(Optimizer::adafactor, of_fsdp(FlatParameters::fsdp2), DataParallel::zero3, 8) ==
        factored);
  const std::int64_t all = parameters(llama_7b());
  CHECK(kept(Optimizer::adafactor, of_fsdp(FlatParameters::fsdp1), DataParallel::zero3, 8) ==
        4 * all);
  CHECK(kept(Optimizer::adafactor, eager(), DataParallel::zero1, 8) == 4 * all);
}

TEST_CASE("Muon keeps one moment of the layers' matrices, SGD one of everything") {
  const std::int64_t all = parameters(llama_7b());
  const std::int64_t others = 2 * words + 65 * 4096;  // embedding, head, norms
  CHECK(kept(Optimizer::muon, eager(), DataParallel::ddp, 1) == 4 * all + 4 * others);
  CHECK(kept(Optimizer::sgd, eager(), DataParallel::ddp, 1) == 4 * all);
  CHECK(kept(Optimizer::sgd, eager(), DataParallel::ddp, 1, false) == 2 * all);
}

TEST_CASE("an update inside backward leaves no gradients, whole or sharded") {
  Precision precision;
  precision.masters = false;
  Software software = eager();
  software.optimizer.kernel = OptimizerKernel::fused;
  const auto gradients = [&](DataParallel data, std::int64_t degree, bool in_backward) {
    ParallelPlan plan;
    plan.data = data;
    plan.data_degree = degree;
    plan.optimizer_in_backward = in_backward;
    const Batch few{.micro_batch = 1, .micro_batches = 1, .sequence = 64};  // all in the states
    const Memory memory = memory_of_stage(llama_7b(), plan, few, precision, software, 0);
    return memory.of("gradients").value;
  };
  const std::int64_t all = parameters(llama_7b());
  CHECK(gradients(DataParallel::ddp, 1, false) > 2 * all - 4096 * 4);
  CHECK(gradients(DataParallel::ddp, 1, true) < 2 * all / 10);
  CHECK(gradients(DataParallel::zero3, 8, true) < gradients(DataParallel::zero3, 8, false));
}
