#include "workloads/pieces/expert_piece.hpp"

#include "workloads/pieces/adapter_piece.hpp"
#include "workloads/pieces/dispatch_piece.hpp"
#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/pieces/linear_piece.hpp"
#include "workloads/pieces/operand_piece.hpp"
#include "workloads/pieces/shared_expert_piece.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

const ExpertShape& shape(const PieceWriter& w) { return w.in().shape.experts; }
const ExpertSoftware& software(const PieceWriter& w) { return w.in().software.experts; }
/// Balancing by a loss beside the next token's, unless a bias steers the choice.
bool has_auxiliary_loss(const PieceWriter& w) { return !shape(w).score_bias; }

// ---- router

/// Logits of tokens and experts, 4 bytes each, out of one product in 16 bits (Megatron core
/// moe_utils.py, router_gating_linear()).
Kernel gate(const PieceWriter& w, const ExpertSizes& s, const char* name, std::int64_t m,
            std::int64_t n, std::int64_t k, std::int64_t written) {
  Kernel kernel;
  kernel.name = std::string("layer.router.") + name;
  kernel.family = gemm;
  kernel.dtype = w.in().precision.compute;
  kernel.m = m, kernel.n = n, kernel.k = k;
  const std::int64_t macs = m * n * k;
  kernel.flops = Flops(2.0 * static_cast<double>(macs));
  const std::int64_t all = m * k + k * n + m * n;
  kernel.bytes = Bytes(s.element * (all - m * n) + written * m * n);
  return kernel;
}

/// torch operators on scores (fp32) and on what is chosen of them: bytes of each.
std::vector<std::pair<const char*, std::int64_t>> score_operators(const PieceWriter& w,
                                                                  const ExpertSizes& s) {
  const std::int64_t scores = s.tokens * s.all, chosen = s.tokens * s.per_token;
  std::vector<std::pair<const char*, std::int64_t>> out{{"score", 8 * scores}};
  if (shape(w).score_bias) out.emplace_back("bias", 8 * scores);
  if (shape(w).groups > 1) {
    const std::int64_t groups = s.tokens * shape(w).groups;
    for (const auto& [name, bytes] : {std::pair{"groups.top", 4 * scores + 24 * groups},
                                      {"groups.sum", 12 * groups},
                                      {"groups.choose", 16 * groups},
                                      {"groups.mask", 5 * groups},
                                      {"groups.apply", 9 * scores}})
      out.emplace_back(name, bytes);
  }
  for (const auto& [name, bytes] : {std::pair{"top", 4 * scores + 12 * chosen},
                                    {"gather", 16 * chosen},
                                    {"sum", 4 * chosen + 4 * s.tokens},
                                    {"normalise", 8 * chosen},
                                    {"weights.clear", 4 * scores},
                                    {"weights", 16 * chosen},
                                    {"map.clear", scores},
                                    {"map", 9 * chosen}})
    out.emplace_back(name, bytes);
  return out;
}

/// Tokens of each expert summed over the ranks that share a sequence, and the loss of them.
void auxiliary_loss(PieceWriter& w, const ExpertSizes& s) {
  const bool fused = software(w).fused_router;
  w.pass("layer.router.auxiliary.score", router, 8 * s.tokens * s.all);
  w.pass("layer.router.auxiliary.count", router, 5 * s.tokens * s.all);
  if (w.split())
    w.collective("layer.router.auxiliary", CollectiveKind::all_reduce, Dtype::fp32, 4 * s.all);
  if (w.in().plan.context > 1)
    w.context_collective("layer.router.auxiliary", CollectiveKind::all_reduce, 4 * s.all);
  for (int i = 0; i < (fused ? 1 : 4); ++i)
    w.pass("layer.router.auxiliary.loss", router, 8 * s.all);
}

void router_forward(PieceWriter& w, const ExpertSizes& s) {
  w.module();
  w.kernel(gate(w, s, "forward", s.tokens, s.all, s.model, 4));
  if (software(w).fused_router) {
    w.pass("layer.router.scores", router, 9 * s.tokens * s.all);
  } else {
    for (const auto& [name, bytes] : score_operators(w, s))
      w.pass(std::string("layer.router.") + name, router, bytes);
  }
  if (has_auxiliary_loss(w)) auxiliary_loss(w, s);
}

