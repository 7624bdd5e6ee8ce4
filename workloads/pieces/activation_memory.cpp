#include "workloads/pieces/activation_memory.hpp"

#include <algorithm>
#include <numeric>

#include "engine/arithmetic.hpp"
#include "workloads/pieces/ends_piece.hpp"
#include "workloads/pieces/latent_piece.hpp"
#include "workloads/pieces/layer_piece.hpp"
#include "workloads/pieces/mixer_piece.hpp"
#include "workloads/pieces/operand_piece.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

std::int64_t total(const std::vector<std::int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

}  // namespace

bool ActivationMemory::composite_norm() const {
  return in_.software.eager() && !in_.software.norm.fused && in_.shape.norm == Norm::rmsnorm;
}

/// What a norm keeps: its input, 2 bytes an element; eager RMSNorm keeps the fp32 copy and, for its
/// weight's gradient, the normalised 16-bit tensor instead, 4 + 2.
std::int64_t ActivationMemory::norm_input(std::int64_t elements) const {
  if (composite_norm()) return (adapted(in_.shape) ? 4 : 4 + sizes_.element) * elements;
  return sizes_.element * elements;
}

bool ActivationMemory::reads_again(SetOf<LoraTarget> targets) const {
  const LoraShape& lora = in_.shape.lora;
  if (!adapted(in_.shape)) return true;
  if (lora.dropout) return false;  // adapters read a copy of their own
  using enum LoraTarget;
  for (const LoraTarget target : {q, k, v, o, gate, up, down})
    if (targets.has(target) && lora.targets.has(target)) return true;
  return false;
}

/// What the second part of each adapter reads, of the rank's width; with dropout what the first one
/// reads and a byte mask of it.
std::vector<std::int64_t> ActivationMemory::adapters() const {
  std::vector<std::int64_t> out;
  for (const Adapter& a : layer_adapters(in_.shape, in_.plan.tensor, kind_)) {
    const std::int64_t rows = a.experts ? experts_->rows : sizes_.tokens;
    out.push_back(sizes_.element * rows * in_.shape.lora.rank);
    if (!in_.shape.lora.dropout) continue;
    out.push_back(sizes_.element * rows * a.in);
    out.push_back(rows * a.in);
  }
  return out;
}

/// A frozen weight as its product reads it: the largest of a layer.
std::int64_t ActivationMemory::wide_weight() const {
  if (!dequantizes(in_.shape)) return 0;
  std::int64_t most = 0;
  for (const ParameterTensor& t :
       workloads::layer_tensors(in_.shape, in_.plan, in_.software.products.packed, kind_))
    if (t.frozen && t.base != LoraBase::compute) most = std::max(most, t.elements);
  return sizes_.element * most;
}

/// What the first norm feeds, and norms before the core: of each head's q and k; of latent
/// attention the low ranks, each norm's input and what the product up reads.
std::vector<std::int64_t> ActivationMemory::projections() const {
  using enum LoraTarget;
  const TransformerShape& s = in_.shape;
  const bool again = reads_again({q, k, v});
  if (!latent(s)) {
    const std::int64_t input = again ? column_input(s.hidden) : 0;
    if (!s.qk_norm && !s.qk_norm_whole) return {input};
    return {input, norm_input(sizes_.tokens * sizes_.query), norm_input(sizes_.tokens * sizes_.kv)};
  }
  std::vector<std::int64_t> out{!again                ? 0
                                : s.latent.q_rank > 0 ? kept_input(sizes_.local_elements())
                                                      : column_input(s.hidden)};
  for (const std::int64_t rank : {s.latent.q_rank, s.latent.kv_rank}) {
    out.push_back(norm_input(sizes_.local_tokens * rank));
    if (again && !makes_latent_up_again(in_)) out.push_back(column_input(rank));
  }
  return out;
}

/// A recipe's products keep their inputs quantized, in the direction that wgrad reads, unless
/// backward quantizes them again.
bool ActivationMemory::keeps_quantized() const {
  return in_.precision.recipe != Recipe::none && !kind_.plain && !quantizes_again(in_.software);
}

std::int64_t ActivationMemory::kept_input(std::int64_t elements) const {
  return keeps_quantized() ? kept_input_bytes(in_.precision, elements) : sizes_.element * elements;
}

