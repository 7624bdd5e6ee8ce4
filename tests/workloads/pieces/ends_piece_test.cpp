#include "workloads/pieces/ends_piece.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/fixtures.hpp"
#include "tests/workloads/step_reading.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

const Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = 2048};
const Precision precision{};

/// HBM bytes of the head's passes that begin with "loss".
double loss_bytes(const Software& software, std::int64_t tensor) {
  const TransformerShape shape = llama_7b();
  ParallelPlan plan;
  plan.data = DataParallel::ddp;
  plan.tensor = tensor;
  const StepInputs in{shape, plan, batch, precision, software};
  const ParameterTensors root = stage_parameters(shape, plan, {}, true, 0).root;
  KernelTable table;
  double sum = 0;
  for (const Piece& piece : {head_forward(in, table), head_backward(in, table, root)})
    for (const Action& action : piece)
      if (launches(action) && table.kernels()[action.index].name.rfind("loss", 0) == 0)
        sum += static_cast<double>(table.kernels()[action.index].bytes.value);
  return sum;
}

}  // namespace

TEST_CASE("a loss of one kernel reads the logits forward, and reads and writes them backward") {
  Software fused = eager();
  fused.loss.fused = true;
  const double logits = 2048.0 * 32000;
  // Counted as read and write each way, as the compiler's are.
  CHECK(loss_bytes(fused, 1) == Approx(2 * 2 * 2 * logits).epsilon(1e-12));
  Software compiled = eager();
  compiled.fusion = Fusion::compiled;
  CHECK(loss_bytes(fused, 1) == loss_bytes(compiled, 1));
}

TEST_CASE("gathered logits cost every tensor rank the whole vocabulary") {
  Software gathered = eager();
  gathered.loss.gathered_logits = true;
  // Alone there is nothing to gather.
  CHECK(loss_bytes(gathered, 1) == loss_bytes(eager(), 1));
  // Beside the loss of one rank alone: logits put side by side 2 + 2 bytes each, a rank's own
  // columns of the gradient taken out 2 + 2.
  const double logits = 2048.0 * 32000;
  CHECK(loss_bytes(gathered, 4) ==
        Approx(loss_bytes(eager(), 1) + 4 * logits + 4 * logits / 4).epsilon(1e-12));
}