void router_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit) {
  const std::int64_t scores = s.tokens * s.all, chosen = s.tokens * s.per_token;
  if (has_auxiliary_loss(w)) w.pass("layer.router.auxiliary.backward", router, 12 * scores);
  if (software(w).fused_router) {
    w.pass("layer.router.scores.backward", router, 12 * scores);
  } else {
    for (const auto& [name, bytes] : {std::pair{"weights.backward", 16 * chosen},
                                      {"normalise.backward", 12 * chosen},
                                      {"sum.backward", 8 * chosen},
                                      {"gather.clear", 4 * scores},
                                      {"gather.backward", 16 * chosen},
                                      {"score.backward", 12 * scores}})
      w.pass(std::string("layer.router.") + name, router, bytes);
  }
  w.pass("layer.router.cast", router, (4 + s.element) * scores);
  w.kernel(gate(w, s, "dgrad", s.tokens, s.model, s.all, s.element));
  if (w.frozen()) return;
  w.weight_gradient("layer.router.wgrad", s.all, s.model, s.tokens);
  w.gradient(unit, "router");
  if (!shape(w).biases) return;
  w.pass("layer.router.bias.gradient", reduction, s.element * scores);
  w.gradient(unit, "router.bias");
}

// ---- products of a rank's experts

struct ExpertProduct {
  const char* name;
  std::int64_t in, out;
};

std::vector<ExpertProduct> up_products(const PieceWriter& w, const ExpertSizes& s) {
  if (!gated(w.in().shape)) return {{"up", s.hidden, s.ffn}};
  if (w.packed()) return {{"gate_up", s.hidden, 2 * s.ffn}};
  return {{"gate", s.hidden, s.ffn}, {"up", s.hidden, s.ffn}};
}
ExpertProduct down_product(const ExpertSizes& s) { return {"down", s.ffn, s.hidden}; }

/// Rows are weighed before the second product, so its bias is weighed by itself: operators of torch
/// in fp32 over all rows (Megatron core experts.py, TEGroupedMLP._apply_bias(), read 2026-11).
bool weighs_bias(const PieceWriter& w, const ExpertProduct& p, const ExpertSizes& s) {
  return w.fused() && shape(w).biases && p.name == std::string_view(down_product(s).name);
}

std::string name_of(const ExpertProduct& p) { return std::string("layer.experts.") + p.name; }

/// Bytes of an operand as products read it.
std::int64_t operand_bytes(const PieceWriter& w, std::int64_t elements) {
  if (!w.low()) return w.sizes().element * elements;
  return copy_bytes(w.in().precision, OperandRole::input, elements);
}

/// Quantizes the rows of all experts. Where products are a loop, each expert's by itself, but for
/// the recipes that Transformer Engine quantizes in one kernel (pytorch/csrc/extensions/cast.cpp:
/// 894-943 and 2040-2056: delayed scaling, nvfp4).
void quantize_rows(PieceWriter& w, const ExpertSizes& s, const std::string& name, OperandRole role,
                   OperandCopies copies, std::int64_t width) {
  if (!w.low()) return;
  const Precision& p = w.in().precision;
  write_casts(w, name, role, copies, s.rows * width);
  const bool grouped = p.recipe == Recipe::fp8_delayed || p.recipe == Recipe::nvfp4 ||
                       software(w).products != GroupedProducts::loop;
  if (grouped || s.experts == 1) return;
  const auto kernels = std::ssize(cast_passes(p, role, copies, s.rows * width));
  w.host_launches((s.experts - 1) * kernels, 0);
}
/// An input of products: the copy that forward reads, and that of wgrad unless it is made then.
void quantize_input(PieceWriter& w, const ExpertSizes& s, const ExpertProduct& p) {
  quantize_rows(w, s, name_of(p) + ".input", OperandRole::input,
                {.columns = !quantizes_again(w.in().software)}, p.in);
}

/// `batch` products over R rows in all: reads every expert's weight. As a loop each product is a
/// call of its own, and four streams wait for the main one and it for them, with 16 calls on events
/// (Transformer Engine common/gemm/cublaslt_gemm.cu:977-1065).
void grouped(PieceWriter& w, const ExpertSizes& s, Kernel kernel, std::int64_t bytes) {
  kernel.family = grouped_gemm;
  kernel.dtype = w.low() ? product_dtype(w.in().precision) : w.in().precision.compute;
  kernel.batch = s.experts;
  kernel.one_launch = software(w).products == GroupedProducts::one_launch;
  kernel.bytes = Bytes(bytes);
  w.kernel(std::move(kernel));
  if (software(w).products != GroupedProducts::loop || s.experts == 1) return;
  constexpr int events = 16;
  w.host_launches(s.experts - 1, events);
}