std::int64_t ActivationMemory::row_input(std::int64_t width) const {
  return kept_input(sizes_.tokens * width);
}

/// What is to be gathered again in 16 bits is kept so.
std::int64_t ActivationMemory::column_input(std::int64_t width) const {
  const bool cut =
      in_.software.keeps_cut_inputs() && in_.plan.tensor > 1 && in_.plan.sequence_parallel;
  const std::int64_t elements =
      width * (in_.software.keeps_cut_inputs() ? sizes_.local_tokens : sizes_.tokens);
  if (cut && !gathers_quantized(in_.precision)) return sizes_.element * elements;
  return kept_input(elements);
}

/// As the core takes them.
std::vector<std::int64_t> ActivationMemory::query_key_value() const {
  const std::int64_t row = sizes_.tokens * sizes_.element;
  const std::int64_t copies = in_.software.repeats_kv() ? sizes_.heads / sizes_.kv_heads : 1;
  const std::int64_t v = row * sizes_.value * sizes_.kv_heads / sizes_.heads;
  return {row * sizes_.query, copies * row * sizes_.kv, copies * v};
}

std::int64_t ActivationMemory::dropout_mask() const {
  return in_.shape.dropout ? sizes_.local_elements() : 0;
}

std::vector<std::int64_t> ActivationMemory::layer_tensors() const {
  std::vector<std::int64_t> out = attention_tensors();
  for (const std::int64_t bytes : mlp_tensors()) out.push_back(bytes);
  return out;
}

/// What attention's norm feeds; q, k, v, o and 4 bytes a row and head of softmax statistics; of a
/// gate itself and what the last product reads.
std::vector<std::int64_t> ActivationMemory::core_tensors() const {
  const std::int64_t row = sizes_.tokens * sizes_.element;
  std::vector<std::int64_t> out = projections();
  // It stands alone.
  if (recomputes(LayerModule::norm) && latent(in_.shape)) out[0] = 0;
  if (!makes_latent_up_again(in_))
    for (const std::int64_t bytes : query_key_value()) out.push_back(bytes);
  if (in_.shape.index.heads > 0 && kind_.mixer == Mixer::full)
    for (const std::int64_t bytes : kept_by_index(in_)) out.push_back(bytes);
  out.push_back(row * sizes_.value);
  out.push_back(4 * sizes_.tokens * sizes_.heads);
  if (sizes_.gate > 0) {
    out.push_back(row * sizes_.gate);
    out.push_back(row_input(sizes_.value));
  }
  return out;
}

std::vector<std::int64_t> ActivationMemory::mixer_tensors() const {
  std::vector<std::int64_t> out;
  if (attends(kind_.mixer)) out = core_tensors();
  if (kind_.mixer == Mixer::delta) out = kept_by_delta(in_);
  if (has_state_space(kind_.mixer))
    for (const std::int64_t bytes : kept_by_state_space(in_)) out.push_back(bytes);
  return out;
}

/// The norm and what it feeds; norms behind a half keep its output; a byte mask of the residual
/// branch's dropout; what adapters keep.
std::vector<std::int64_t> ActivationMemory::attention_tensors() const {
  std::vector<std::int64_t> out;
  if (kind_.mixer != Mixer::none) {
    if (in_.shape.norm_place != NormPlace::behind) out.push_back(norm_input());
    for (const std::int64_t bytes : mixer_tensors()) out.push_back(bytes);
    if (in_.shape.norm_place != NormPlace::before) out.push_back(norm_input());
    out.push_back(dropout_mask());
  }
  if (keeps_quantized() && attends(kind_.mixer) && sizes_.gate == 0)
    out.push_back(row_input(sizes_.value));  // beside attention's own
  for (const std::int64_t bytes : adapters()) out.push_back(bytes);
  return out;
}

/// Of a norm by operators with a weight three fp32 tensors: its input as its square and its product
/// read it, and what the weight multiplies; without one two. One before the experts, one before
/// the shared ones beside what these read, the router's beside what its scale reads; one behind
/// either and one behind both (Gemma4TransformerLayer and Gemma4MoELayer of Megatron-Bridge
/// models/gemma/modeling_gemma4.py at 067f987, read 2026-11). Cut inputs of the sequence.
std::vector<std::int64_t> ActivationMemory::operator_norms() const {
  const bool shared = experts_->shared > 0;
  const std::int64_t n = sizes_.local_elements();
  std::vector<std::int64_t> out(shared ? 17 : 11, 4 * n);
  for (int i = 0; i < (shared ? 2 : 1); ++i) out.push_back(sizes_.element * n);
  return out;
}

