#include "workloads/pieces/masked_head_piece.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tests/workloads/step_reading.hpp"
#include "workloads/pieces/ends_piece.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

const Batch batch{.micro_batch = 8, .micro_batches = 1, .sequence = 512};
const Precision precision{.compute = Dtype::fp16, .gradient_reduce = Dtype::fp16};

struct Head {
  TransformerShape shape = bert_large();
  ParallelPlan plan = plan_of(DataParallel::ddp, 1);
  Software software = fused();
  ParameterTensors root = stage_parameters(shape, plan, {}, true, 0).root;
  StepInputs in{shape, plan, batch, precision, software};
};

double flops_of(const Piece& piece, const KernelTable& table) {
  double sum = 0;
  for (const Action& action : piece)
    if (launches(action)) sum += table.kernels()[action.index].flops.value;
  return sum;
}

}  // namespace

TEST_CASE("only the predicted positions go through transform and logits") {
  const Head head;
  KernelTable table;
  const double h = 1024, v = 30522, predicted = 8 * 80, sequences = 8;
  const double forward =
      2 * predicted * (h * h + h * v) + 2 * sequences * (h * h + 2 * h);  // pooler, two classes
  CHECK(flops_of(head_forward(head.in, table), table) == Approx(forward).epsilon(1e-12));
  CHECK(flops_of(head_backward(head.in, table, head.root), table) ==
        Approx(2 * forward).epsilon(1e-12));
}

TEST_CASE("head and embedding complete every gradient of BERT's root once") {
  const Head head;
  KernelTable table;
  std::multiset<std::uint32_t> marked;
  for (const Piece& piece :
       {head_backward(head.in, table, head.root), embedding_backward(head.in, table, head.root)})
    for (const Action& action : piece)
      if (action.kind == Action::Kind::gradient) marked.insert(action.index);
  CHECK(marked.size() == head.root.size());
  CHECK(std::set(marked.begin(), marked.end()).size() == head.root.size());
}

TEST_CASE("BERT's step is its model FLOPs and the pooler's") {
  const Head head;
  const StepProgram step = step_of(head.shape, head.plan, batch, head.software, precision);
  // Flash backward recomputes a product: half a forward more.
  const double tokens = 8 * 512, attention = 4.0 * tokens * 512 * 1024 * 24;
  const double pooler = 6.0 * 8 * (1024.0 * 1024 + 2 * 1024);
  CHECK(
      test::flops_of(step, 0) ==
      Approx(model_flops(head.shape, 8 * 512, 512).value + 0.5 * attention + pooler).epsilon(1e-9));
}