/// C[rows, out] = A[rows, in] B[in, out] of each expert, or with the weight turned round.
void rows_product(PieceWriter& w, const ExpertSizes& s, const std::string& name, std::int64_t out,
                  std::int64_t in) {
  w.module();
  Kernel kernel;
  kernel.name = name;
  kernel.m = s.rows_of_expert(), kernel.n = out, kernel.k = in;
  kernel.flops = Flops(2.0 * static_cast<double>(s.rows) * static_cast<double>(out * in));
  grouped(w, s, kernel,
          operand_bytes(w, s.rows * in) + operand_bytes(w, s.experts * in * out) +
              s.element * s.rows * out);
}

/// C[out, in] over the rows of each expert; added to fp32 sums where products do that.
void weight_product(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit,
                    const ExpertProduct& p) {
  if (w.frozen()) return;
  w.for_weights(true);
  Kernel kernel;
  kernel.name = name_of(p) + ".wgrad";
  kernel.m = p.out, kernel.n = p.in, kernel.k = s.rows_of_expert();
  kernel.flops = Flops(2.0 * static_cast<double>(s.rows) * static_cast<double>(p.out * p.in));
  kernel.accumulate = w.fused() && !w.in().sharded() && w.in().software.products.accumulate;
  const std::int64_t weights = s.experts * p.in * p.out;
  grouped(w, s, kernel,
          operand_bytes(w, s.rows * p.in) + operand_bytes(w, s.rows * p.out) +
              (kernel.accumulate ? 8 : s.element) * weights);
  const std::string tensor = std::string("experts.") + p.name;
  w.gradients(unit, tensor);
  if (shape(w).biases) {
    // That of what weighs its bias comes with the gradients of the weights.
    if (!weighs_bias(w, p, s))
      w.pass(name_of(p) + ".bias.gradient", reduction, s.element * s.rows * p.out);
    w.gradient(unit, tensor + ".bias");
  }
  w.for_weights(false);
}

/// By which the adapters beside a product are found.
Linear beside(const ExpertProduct& p) {
  Linear out;
  out.tensor = std::string("experts.") + p.name;
  return out;
}
void product_forward(PieceWriter& w, const ExpertSizes& s, const ExpertProduct& p) {
  rows_product(w, s, name_of(p) + ".forward", p.out, p.in);
  write_adapters_forward(w, beside(p));
}

void up_forward(PieceWriter& w, const ExpertSizes& s) {
  quantize_input(w, s, up_products(w, s).front());
  for (const ExpertProduct& p : up_products(w, s)) product_forward(w, s, p);
}

bool weighs_output(const PieceWriter& w) { return !w.fused() && !software(w).weighed_wide; }
/// Without a gate Megatron has no kernel that weighs rows as well: GELU 2F, times the weight in
/// fp32, F + 2F, and back to 16 bits, 2F + F (core moe/experts.py bias_act_func(), read 2026-11).
void gateless_forward(PieceWriter& w, const ExpertSizes& s) {
  const std::int64_t f = s.inner_bytes(), wide = s.wide_inner_bytes();
  w.pass("layer.experts.gelu", activation, 2 * f);
  if (!w.fused()) return;
  w.pass_fp32("layer.experts.gelu.weigh", pointwise, f + wide + 4 * s.rows);
  w.pass("layer.experts.gelu.cast", pointwise, wide + f);
}

/// The gradient in fp32, of the product and cast for GELU's; that of the weights is a product with
/// what GELU left and a sum over each row.
void gateless_backward(PieceWriter& w, const ExpertSizes& s) {
  const std::int64_t f = s.inner_bytes(), wide = s.wide_inner_bytes();
  if (w.fused()) {
    w.pass("layer.experts.gelu.cast.backward", pointwise, f + wide);
    w.pass_fp32("layer.experts.gelu.weigh.backward", pointwise, 2 * wide + 4 * s.rows);
    w.pass("layer.experts.gelu.weigh.cast", pointwise, wide + f);
    w.pass_fp32("layer.experts.gelu.weights", pointwise, 2 * wide + f);
    w.pass_fp32("layer.experts.gelu.weights.sum", reduction, wide + 4 * s.rows);
  }
  w.pass("layer.experts.gelu.backward", activation, 3 * f);
}