/// The norm, what it feeds and what follows from that; the other branch's mask.
std::vector<std::int64_t> ActivationMemory::mlp_tensors() const {
  std::vector<std::int64_t> out;
  if (kind_.mlp == Mlp::none) return out;
  if (kind_.experts() && in_.software.fused() && in_.software.experts.operator_norms &&
      in_.shape.norm_place == NormPlace::both) {
    out = operator_norms();
    for (const std::int64_t bytes : mlp_half().kept) out.push_back(bytes);
    return out;
  }
  if (in_.shape.norm_place != NormPlace::behind) out.push_back(norm_input());
  for (const std::int64_t bytes : mlp_half().kept) out.push_back(bytes);
  if (in_.shape.norm_place != NormPlace::before) out.push_back(norm_input());
  out.push_back(dropout_mask());
  return out;
}

bool ActivationMemory::weighs_wide() const {
  return !in_.software.fused() && !in_.software.own() && in_.software.experts.weighed_wide;
}

ActivationMemory::Half ActivationMemory::mlp_half() const {
  if (kind_.experts()) return expert_half();
  Half out;
  using enum LoraTarget;
  if (reads_again({gate, up})) out.kept.push_back(column_input(sizes_.hidden));
  const bool again = recomputes(LayerModule::mlp) || in_.plan.mlp_tiles > 1;
  for (const std::int64_t bytes : mlp())
    (again ? out.again : out.kept).push_back(ceil_div(bytes, in_.plan.mlp_tiles));
  return out;
}

/// The tokens; logits and weights, 4 bytes each, and the map, a byte; what rows go where and their
/// weights, 8; rows that have come; gate, up and their product, which is made again with
/// expert_activation, or GELU's input and output, weighed or not; what the second product makes
/// where the weights come after it, in fp32 where they are weighed so.
ActivationMemory::Half ActivationMemory::expert_half() const {
  using enum LayerModule;
  const ExpertSizes& s = *experts_;
  const bool whole = recomputes(experts);
  const std::int64_t f = s.inner_bytes(), narrow = kept_input(f / s.element),
                     shared = s.element * sizes_.tokens * s.shared;
  Half out;
  // Of products, for their weights' gradients, or for those of adapters.
  const bool inputs = !adapted(in_.shape), routed_adapters = in_.shape.lora.experts;
  const bool read_up = reads_again({LoraTarget::gate, LoraTarget::up}),
             read_down = reads_again({LoraTarget::down});
  if (inputs || (read_up && s.shared > 0))
    (recomputes(norm) ? out.again : out.kept).push_back(s.model_bytes());
  if (inputs && s.hidden != s.model) out.kept.push_back(s.token_bytes());  // back to the width
  auto& routed = whole ? out.again : out.kept;
  const std::int64_t taken = inputs                       ? kept_input(s.taken_bytes() / s.element)
                             : routed_adapters && read_up ? s.taken_bytes()
                                                          : 0;
  for (const std::int64_t bytes : {9 * s.tokens * s.all, 8 * s.sent, taken, f})
    routed.push_back(bytes);
  const bool gates = gated(in_.shape);
  if (gates) routed.push_back(f);
  if (gates && in_.software.eager()) routed.push_back(f);
  if (!in_.software.fused())
    routed.push_back(weighs_wide() ? s.wide_sent_bytes() : s.taken_bytes());
  if (in_.software.fused() && in_.software.experts.weighed_back) routed.push_back(s.sent_bytes());
  auto& product = whole || recomputes(expert_activation) ? out.again : out.kept;
  if (inputs) product.push_back(narrow);
  if (!inputs && routed_adapters && read_down) product.push_back(f);
  if (!gates && in_.software.fused()) product.push_back(f);  // before the weights
  if (shared == 0) return out;
  for (int i = read_down ? 0 : 1; i < (!gates ? 2 : in_.software.eager() ? 4 : 3); ++i)
    (whole || recomputes(shared_experts) ? out.again : out.kept).push_back(shared);
  return out;
}

std::int64_t ActivationMemory::layer_without_recompute() const {
  return total(layer_tensors()) + scores();
}

