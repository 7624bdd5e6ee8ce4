#include "workloads/pieces/expert_piece.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/workloads/step_reading.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/pieces/activation_memory.hpp"
#include "workloads/pieces/layer_piece.hpp"

using namespace stepcast;
using namespace stepcast::workloads;
using namespace stepcast::workloads::test;

namespace {

TransformerShape of_experts(std::int64_t count, std::int64_t per_token, std::int64_t ffn,
                            std::int64_t layers = 2) {
  TransformerShape s = llama(layers, 1024, 16, 4, 4096);
  s.experts.count = count;
  s.experts.per_token = per_token;
  s.experts.ffn = ffn;
  return s;
}

Software with_experts(Software s = fused()) {
  s.experts.runs = true;
  return s;
}

struct Mesh {
  std::int64_t data = 1, tensor = 1, expert = 1, expert_tensor = 0;
};

ParallelPlan plan_of(const Mesh& mesh, DataParallel data = DataParallel::zero1) {
  ParallelPlan plan = test::plan_of(data, mesh.data, mesh.tensor);
  plan.sequence_parallel = mesh.tensor > 1;
  plan.expert.degree = mesh.expert;
  plan.expert.tensor = mesh.expert_tensor;
  plan.routing.kind = RoutingKind::balanced;
  return plan;
}

double flops_of_family(const StepProgram& step, KernelFamily family) {
  double sum = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::work && step.kernels[i.arg].family == family)
      sum += step.kernels[i.arg].flops.value;
  return sum;
}

std::int64_t ops_of(const StepProgram& step, engine::Op op) {
  return std::ranges::count(step.roles[0].instructions, op, &engine::Instruction::op);
}

/// Collectives of a group that the first role joins: their number and bytes.
struct Joined {
  std::int64_t calls = 0, bytes = 0;
};
Joined joined(const StepProgram& step, GroupKind group, const std::string& part = "",
              CollectiveKind kind = CollectiveKind::all_to_all, bool any_kind = true) {
  Joined out;
  for (const auto& i : step.roles[0].instructions) {
    if (i.op != engine::Op::join) continue;
    const Collective& c = step.collectives[i.arg];
    if (c.group != group || c.name.find(part) == std::string::npos) continue;
    if (!any_kind && c.kind != kind) continue;
    ++out.calls;
    out.bytes += c.bytes.value;
  }
  return out;
}

std::int64_t exchanges(const StepProgram& step) {
  std::int64_t sum = 0;
  for (const auto& i : step.roles[0].instructions)
    if (i.op == engine::Op::join) sum += step.collectives[i.arg].tokens.tokens > 0 ? 1 : 0;
  return sum;
}

std::int64_t expert_elements(const TransformerShape& s, const ParallelPlan& plan) {
  return stage_parameters(s, plan, {}, true, 0).over_layers(expert_elements_of);
}

constexpr Batch one{.micro_batch = 1, .micro_batches = 1, .sequence = 2048};
constexpr Batch three{.micro_batch = 1, .micro_batches = 3, .sequence = 2048};

}  // namespace

TEST_CASE("the work of a rank's experts does not depend on how they are shared out") {
  const TransformerShape s = of_experts(8, 2, 2048);
  const double tokens = 2048 / 2.0;  // of a tensor rank
  const double expected = 3 * 2 * 3 * 1024 * 2048 * 2 * tokens * static_cast<double>(s.layers);
  for (const std::int64_t e : {1, 2, 4, 8})
    for (const std::int64_t et : {1, 2}) {
      INFO("expert " << e << ", expert_tensor " << et);
      const StepProgram step = step_of(s, plan_of({8, 2, e, et}), one, with_experts());
      CHECK(flops_of_family(step, KernelFamily::grouped_gemm) == Approx(expected));
    }
}

TEST_CASE("one expert for every token is a dense MLP and a router") {
  TransformerShape dense = llama(2, 1024, 16, 4, 4096);
  const TransformerShape experts = of_experts(1, 1, 4096);
  for (const Software& software : {fused(), eager(), compiled()}) {
    const ParallelPlan plan = plan_of({4}, DataParallel::ddp);
    const StepProgram a = step_of(dense, plan, one, software);
    const StepProgram b = step_of(experts, plan, one, with_experts(software));
    const double router = 3 * 2.0 * 2048 * 1024 * static_cast<double>(dense.layers);
    CHECK(flops_of(b, 0) - router == Approx(flops_of(a, 0)));
  }
  CHECK(stage_parameters(experts, {}, {}, true, 0).elements() ==
        stage_parameters(dense, {}, {}, true, 0).elements() + 2 * 1024);
}