/// SwiGLU times the weight of the row, so that the second product's output is not kept: one kernel,
/// read 2F and the weights, write F. Operators and compiled code weigh the rows that come out.
void activation_forward(PieceWriter& w, const ExpertSizes& s) {
  if (!gated(w.in().shape)) return gateless_forward(w, s);
  const std::int64_t f = s.inner_bytes();
  if (!w.eager()) return w.pass("layer.experts.swiglu", activation, 3 * f + 4 * s.rows);
  w.pass("layer.experts.silu", pointwise, 2 * f);
  w.pass("layer.experts.multiply", pointwise, 3 * f);
}

/// One kernel an expert.
void expert_pass(PieceWriter& w, const ExpertSizes& s, const char* name, KernelFamily family,
                 std::int64_t bytes) {
  w.pass(name, family, bytes);
  w.host_launches(s.experts - 1, 0);
}

/// The product t of each expert becomes t + b p, joined again and rounded.
void weigh_bias(PieceWriter& w, const ExpertSizes& s) {
  const std::int64_t all = s.rows * s.hidden;
  expert_pass(w, s, "layer.experts.bias.weigh", pointwise, 4 * all);
  expert_pass(w, s, "layer.experts.bias.add", pointwise, (s.element + 8) * all);
  w.pass("layer.experts.bias.join", copy, 8 * all);
  w.pass("layer.experts.bias.round", copy, (4 + s.element) * all);
}

/// Gradients of t, and as products and their sums of b over the rows and of p over a row.
void weigh_bias_backward(PieceWriter& w, const ExpertSizes& s) {
  const std::int64_t all = s.rows * s.hidden;
  w.pass("layer.experts.bias.round.backward", copy, (4 + s.element) * all);
  expert_pass(w, s, "layer.experts.bias.add.backward", copy, (4 + s.element) * all);
  for (const auto& [product, sum] :
       {std::pair{"layer.experts.bias.by_weight", "layer.experts.bias.gradient"},
        {"layer.experts.bias.by_bias", "layer.experts.bias.weight_gradient"}}) {
    if (w.frozen() && sum == std::string_view("layer.experts.bias.gradient")) continue;
    expert_pass(w, s, product, pointwise, 8 * all);
    expert_pass(w, s, sum, reduction, 4 * all);
  }
  w.pass("layer.experts.bias.join.backward", copy, 2 * s.element * all);
}

void experts_forward(PieceWriter& w, const ExpertSizes& s) {
  up_forward(w, s);
  activation_forward(w, s);
  const ExpertProduct down = down_product(s);
  quantize_input(w, s, down);
  product_forward(w, s, down);
  if (weighs_output(w)) w.pass("layer.experts.weigh", pointwise, 2 * s.taken_bytes() + 4 * s.rows);
  if (weighs_bias(w, down, s)) weigh_bias(w, s);
}

/// Read the gradient, gate and up, write both of theirs, 5F, and the sum of each row for the
/// gradient of its weight; operators as those of a dense layer.
void activation_backward(PieceWriter& w, const ExpertSizes& s) {
  if (!gated(w.in().shape)) return gateless_backward(w, s);
  const std::int64_t f = s.inner_bytes();
  if (!w.eager()) return w.pass("layer.experts.swiglu.backward", activation, 5 * f + 8 * s.rows);
  w.pass("layer.experts.multiply.backward_up", pointwise, 3 * f);
  w.pass("layer.experts.multiply.backward_gate", pointwise, 3 * f);
  w.pass("layer.experts.silu.backward", pointwise, 3 * f);
}

void product_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit,
                      const ExpertProduct& p, bool first = true) {
  if (first && quantizes_again(w.in().software))
    quantize_rows(w, s, name_of(p) + ".input.again", OperandRole::input, {.rows = false}, p.in);
  quantize_rows(w, s, name_of(p) + ".gradient", OperandRole::gradient, {}, p.out);
  rows_product(w, s, name_of(p) + ".dgrad", p.in, p.out);
  weight_product(w, s, unit, p);
  write_adapters_backward(w, unit, beside(p));
  for (const Adapter& a : adapters_of(w, beside(p)))
    w.pass("layer." + a.tensor + ".lora.gradient_sum", pointwise, 3 * s.element * s.rows * a.in);
}