std::int64_t ActivationMemory::scores() const {
  if (!in_.software.attention.keeps_scores()) return 0;
  const std::int64_t scores = sizes_.heads * sizes_.tokens * in_.batch.sequence;
  // Llama code keeps the softmax's output in fp32 as well (attention_piece.cpp).
  const Fusion fusion = in_.software.fusion;
  const bool fp32 = in_.software.attention.kernel == AttentionKernel::unfused &&
                    fusion != Fusion::compiled && in_.shape.norm == Norm::rmsnorm &&
                    sizes_.element < 4;
  if (fp32 && !in_.shape.dropout) return (sizes_.element + 4) * scores;
  // Dropout keeps the softmax's output, the mask and what it leaves.
  return (in_.shape.dropout ? 2 * sizes_.element + 1 : sizes_.element) * scores;
}

/// GELU: its input and output, 4f. SwiGLU: gate, up, product 6f; eager also silu(gate), 8f;
/// Inductor makes the product again in backward, 4f.
std::vector<std::int64_t> ActivationMemory::mlp() const {
  // The last product's.
  const std::int64_t f = sizes_.ffn_bytes(),
                     input = reads_again({LoraTarget::down}) ? row_input(sizes_.ffn) : 0;
  if (!gated(in_.shape)) return {f, input};
  switch (in_.software.fusion) {
    case Fusion::eager:
      return {f, f, f, input};
    case Fusion::compiled:
      return {f, f};
    case Fusion::fused:
    case Fusion::own:
      return {f, f, input};
  }
  throw BrokenPromise("unknown fusion");
}

std::int64_t ActivationMemory::layer() const {
  switch (in_.plan.recompute) {
    case Recompute::none:
    case Recompute::selective:
    case Recompute::operators:
      if (in_.operators_again()) return total(operator_tensors());
      return layer_without_recompute() - (in_.core_again() ? scores() : 0);
    case Recompute::full:
      return sizes_.local_bytes();  // the layer's input
  }
  throw BrokenPromise("unknown recompute");
}

std::vector<std::int64_t> ActivationMemory::operator_tensors() const {
  std::vector<std::int64_t> out = saved_by_operators(in_, kind_);
  out.insert(out.begin(), sizes_.local_bytes());
  return out;
}

/// The layer's input, unless a norm of operators keeps copies of it instead; attention's output and
/// statistics; v where no copies are made of it; the gate of SwiGLU, which is a first product.
std::vector<std::int64_t> ActivationMemory::tensors_again() const {
  std::vector<std::int64_t> out = layer_tensors();
  const std::int64_t row = sizes_.tokens * sizes_.element;
  std::vector<std::int64_t> saved{row * sizes_.value, 4 * sizes_.tokens * sizes_.heads};
  if (!composite_norm()) saved.push_back(norm_input());
  if (!kind_.experts() && gated(in_.shape) && !in_.software.products.packed)
    saved.push_back(sizes_.ffn_bytes());
  for (const std::int64_t bytes : saved)
    if (const auto at = std::ranges::find(out, bytes); at != out.end()) out.erase(at);
  return out;
}

std::int64_t ActivationMemory::offloaded_bytes(std::int64_t place) const {
  if (in_.plan.offload.activations == 0.0) return 0;
  const bool again = place % in_.plan.recompute_every == 0;
  const auto kept = static_cast<double>(again ? layer() : layer_without_recompute());
  return static_cast<std::int64_t>(in_.plan.offload.activations * kept);
}

/// Of q, k, v, of attention's and the MLP's output, of gate and up.
std::int64_t ActivationMemory::output_gradients() const {
  const std::int64_t ups = gated(in_.shape) ? 2 : 1;
  return sizes_.element * sizes_.tokens *
         (sizes_.query + 2 * sizes_.kv + 2 * sizes_.hidden + ups * sizes_.ffn);
}

