#include "workloads/pieces/context_piece.hpp"

#include <catch2/catch.hpp>

#include "tests/workloads/step_reading.hpp"
#include "workloads/memory/memory.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

constexpr auto every_exchange = {ContextExchange::ring, ContextExchange::all_gather,
                                 ContextExchange::all_to_all};

ParallelPlan shared_sequences(std::int64_t context) {
  ParallelPlan plan = plan_of(DataParallel::zero3, 4 / context);
  plan.context = context;
  return plan;
}

Software with(ContextExchange exchange) {
  Software software = fused();
  software.data.flat_parameters = FlatParameters::fsdp2;
  software.attention.exchange = exchange;
  return software;
}

StepProgram step_with(std::int64_t context, ContextExchange exchange,
                      const TransformerShape& shape = llama_7b()) {
  return step_of(shape, shared_sequences(context), two, with(exchange));
}

double attention_flops(const StepProgram& step) {
  double sum = 0.0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].heads > 0)
      sum += step.kernels[i.arg].flops.value;
  return sum;
}

std::int64_t sum_with_prefix(const std::map<std::string, std::int64_t>& bytes,
                             const std::string& prefix) {
  std::int64_t sum = 0;
  for (const auto& [name, value] : bytes)
    if (name.starts_with(prefix)) sum += value;
  return sum;
}

constexpr std::int64_t layers = 32;
/// K or V of the whole micro-batch: b s h numbers of 2 bytes.
constexpr std::int64_t keys = 2 * 2 * 4096 * 4096;

}  // namespace

TEST_CASE("c ranks share the attention of a sequence evenly, however they exchange") {
  for (const bool causal : {true, false}) {
    TransformerShape shape = llama_7b();
    if (!causal) shape.objective = Objective::masked;
    const double alone = attention_flops(step_with(1, ContextExchange::ring, shape));
    REQUIRE(alone > 0.0);
    for (const ContextExchange exchange : every_exchange)
      for (const std::int64_t c : {2, 4}) {
        const double shared = attention_flops(step_with(c, exchange, shape));
        CHECK(shared * static_cast<double>(c) == Approx(alone).epsilon(1e-12));
      }
  }
}

TEST_CASE("everything else of a layer works on s / c tokens") {
  for (const ContextExchange exchange : every_exchange) {
    const StepProgram one = step_with(1, exchange), four = step_with(4, exchange);
    CHECK(flops_of(four, 0) * 4 == Approx(flops_of(one, 0)).epsilon(1e-12));
    CHECK(bytes_of_kernels(four, "layer.mlp.swiglu") * 4 ==
          bytes_of_kernels(one, "layer.mlp.swiglu"));
  }
}

TEST_CASE("the ring sends K and V c - 1 times forward, with gradients 2 (c - 1) times backward") {
  for (const std::int64_t c : {2, 4}) {
    const auto bytes = bytes_by_name(step_with(c, ContextExchange::ring));
    // A message is one rank's K and V.
    CHECK(bytes.at("context.forward") == layers * (c - 1) * 2 * keys / c);
    CHECK(bytes.at("context.backward") == layers * 2 * (c - 1) * 2 * keys / c);
  }
}

TEST_CASE("gathering moves whole K and V; heads are exchanged with q, k, v and back") {
  for (const std::int64_t c : {2, 4}) {
    const auto gathered = bytes_by_name(step_with(c, ContextExchange::all_gather));
    CHECK(sum_with_prefix(gathered, "context.forward") == layers * 2 * keys);
    CHECK(sum_with_prefix(gathered, "context.backward.gather") == layers * 2 * keys);
    CHECK(sum_with_prefix(gathered, "context.backward.scatter") == layers * 2 * keys);
    const auto exchanged = bytes_by_name(step_with(c, ContextExchange::all_to_all));
    CHECK(sum_with_prefix(exchanged, "context.") == 2 * layers * 4 * keys / c);
  }
}

TEST_CASE("exchanges of the ring run beside compute, the others on its lane") {
  for (const ContextExchange exchange : every_exchange) {
    const StepProgram step = step_with(2, exchange);
    for (const auto& i : step.roles[0].instructions)
      if (i.op == engine::Op::join && step.collectives[i.arg].name.starts_with("context."))
        CHECK((i.lane == compute) == (exchange != ContextExchange::ring));
  }
}

TEST_CASE("gradients are summed over data x context") {
  const StepProgram step = step_with(2, ContextExchange::ring);
  const StepProgram flat =
      step_of(llama_7b(), plan_of(DataParallel::zero3, 4), two, with(ContextExchange::ring));
  CHECK(bytes_by_name(step).at("layer.reduce") == bytes_by_name(flat).at("layer.reduce"));
  CHECK(groups(shared_sequences(2), GroupKind::data) ==
        groups(plan_of(DataParallel::zero3, 4), GroupKind::data));
}

TEST_CASE("heads that do not divide by the context degree are refused for all_to_all alone") {
  ParallelPlan plan = shared_sequences(4);
  plan.tensor = 16;  // leaves two heads
  CHECK_THROWS_AS(check(llama_7b(), plan, with(ContextExchange::all_to_all), "here"), InputError);
  CHECK_NOTHROW(check(llama_7b(), plan, with(ContextExchange::ring), "here"));
}

// Activations within a layer's: with less of them the fullest moment comes a layer later.
TEST_CASE("sharing a sequence cuts activations, not states") {
  const auto part = [](std::int64_t c, const std::string& name) {
    for (const MemoryPart& p :
         memory_of_stage(llama_7b(), shared_sequences(c), two, {}, with(ContextExchange::ring), 0)
             .parts)
      if (p.name == name) return p.bytes.value;
    return std::int64_t{-1};
  };
  CHECK(static_cast<double>(part(4, "activations") * 4) ==
        Approx(static_cast<double>(part(1, "activations"))).epsilon(1.1 / 32));
  CHECK(part(4, "optimizer") == part(1, "optimizer"));
}