TEST_CASE("experts without a gate do two thirds of the work, and hold as much less") {
  const TransformerShape gate = of_experts(8, 2, 2048);
  TransformerShape none = gate;
  none.activation = Activation::gelu;
  for (const Software& software : {with_experts(), with_experts(eager()), with_experts(compiled())})
    for (const Mesh& mesh : {Mesh{8, 1, 1}, Mesh{8, 1, 8}, Mesh{8, 2, 4, 2}}) {
      const ParallelPlan plan = plan_of(mesh);
      const auto work = [&](const TransformerShape& s) {
        return flops_of_family(step_of(s, plan, one, software), KernelFamily::grouped_gemm);
      };
      CHECK(3 * work(none) == Approx(2 * work(gate)));
      CHECK(3 * expert_elements(none, plan) == 2 * expert_elements(gate, plan));
    }
}

TEST_CASE("Megatron weighs rows of GELU in fp32, in kernels of their own") {
  TransformerShape s = of_experts(8, 2, 2048, 1);
  const std::int64_t f = 2 * 2 * 2048 * std::int64_t{2048};  // rows of 16 bits
  const auto bytes = [&] {
    const StepProgram step = step_of(s, plan_of({8, 1, 8}), one, with_experts());
    std::int64_t sum = 0;
    for (const auto& i : step.roles[0].instructions)
      if (i.op == engine::Op::work &&
          step.kernels[i.arg].name.find("layer.experts.") != std::string::npos &&
          (step.kernels[i.arg].name.find("lu") != std::string::npos))
        sum += step.kernels[i.arg].bytes.value;
    return sum;
  };
  const std::int64_t weights = 4 * 2 * 2048;  // of rows, fp32
  CHECK(bytes() == (3 + 5) * f + 3 * weights);
  s.activation = Activation::gelu;
  // GELU 2, weigh 3, cast 3; cast 3, weigh 4, cast 3, product 5, sum 2, GELU 3.
  CHECK(bytes() == (8 + 20) * f + 3 * weights);
}

TEST_CASE("the experts of all ranks are the model's, times their copies") {
  const TransformerShape s = of_experts(16, 4, 512, 4);
  const std::int64_t model = s.layers * 16 * 3 * 1024 * 512;
  for (const Mesh& mesh : {Mesh{16, 1, 1, 1}, Mesh{16, 1, 8, 1}, Mesh{8, 2, 4, 2},
                           Mesh{8, 2, 16, 1}, Mesh{4, 4, 2, 4}}) {
    const ParallelPlan plan = plan_of(mesh);
    CHECK(plan.ranks() * expert_elements(s, plan) == model * plan.expert_copies());
  }
}

TEST_CASE("every gradient of a layer of experts is marked once, with every software") {
  TransformerShape s = of_experts(8, 2, 512);
  s.experts.biases = true;
  s.experts.shared_ffn = 1024;
  s.experts.shared_gate = true;
  const LayerKind kind{{.mlp = Mlp::experts}};
  for (const Software& software : {with_experts(), with_experts(eager()), with_experts(compiled())})
    for (const auto& [e, activation] :
         {std::pair{1, Activation::swiglu}, {4, Activation::swiglu}, {4, Activation::gelu}}) {
      s.activation = activation;
      const ParallelPlan plan = plan_of({8, 2, e, 1});
      const Precision precision;
      const StepInputs in{s, plan, one, precision, software};
      const ParameterTensors unit = layer_tensors(s, plan, software.products.packed, kind);
      KernelTable table;
      std::vector<int> marks(unit.size(), 0);
      for (const Action& action : layer_backward(in, table, unit, kind))
        if (action.kind == Action::Kind::gradient) ++marks[action.index];
      CHECK(std::ranges::count(marks, 1) == std::ssize(marks));
    }
}

