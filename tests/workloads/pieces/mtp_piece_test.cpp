// A module that predicts a further token: what the last stage holds for it, and whole steps of
// today's models against the closed form.
#include <catch2/catch.hpp>

#include <map>

#include "tests/workloads/step_reading.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/ends_piece.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

TransformerShape further(bool tied = false) {
  TransformerShape s = llama(4, 1024, 16, 4, 4096);
  s.qk_norm = true;
  s.mtp_layers = 1;
  s.tied_embeddings = tied;
  return s;
}
TransformerShape further_latent() {
  TransformerShape s = llama(4, 1024, 16, 16, 4096);
  s.latent = {.kv_rank = 256, .q_rank = 512, .nope = 64, .rope = 32, .value = 64};
  s.head_dim = 96;
  s.mtp_layers = 1;
  return s;
}

double products_of_step(const StepProgram& step) {
  double sum = 0;
  for (const engine::Program& role : step.roles)
    for (const auto& i : role.instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].family == KernelFamily::gemm)
        sum += step.kernels[i.arg].flops.value;
  return sum;
}

}  // namespace

TEST_CASE("parameters of all stages are the model's, and the last one's copy of the embedding") {
  for (const TransformerShape& s : {further(), further(true), further_latent()})
    for (const std::int64_t pipeline : {1, 2, 4})
      for (const std::int64_t tensor : {1, 2, 4}) {
        const ParallelPlan plan = plan_of(DataParallel::zero1, 1, tensor, pipeline);
        std::int64_t cut = 0, whole = 0;
        for (std::int64_t stage = 0; stage < pipeline; ++stage) {
          const StageParameters p = stage_parameters(s, plan, {}, false, stage);
          const std::int64_t replicated =
              p.over_layers(replicated_elements_of) + replicated_elements_of(p.root);
          whole += replicated;
          cut += p.elements() - replicated;
        }
        const std::int64_t copy = pipeline > 1 ? s.vocab * s.hidden : 0;
        CHECK(tensor * cut + whole == parameters(s) + copy);
      }
}

TEST_CASE("products of a step are three times the forward's, 2 FLOPs per weight and token") {
  for (const TransformerShape& s : {llama_1b(), further(), further(true), further_latent()})
    for (const std::int64_t pipeline : {1, 2})
      for (const Software& software : {eager(), fused()}) {
        const ParallelPlan plan = plan_of(DataParallel::zero1, 1, 1, pipeline);
        const Batch batch{.micro_batch = 1, .micro_batches = 2, .sequence = 512};
        const double tokens = 2 * 512;
        const double forward = 2 * static_cast<double>(products_per_token(s)) * tokens;
        CHECK(products_of_step(step_of(s, plan, batch, software)) ==
              Approx(3 * forward).epsilon(1e-12));
      }
}

TEST_CASE("with sequence parallelism tensor ranks share all products evenly") {
  for (const TransformerShape& s : {further(), further_latent()}) {
    ParallelPlan plan = plan_of(DataParallel::zero1, 1, 4, 2);
    plan.sequence_parallel = true;
    const Batch batch{.micro_batch = 1, .micro_batches = 2, .sequence = 512};
    const double forward = 2 * static_cast<double>(products_per_token(s)) * 2 * 512;
    CHECK(4 * products_of_step(step_of(s, plan, batch, fused())) ==
          Approx(3 * forward).epsilon(1e-12));
  }
}

TEST_CASE("the last stage completes each gradient once, the shared head's and embedding's too") {
  for (const TransformerShape& s : {further(), further(true), further_latent()})
    for (const std::int64_t pipeline : {1, 2})
      for (const Software& software : {eager(), fused()}) {
        const ParallelPlan plan = plan_of(DataParallel::zero1, 1, 1, pipeline);
        const Precision precision;
        const StepInputs in{s, plan, two, precision, software};
        const ParameterTensors root =
            stage_parameters(s, plan, precision, software.products.packed, pipeline - 1).root;
        KernelTable table;
        Piece piece = head_backward(in, table, root);
        if (pipeline == 1)
          for (const Action& action : embedding_backward(in, table, root)) piece.push_back(action);
        std::map<std::uint32_t, int> marks;
        for (const Action& action : piece)
          if (action.kind == Action::Kind::gradient) ++marks[action.index];
        for (std::uint32_t i = 0; i < root.size(); ++i) {
          INFO(root[i].name << ", " << pipeline << " stages");
          CHECK(marks[i] == 1);
        }
      }
}

TEST_CASE("first and last stage sum the gradient of the embedding that both hold") {
  const TransformerShape s = further();
  const StepProgram step = step_of(s, plan_of(DataParallel::zero1, 2, 1, 2), two, fused());
  for (const std::size_t role : {0U, 1U})
    CHECK(bytes_by_name(step, role).at("embedding.reduce") == 4 * s.vocab * s.hidden);
}

TEST_CASE("for a further token the last stage keeps a layer, both inputs, and logits again") {
  const TransformerShape with = further();
  TransformerShape without = with;
  without.mtp_layers = 0;
  const ParallelPlan plan;
  const Precision precision;
  const Software software = fused();
  const auto head = [&](const TransformerShape& s) {
    return ActivationMemory({s, plan, two, precision, software}).head();
  };
  const StepInputs in{without, plan, two, precision, software};
  const std::int64_t hidden = 2 * 2 * 4096 * 1024;
  const std::int64_t logits = head(without) - 2 * hidden;
  CHECK(head(with) - head(without) ==
        6 * hidden + ActivationMemory(in).layer_without_recompute() + logits);
}