void experts_backward(PieceWriter& w, const ExpertSizes& s, const ParameterTensors& unit) {
  if (weighs_output(w))
    w.pass("layer.experts.weigh.backward", pointwise, 3 * s.taken_bytes() + 8 * s.rows);
  if (weighs_bias(w, down_product(s), s)) weigh_bias_backward(w, s);
  if (recomputes(w, LayerModule::expert_activation)) activation_forward(w, s);
  product_backward(w, s, unit, down_product(s));
  activation_backward(w, s);
  const auto ups = up_products(w, s);
  for (const ExpertProduct& p : ups) product_backward(w, s, unit, p, &p == &ups.front());
  if (ups.size() > 1) w.pass("layer.experts.gradient_sum", pointwise, 3 * s.taken_bytes());
}

/// From the layer's width to that of the experts and back, on a rank's own tokens (Megatron core
/// moe_layer.py, moe_latent_size, read 2026-08).
Linear to_latent(const PieceWriter& w, const ExpertSizes& s) {
  return {.name = "layer.latent.to",
          .tensor = "latent.to",
          .in = s.model,
          .out = s.hidden,
          .low = w.low(),
          .rows = s.tokens};
}
Linear from_latent(const PieceWriter& w, const ExpertSizes& s) {
  return {.name = "layer.latent.from",
          .tensor = "latent.from",
          .in = s.hidden,
          .out = s.model,
          .low = w.low(),
          .rows = s.tokens};
}
bool narrows(const ExpertSizes& s) { return s.hidden != s.model; }

void routed_forward(PieceWriter& w, const ExpertSizes& s, bool beside) {
  router_forward(w, s);
  if (narrows(s)) write_whole_forward(w, {to_latent(w, s)});
  w.end_graph();  // what follows depends on the counts
  write_permute(w, s, false);
  write_dispatch(w, s, false, beside ? Beside([&] { shared_up_forward(w, s); }) : Beside{});
  w.begin_node(LayerNode::experts);
  write_arrival(w, s, false);
  experts_forward(w, s);
  write_departure(w, s, false);
  w.begin_node(LayerNode::combine);
  write_combine(w, s, false, beside ? Beside([&] { shared_down_forward(w, s); }) : Beside{});
  w.begin_node(LayerNode::rest);
  write_weighing(w, s, false);
  write_unpermute(w, s, false);
  if (narrows(s)) write_whole_forward(w, {from_latent(w, s)});
}

}  // namespace

void write_experts_forward(PieceWriter& w) {
  const ExpertSizes s(w.in());
  if (has_shared(w) && !overlaps_shared(w)) {
    w.end_graph();
    shared_forward(w, s);
    w.begin_graph();
  }
  routed_forward(w, s, overlaps_shared(w));
  if (has_shared(w)) w.pass("layer.shared.sum", pointwise, 3 * s.model_bytes());
}

void write_experts_backward(PieceWriter& w, const ParameterTensors& unit) {
  const ExpertSizes s(w.in());
  const bool beside = overlaps_shared(w);
  w.from_python(true);
  const bool all = recomputes(w, LayerModule::experts);
  if (has_shared(w) && (all || recomputes(w, LayerModule::shared_experts))) shared_forward(w, s);
  if (all) routed_forward(w, s, false);
  w.from_python(false);
  w.begin_node(LayerNode::rest);
  if (narrows(s)) write_whole_backward(w, "layer.latent.from", unit, {from_latent(w, s)});
  write_unpermute(w, s, true);
  write_weighing(w, s, true);
  w.begin_node(LayerNode::combine);
  write_combine(w, s, true, beside ? Beside([&] { shared_down_backward(w, s, unit); }) : Beside{});
  w.begin_node(LayerNode::experts);
  write_departure(w, s, true);
  experts_backward(w, s, unit);
  write_arrival(w, s, true);
  w.begin_node(LayerNode::dispatch);
  write_dispatch(w, s, true, beside ? Beside([&] { shared_up_backward(w, s, unit); }) : Beside{});
  w.begin_node(LayerNode::attention);
  write_permute(w, s, true);
  if (narrows(s)) write_whole_backward(w, "layer.latent.to", unit, {to_latent(w, s)});
  router_backward(w, s, unit);
  if (has_shared(w) && !beside) {
    shared_down_backward(w, s, unit);
    shared_up_backward(w, s, unit);
  }
  // The router's gradient of the tokens, that of their rows, and that of the shared experts.
  w.pass("layer.experts.token_sum", pointwise, (has_shared(w) ? 6 : 3) * s.model_bytes());
}

}  // namespace stepcast::workloads