TEST_CASE(
    "the bias of the second product is weighed in fp32 by operators: 28 and 40 bytes a number") {
  TransformerShape s = of_experts(8, 2, 512);
  s.experts.biases = true;
  const auto bytes = [&](const Software& software) {
    const StepProgram step = step_of(s, plan_of({8, 1, 4}), three, with_experts(software));
    std::int64_t sum = 0;
    for (const auto& i : step.roles[0].instructions)
      if (i.op == engine::Op::work && step.kernels[i.arg].name.starts_with("layer.experts.bias."))
        sum += step.kernels[i.arg].bytes.value;
    return sum;
  };
  const std::int64_t rows = 2048 * 2;
  CHECK(bytes(fused()) == (28 + 40) * rows * 1024 * s.layers * 3);
  CHECK(bytes(eager()) == 0);  // weighs what comes out of the product, its bias with it
}

TEST_CASE("a layer exchanges rows four times, and twice more where it is recomputed") {
  const TransformerShape s = of_experts(8, 2, 512);
  ParallelPlan plan = plan_of({8, 1, 8});
  const std::int64_t row = 2 * 1024, sent = 2048 * 2;
  StepProgram step = step_of(s, plan, three, with_experts());
  CHECK(exchanges(step) == 4 * s.layers * 3);
  for (const char* name :
       {"dispatch.forward", "combine.forward", "dispatch.backward", "combine.backward"}) {
    const auto rows = joined(step, GroupKind::expert, std::string("layer.experts.") + name,
                             CollectiveKind::all_to_all, false);
    const bool weights = std::string(name).starts_with("dispatch");
    CHECK(rows.bytes == 3 * s.layers * (sent * row + (weights ? 4 * sent : 0)));
  }
  plan.recompute = Recompute::full;
  CHECK(exchanges(step_of(s, plan, three, with_experts())) == 6 * s.layers * 3);
  plan.recompute = Recompute::none;
  plan.recompute_modules = {LayerModule::experts};
  CHECK(exchanges(step_of(s, plan, three, with_experts())) == 6 * s.layers * 3);
  plan.recompute_modules = {LayerModule::expert_activation};
  step = step_of(s, plan, three, with_experts());
  CHECK(exchanges(step) == 4 * s.layers * 3);
  plan.recompute_modules = {};
  const auto activation = [&](const StepProgram& of) {
    return std::ranges::count_if(of.roles[0].instructions, [&](const auto& i) {
      return i.op == engine::Op::work && of.kernels[i.arg].name == "layer.experts.swiglu";
    });
  };
  CHECK(activation(step) == 2 * activation(step_of(s, plan, three, with_experts())));
}

TEST_CASE("bytes of the exchange are those of rows that a permutation sends") {
  // Eight ranks of 64 tokens, two of sixteen experts each, token by token.
  constexpr std::int64_t ranks = 8, tokens = 64, k = 3, experts = 16;
  std::mt19937 random(3);
  std::vector<std::int64_t> sent(ranks, 0), taken(ranks, 0);
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<std::int64_t> order(experts);
      for (std::int64_t i = 0; i < experts; ++i) order[static_cast<std::size_t>(i)] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (std::int64_t i = 0; i < k; ++i) {
        ++sent[static_cast<std::size_t>(rank)];
        ++taken[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] / 2)];
      }
    }
  TransformerShape s = of_experts(experts, k, 512, 1);
  const ParallelPlan plan = plan_of({ranks, 1, ranks});
  const Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = tokens};
  const StepProgram step = step_of(s, plan, batch, with_experts());
  const std::int64_t rows = joined(step, GroupKind::expert, "combine.forward").bytes / (2 * 1024);
  CHECK(std::ranges::count(sent, rows) == ranks);
  std::int64_t all = 0;
  for (const std::int64_t n : taken) all += n;
  CHECK(rows * ranks == all);
}

TEST_CASE("the host waits once in each layer and forward, unless experts are padded") {
  const TransformerShape s = of_experts(8, 2, 512);
  ParallelPlan plan = plan_of({8, 1, 8});
  const auto waits = [&](const ParallelPlan& p, const Software& software = with_experts()) {
    return ops_of(step_of(s, p, three, software), engine::Op::host_wait);
  };
  const std::int64_t dropless = waits(plan);
  Software silent = with_experts();
  silent.experts.host_counts = false;
  const std::int64_t without = waits(plan, silent);
  CHECK(dropless - without == s.layers * 3);
  plan.expert.capacity_factor = 1.0;
  CHECK(waits(plan) == dropless);
  plan.expert.pad_to_capacity = true;
  CHECK(waits(plan) == without);
  for (const Dispatcher d :
       {Dispatcher::all_gather, Dispatcher::node_aware, Dispatcher::nvlink_domain}) {
    ParallelPlan other = plan_of({8, 1, 8});
    other.expert.dispatcher = d;
    CHECK(waits(other) == dropless);
  }
}