/// As the MLP's backward is fullest: its last product's input is read and gone, and the gradient of
/// it became those of gate and up, so that of three tensors of that width two are more than what
/// was kept; a compiler makes the product again, which is a third. The gradient of the residual
/// stream, a rank's part, and where that is cut the last product's, whole. Tiles gather the
/// gradient of the MLP's input (TiledMLP of deepspeed/runtime/sequence_parallel/ulysses_sp.py).
std::vector<std::int64_t> ActivationMemory::work_tensors() const {
  if (kind_.mlp == Mlp::none) return attention_work_tensors();
  const std::int64_t f = ceil_div(sizes_.ffn_bytes(), in_.plan.mlp_tiles);
  const bool cut = in_.plan.tensor > 1 && in_.plan.sequence_parallel;
  std::vector<std::int64_t> out{f};
  if (gated(in_.shape)) out.push_back(f);
  if (gated(in_.shape) && in_.software.compiled()) out.push_back(f);
  if (cut) out.push_back(sizes_.hidden_bytes());
  out.push_back(sizes_.local_bytes());
  if (in_.plan.mlp_tiles > 1) out.push_back(sizes_.local_bytes());
  if (kind_.experts()) {
    // Gradients of gate, up and product, or of what GELU left, times the weights in fp32; of rows
    // as they leave and as they come. Eager norms work in fp32, and DTensor on whole tensors.
    const ExpertSizes& s = *experts_;
    const bool wide = !gated(in_.shape) && in_.software.fused();
    const std::int64_t inner = wide ? s.wide_inner_bytes() : s.inner_bytes();
    const std::int64_t width = in_.software.eager() ? 4 : sizes_.element;
    const std::int64_t part = in_.software.eager() && in_.software.norm.fused
                                  ? sizes_.local_bytes()
                                  : width * sizes_.tokens * sizes_.hidden;
    out = {s.inner_bytes(), inner, inner, s.taken_bytes(), s.sent_bytes(), part, part};
    // Or, before the experts', the gradient in fp32 and its products with weights and rows.
    const std::int64_t rows = weighs_wide() ? s.wide_sent_bytes() : 0;
    if (3 * rows > s.taken_bytes() + s.sent_bytes() + 3 * inner)
      out = {rows, rows, rows, part, part};
  }
  out.push_back(wide_weight());
  if (const std::int64_t states = states_bytes(in_, kind_.mixer); states > 0) out.push_back(states);
  if (kind_.mlp != Mlp::none)
    for (const std::int64_t bytes : mlp_half().again) out.push_back(bytes);
  if (makes_latent_up_again(in_))
    for (const std::int64_t bytes : query_key_value()) out.push_back(bytes);
  return out;
}

/// As attention's is: gradients of the residual stream, of what the core gave, of q, k and v as it
/// took them; the sum of dQ in fp32, and dK and dV of every q head before a group's are added
/// (flash-attn csrc/flash_attn/flash_api.cpp mha_bwd, recalled; others are taken to need as
/// much).
std::vector<std::int64_t> ActivationMemory::attention_work_tensors() const {
  const std::int64_t row = sizes_.tokens * sizes_.element;
  if (!attends(kind_.mixer)) {  // the gradient of the residual stream, and of the widest tensor
    const std::vector<std::int64_t> kept = mixer_tensors();
    return {sizes_.local_bytes(), kept.empty() ? 0 : std::ranges::max(kept)};
  }
  std::vector<std::int64_t> out{sizes_.local_bytes(), row * sizes_.value};
  for (const std::int64_t bytes : query_key_value()) out.push_back(bytes);
  if (in_.software.attention.keeps_scores()) {
    out.push_back(scores());
    return out;
  }
  out.push_back(4 * sizes_.tokens * sizes_.query);
  const bool groups = sizes_.kv_heads < sizes_.heads && !in_.software.repeats_kv();
  if (groups) out.push_back(row * (sizes_.query + sizes_.value));
  return out;
}

std::vector<std::int64_t> ActivationMemory::attention_alone_tensors() const {
  std::vector<std::int64_t> out = mixer_tensors();
  for (const std::int64_t bytes : adapters()) out.push_back(bytes);
  return out;
}

std::vector<std::int64_t> ActivationMemory::mlp_alone_tensors() const {
  return kind_.mlp == Mlp::none ? std::vector<std::int64_t>{} : mlp_half().kept;
}

std::vector<std::int64_t> ActivationMemory::forward_work_tensors() const {
  if (!kind_.experts())
    return {ceil_div(sizes_.ffn_bytes(), in_.plan.mlp_tiles), sizes_.hidden_bytes(), wide_weight()};
  const ExpertSizes& s = *experts_;
  return {s.inner_bytes(), s.taken_bytes(), s.sent_bytes()};
}

}  // namespace stepcast::workloads
