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

namespace {

/// FLOPs of the head's products, forward and backward.
double head_flops(LossForm form) {
  const TransformerShape shape = llama_7b();
  Software software = eager();
  software.loss.form = form;
  ParallelPlan plan;
  plan.data = DataParallel::ddp;
  const StepInputs in{shape, plan, batch, precision, software};
  const ParameterTensors root = stage_parameters(shape, plan, {}, true, 0).root;
  KernelTable table;
  double sum = 0;
  for (const Piece& piece : {head_forward(in, table), head_backward(in, table, root)})
    for (const Action& action : piece)
      if (launches(action)) sum += table.kernels()[action.index].flops.value;
  return sum;
}

}  // namespace

TEST_CASE("a loss in parts has the same products, and checkpointed the head's forward once more") {
  const double product = 2.0 * 2048 * 4096 * 32000;
  CHECK(head_flops(LossForm::whole) == Approx(3 * product));
  CHECK(head_flops(LossForm::chunks) == Approx(3 * product));
  CHECK(head_flops(LossForm::fused_linear) == Approx(3 * product));
  CHECK(head_flops(LossForm::checkpointed) == Approx(4 * product));
}

// Liger: the next power of two of T / ceil(V / h) (ops/fused_linear_cross_entropy.py).
TEST_CASE("parts of a loss are as long as their software makes them") {
  const TransformerShape shape = llama_7b();
  const ParallelPlan plan;
  const auto parts = [&](LossForm form, std::int64_t tokens) {
    Software software = eager();
    software.loss.form = form;
    const Batch of{.micro_batch = 1, .micro_batches = 1, .sequence = tokens};
    const LossParts out = loss_parts({shape, plan, of, precision, software});
    return std::pair{out.count, out.tokens};
  };
  CHECK(parts(LossForm::whole, 4096) == std::pair<std::int64_t, std::int64_t>{1, 4096});
  CHECK(parts(LossForm::chunks, 4096) == std::pair<std::int64_t, std::int64_t>{8, 512});
  CHECK(parts(LossForm::checkpointed, 4096) == std::pair<std::int64_t, std::int64_t>{16, 256});
  CHECK(parts(LossForm::checkpointed, 100) == std::pair<std::int64_t, std::int64_t>{1, 100});
  // ceil(32000 / 4096) = 8 parts of 512.
  CHECK(parts(LossForm::fused_linear, 4096) == std::pair<std::int64_t, std::int64_t>{8, 512});
  CHECK(parts(LossForm::fused_linear, 5000) == std::pair<std::int64_t, std::int64_t>{5, 1024});
}