TEST_CASE("padded experts take and send as many rows whatever the routing") {
  const TransformerShape s = of_experts(8, 2, 512, 1);
  ParallelPlan plan = plan_of({8, 1, 8});
  plan.expert.capacity_factor = 1.25;
  plan.expert.pad_to_capacity = true;
  const std::int64_t room = 640;  // ceil(2048 x 2 / 8 x 1.25)
  for (const RoutingKind kind : {RoutingKind::balanced, RoutingKind::uniform}) {
    plan.routing.kind = kind;
    const StepProgram step = step_of(s, plan, one, with_experts());
    CHECK(joined(step, GroupKind::expert, "combine.forward").bytes == room * 8 * 2 * 1024);
    CHECK(flops_of_family(step, KernelFamily::grouped_gemm) ==
          Approx(3 * 2.0 * 3 * 1024 * 512 * room * 8));
  }
}

TEST_CASE("the fullest rank decides what all compute") {
  const TransformerShape s = of_experts(8, 2, 512);
  ParallelPlan plan = plan_of({8, 1, 8});
  const auto flops = [&] {
    return flops_of_family(step_of(s, plan, one, with_experts()), KernelFamily::grouped_gemm);
  };
  const double balanced = flops();
  plan.routing.kind = RoutingKind::max_violation;
  plan.routing.max_violation = 0.5;
  CHECK(flops() == Approx(1.5 * balanced).epsilon(1e-3));
  plan.routing.kind = RoutingKind::counts;
  plan.routing.counts = {2, 1, 1, 1, 1, 1, 1, 0};
  CHECK(flops() == Approx(2 * balanced).epsilon(1e-3));
}

TEST_CASE("a loop over experts costs the host a launch for each, one launch one") {
  const TransformerShape s = of_experts(32, 2, 512, 1);
  const ParallelPlan plan = plan_of({8, 1, 4}, DataParallel::ddp);
  Software loop = with_experts(), one_launch = with_experts();
  one_launch.experts.products = GroupedProducts::one_launch;
  const std::int64_t more = ops_of(step_of(s, plan, one, loop), engine::Op::host_work) -
                            ops_of(step_of(s, plan, one, one_launch), engine::Op::host_work);
  CHECK(more == 6 * (7 + 16));  // two products, forward and two backward: eight experts each
}

TEST_CASE("experts are reduced and gathered among their copies, the rest among all") {
  const TransformerShape s = of_experts(8, 2, 512);
  for (const std::int64_t e : {2, 4, 8}) {
    const ParallelPlan plan = plan_of({8, 1, e});
    const StepProgram step = step_of(s, plan, one, with_experts());
    const std::int64_t experts = expert_elements(s, plan);
    const std::int64_t all = stage_parameters(s, plan, {}, true, 0).elements();
    const auto bytes = [&](GroupKind group, const char* name) {
      return joined(step, group, name).bytes;
    };
    CHECK(bytes(GroupKind::data, "bucket.reduce") == 4 * (all - experts));
    CHECK(bytes(GroupKind::data, "parameters.gather") == 2 * (all - experts));
    CHECK(bytes(GroupKind::expert_data, "bucket.reduce") == (e < 8 ? 4 * experts : 0));
    CHECK(bytes(GroupKind::expert_data, "parameters.gather") == (e < 8 ? 2 * experts : 0));
  }
}

TEST_CASE("experts keep 6 + 12 / copies bytes a parameter") {
  const TransformerShape s = of_experts(64, 2, 2048, 2);
  const auto bytes = [&](const ParallelPlan& plan) {
    double sum = 0;
    for (const MemoryPart& part : memory_of_stage(s, plan, one, {}, with_experts(), 0).parts)
      if (part.name == "parameters" || part.name == "gradients" || part.name == "optimizer")
        sum += static_cast<double>(part.bytes.value);
    return sum;
  };
  for (const std::int64_t e : {8, 16, 32}) {
    const ParallelPlan plan = plan_of({32, 1, e});
    const auto experts = static_cast<double>(expert_elements(s, plan));
    const auto all = static_cast<double>(stage_parameters(s, plan, {}, true, 0).elements());
    const double copies = 32.0 / static_cast<double>(e);
    CHECK(bytes(plan) ==
          Approx((all - experts) * (6 + 12.0 / 32) + experts * (6 + 12 / copies)).epsilon(1e-3));
  }
}

TEST_CASE("a layer of DeepSeek-V3 keeps rows, gate, up and product of its experts") {
  TransformerShape s = llama(4, 7168, 128, 128, 18432);
  s.experts.count = 256;
  s.experts.per_token = 8;
  s.experts.ffn = 2048;
  const Batch batch{.micro_batch = 1, .micro_batches = 1, .sequence = 4096};
  const Precision precision;
  const Software software = with_experts();
  const auto kept = [&](const ParallelPlan& plan, bool experts) {
    const LayerKind kind{{.mlp = experts ? Mlp::experts : Mlp::dense}};
    return ActivationMemory({s, plan, batch, precision, software}, kind).layer_without_recompute();
  };
  ParallelPlan plan = plan_of({64, 1, 64});
  TransformerShape none = s;
  none.experts = {};
  const std::int64_t mlp = 3 * 2 * 4096 * std::int64_t{18432};
  const double mb = 1e-6 * static_cast<double>(kept(plan, true) - kept(plan, false) + mlp);
  CHECK(mb == Approx(470 + 268 + 134 + 10).margin(2));  // and maps, probabilities, row maps
  const std::int64_t whole = kept(plan, true);
  plan.recompute_modules = {LayerModule::expert_activation};
  CHECK(1e-6 * static_cast<double>(whole - kept(plan, true)) == Approx(134).margin(1));
  plan.recompute_modules = {LayerModule::experts};
  CHECK(1e-6 * static_cast<double>(whole - kept(plan, true)) == Approx(882).margin(2));
  // Norms before experts stand alone; those before a dense MLP are inside its product.
  plan.recompute_modules = {LayerModule::norm};
  CHECK(whole - kept(plan, true) == 2 * 4096 * std::int64_t{7168});
  const std::int64_t dense = kept(plan_of({64, 1, 64}), false);
  CHECK(kept(plan, false) == dense);
  // Without a gate: GELU's input and output, and that weighed: no wider than gate, up and product.
  s.activation = Activation::gelu;
  CHECK(kept(plan_of({64, 1, 64}), true) == whole);
}

TEST_CASE("shared experts run under the exchange on compute's lane") {
  TransformerShape s = of_experts(8, 2, 512);
  s.experts.shared_ffn = 1024;
  ParallelPlan plan = plan_of({8, 1, 8});
  const auto on_expert_lane = [&] {
    const StepProgram step = step_of(s, plan, one, with_experts());
    std::int64_t joins = 0;
    for (const auto& i : step.roles[0].instructions)
      joins += i.op == engine::Op::join && i.lane == expert_lane ? 1 : 0;
    return joins;
  };
  const StepProgram apart = step_of(s, plan, one, with_experts());
  CHECK(on_expert_lane() == 0);
  plan.expert.shared_overlap = true;
  CHECK(on_expert_lane() == joined(apart, GroupKind::expert).calls);
  const StepProgram beside = step_of(s, plan, one, with_experts());
  CHECK(flops_of(beside, 0) == Approx(flops_of(apart, 0)));
}

TEST_CASE("kernels that send each place one copy carry weights along, and forward in 8 bits") {
  const TransformerShape s = of_experts(8, 2, 512, 1);
  ParallelPlan plan = plan_of({8, 1, 8});
  plan.expert.dispatcher = Dispatcher::node_aware;
  plan.expert.dispatch_dtype = Dtype::fp8_block;
  plan.expert.exchange_sms = 24;
  const StepProgram step = step_of(s, plan, one, with_experts());
  CHECK(exchanges(step) == 4);
  for (const Collective& c : step.collectives) {
    if (c.tokens.tokens == 0) continue;
    const bool forward = c.name == "layer.experts.dispatch.forward";
    CHECK(c.tokens.row_bytes == (forward ? 1024 + 4 * 8 : 2048) + 16);
    CHECK(c.tokens.combine == (c.name == "layer.experts.combine.forward" ||
                               c.name == "layer.experts.dispatch.backward"));
    CHECK(c.tokens.tokens == 2048);
    CHECK(c.tokens.sms == 24);
    CHECK(c.bytes.value == 2048 * 2 * c.tokens.row_bytes);
  }
}

TEST_CASE("gathered tokens need no all-to-all") {
  const TransformerShape s = of_experts(8, 2, 512, 1);
  ParallelPlan plan = plan_of({8, 1, 4});
  plan.expert.dispatcher = Dispatcher::all_gather;
  const StepProgram step = step_of(s, plan, one, with_experts());
  CHECK(exchanges(step) == 0);
  CHECK(joined(step, GroupKind::expert, "layer.experts.dispatch").bytes == 2 * 4 * 2048 * 2 * 1024);
  CHECK(joined(step, GroupKind::expert, "layer.experts.combine").bytes == 2 * 4 * 2048 * 2 * 1024);
}

TEST_CASE("only layers of experts exchange tokens") {
  TransformerShape s = of_experts(8, 2, 512, 6);
  s.experts.dense_layers = 1;
  CHECK(exchanges(step_of(s, plan_of({8, 1, 8}), one, with_experts())) == 4 * 5);
  s.experts.dense_layers = 0;
  s.experts.every = 2;
  CHECK(exchanges(step_of(s, plan_of({8, 1, 8}), one, with_experts())) == 4 * 3);
}

TEST_CASE("a step of experts that repeats is the whole step") {
  TransformerShape s = of_experts(8, 2, 512, 8);
  s.experts.dense_layers = 1;
  s.experts.shared_ffn = 512;
  for (const bool beside : {false, true}) {
    ParallelPlan plan = plan_of({8, 1, 8});
    plan.pipeline = 4;
    plan.expert.shared_overlap = beside;
    const Batch batch{.micro_batch = 1, .micro_batches = 16, .sequence = 512};
    const StepProgram whole = make_step_program(s, plan, batch, {}, with_experts());
    const StepProgram folded = make_repeating_program(s, plan, batch, {}, with_experts());
    REQUIRE(whole.roles.size() == folded.roles.size());
    for (std::size_t r = 0; r < whole.roles.size(); ++r) {
      CHECK(engine::unrolled(folded.roles[r]).instructions == whole.roles[r].instructions);
      CHECK(folded.roles[r].instructions.size() < whole.roles[r].instructions.size());
    }
  }
}

TEST_CASE("sharded units gather and reduce experts among their copies") {
  const TransformerShape s = of_experts(8, 2, 512);
  const ParallelPlan plan = plan_of({8, 1, 4}, DataParallel::zero3);
  const StepProgram step = step_of(s, plan, one, with_experts(eager()));
  const std::int64_t experts =
      stage_parameters(s, plan, {}, false, 0).over_layers(expert_elements_of);
  const std::int64_t dense = stage_parameters(s, plan, {}, false, 0).elements() - experts;
  const auto root = elements_of(stage_parameters(s, plan, {}, false, 0).root);
  CHECK(joined(step, GroupKind::expert_data, "gather").bytes == 2 * 2 * experts);
  CHECK(joined(step, GroupKind::expert_data, "reduce").bytes == 4 * experts);
  CHECK(joined(step, GroupKind::data, "gather").bytes == 2 * (2 * dense - root));
  CHECK(joined(step, GroupKind::data, "reduce").bytes == 4 * dense);
}

TEST_CASE("biases that steer the choice are summed once a step, and spare the loss of balance") {
  TransformerShape s = of_experts(8, 2, 512, 4);
  s.experts.dense_layers = 1;
  const ParallelPlan plan = plan_of({8, 2, 8, 1});
  const StepProgram with_loss = step_of(s, plan, three, with_experts());
  CHECK(joined(with_loss, GroupKind::tensor, "layer.router.auxiliary").calls == 3 * 3);
  CHECK(joined(with_loss, GroupKind::data, "router.bias").calls == 0);
  s.experts.score_bias = true;
  const StepProgram with_bias = step_of(s, plan, three, with_experts());
  CHECK(joined(with_bias, GroupKind::tensor, "layer.router.auxiliary").calls == 0);
  CHECK(joined(with_bias, GroupKind::data, "router.bias").calls == 1);
  CHECK(joined(with_bias, GroupKind::data, "router.bias").bytes == 4 * 3 * 8);
}
