// The shape of a transformer of one stack: Llama-2 style (RMSNorm, SwiGLU, RoPE, GQA), GPT style
// (LayerNorm, GELU, biases, learned positions, tied embeddings) or BERT (the same, trained on
// masked positions). Knows no parallelism.
#pragma once

#include <cstdint>
#include <string>

#include "engine/units.hpp"
#include "workloads/plan/layers.hpp"
#include "workloads/plan/set_of.hpp"

namespace stepcast::workloads {

enum class Norm : std::uint8_t { rmsnorm, layernorm };
/// swiglu has a gate, the others have none. squared_relu: Nemotron.
enum class Activation : std::uint8_t { swiglu, gelu, squared_relu };
/// Where a half of a layer has its norms: before it; also behind it, before the residual (Gemma 2,
/// GLM-4); behind alone (OLMo 2).
enum class NormPlace : std::uint8_t { before, both, behind };
/// A sigmoid of the layer's input that weighs attention's output: none, one a head (Step-3.5), or
/// one an element (Qwen3-Next).
enum class AttentionGate : std::uint8_t { none, head, element };
/// next_token: causal attention, every position is predicted. masked: BERT, attention in both
/// directions, 5 of 32 positions are predicted, and whether two segments follow each other.
enum class Objective : std::uint8_t { next_token, masked };

/// How a router makes weights of its scores.
enum class RouterScore : std::uint8_t { softmax, sigmoid };

/// Layers whose MLP is a choice of experts, each a gated MLP of its own.
struct ExpertShape {
  std::int64_t count = 0;         // experts of such a layer; 0: the model has none
  std::int64_t per_token = 0;     // top-k
  std::int64_t ffn = 0;           // inner width of one expert
  std::int64_t shared_ffn = 0;    // of the shared experts, which take every token; 0: none
  bool shared_gate = false;       // a sigmoid of the token weighs the shared experts (Qwen2)
  bool biases = false;            // of router and experts (GPT-OSS)
  std::int64_t dense_layers = 0;  // the first layers have a dense MLP of ffn_hidden
  std::int64_t every = 1;         // of those after them every n-th has experts, the n-th first
  RouterScore score = RouterScore::softmax;
  bool score_bias = false;       // a bias per expert steers the choice (loss-free balancing)
  std::int64_t groups = 1;       // of experts, of which a token may choose
  std::int64_t group_limit = 1;  // so many
  std::int64_t latent = 0;       // width that experts work in (Nemotron-3-Super); 0: hidden
  friend bool operator==(const ExpertShape&, const ExpertShape&) = default;
};

/// Multi-head latent attention: keys and values out of a low rank (arXiv 2405.04434).
struct LatentShape {
  std::int64_t kv_rank = 0;  // 0: attention is not latent
  std::int64_t q_rank = 0;   // 0: queries come straight from the hidden tensor
  std::int64_t nope = 0;     // of a head, without position
  std::int64_t rope = 0;     // of a head, with; the keys' is shared by all heads
  std::int64_t value = 0;    // of a head
  friend bool operator==(const LatentShape&, const LatentShape&) = default;
};

/// Layers of the gated delta rule: queries and keys of `key_heads`, values of `value_heads`, and a
/// gate as wide as the values on what leaves.
struct DeltaShape {
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_dim = 0, value_dim = 0;  // of a head
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  std::int64_t convolved() const { return 2 * keys() + values(); }
  std::int64_t projected() const { return convolved() + values() + 2 * value_heads; }
  friend bool operator==(const DeltaShape&, const DeltaShape&) = default;
};

/// Layers of state spaces: heads whose state is head_dim x state, with B and C common to a group.
struct StateSpaceShape {
  std::int64_t heads = 0, head_dim = 0, groups = 1, state = 0;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
  std::int64_t projected() const { return convolved() + inner() + heads; }
  friend bool operator==(const StateSpaceShape&, const StateSpaceShape&) = default;
};

/// Tokens that the short convolution before either of them sees.
inline constexpr std::int64_t convolution_taps = 4;

/// An index beside latent attention: `heads` of `dim` score all keys, and attention sees the `top`
/// best (DeepSeek sparse attention, arXiv 2512.02556).
struct IndexShape {
  std::int64_t heads = 0, dim = 0, top = 0;
  friend bool operator==(const IndexShape&, const IndexShape&) = default;
};

/// Products of a layer that low-rank adapters may lie beside.
enum class LoraTarget : std::uint8_t { q, k, v, o, gate, up, down };
/// The type that frozen products' weights are kept in: 16 bits; one byte, with a scale a row; four
/// bits with an absmax of each 64 in fp32, or those in eight bits, 256 by 256 (QLoRA).
enum class LoraBase : std::uint8_t { compute, int8, fp8, nf4, nf4_double };

/// Low-rank adapters (LoRA, arXiv 2106.09685): beside a product [in, out] a product [in, rank] and
/// one [rank, out]. They alone are trained, all else is frozen.
struct LoraShape {
  std::int64_t rank = 0;  // 0: there are none, and all is trained
  /// As PEFT has for Llama (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; recalled, 2026).
  SetOf<LoraTarget> targets{LoraTarget::q, LoraTarget::v};
  LoraBase base = LoraBase::compute;
  bool dropout = false;  // of what adapters read
  /// In layers of experts gate, up and down lie beside the shared experts and, if this is set,
  /// beside those of a rank, which share one (Megatron-Bridge peft/lora.py share_expert_adapters at
  /// 067f987, read 2026-11). transformers 5 keeps experts in one tensor, beside which PEFT puts
  /// none.
  bool experts = false;
  friend bool operator==(const LoraShape&, const LoraShape&) = default;
};

struct TransformerShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;   // hidden / heads unless the model says otherwise
  std::int64_t value_dim = 0;  // of a head's v; 0: head_dim
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  LayerPattern pattern;  // empty: what windows and experts say of their layers
  Norm norm = Norm::rmsnorm;
  NormPlace norm_place = NormPlace::before;
  Activation activation = Activation::swiglu;
  bool biases = false;
  bool rope = true;  // false: learned positions, `max_positions` of them, unless ALiBi
  bool alibi = false;
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;
  bool dropout = false;  // of embedding, attention probabilities and both residual branches
  Objective objective = Objective::next_token;
  ExpertShape experts{};
  LatentShape latent{};
  bool qkv_biases = false;     // of q, k and v alone (Qwen2)
  bool qk_norm = false;        // a norm of each head's q and k (Qwen3)
  bool qk_norm_whole = false;  // ... of all heads' together (OLMo 2, MiniMax-M2)
  AttentionGate gate = AttentionGate::none;
  bool values_are_keys = false;  // outside windows: no product makes v (Gemma 4)
  bool logit_cap = false;        // logits pass a tanh (Gemma 2)
  DeltaShape delta{};
  StateSpaceShape state_space{};
  IndexShape index{};
  std::int64_t window = 0;        // tokens that attention looks back; 0: all
  std::int64_t window_every = 1;  // of the layers every n-th has the window, the first first
  std::int64_t window_heads = 0;  // in layers with a window, where they differ; 0: as elsewhere
  std::int64_t window_kv_heads = 0;
  std::int64_t window_head_dim = 0;
  bool sinks = false;           // a learned logit per head beside the scores (GPT-OSS)
  std::int64_t mtp_layers = 0;  // modules that predict the tokens after the next (DeepSeek-V3)
  LoraShape lora{};

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

inline bool masked(const TransformerShape& s) { return s.objective == Objective::masked; }
inline bool adapted(const TransformerShape& s) { return s.lora.rank > 0; }
inline bool learned_positions(const TransformerShape& s) { return !s.rope && !s.alibi; }

/// Positions of a sequence that the vocabulary's logits are made for: all, or BERT's
/// max_predictions_per_seq (20 of 128, 80 of 512).
std::int64_t predicted_positions(const TransformerShape&, std::int64_t sequence);

/// Parameters of one layer, of the embedding, of the final norm and head, and in total.
std::int64_t layer_parameters(const TransformerShape&);
std::int64_t embedding_parameters(const TransformerShape&);
/// Final norm and head (nothing if tied). BERT: a transform with its norm, the bias of the logits,
/// the pooler and its classes; no final norm.
std::int64_t head_parameters(const TransformerShape&);
std::int64_t parameters(const TransformerShape&);

/// FLOPs of one optimizer step over `tokens` tokens, for MFU: 6 N_matmul tokens + 12 L h s tokens
/// (full attention, not halved for the causal mask; recompute not counted), the convention of the
/// study and of PaLM (arXiv 2204.02311, appendix B). A frozen product has no weight gradient: with
/// adapters 4 N_matmul, and 6 of the adapters' own parameters.
Flops model_flops(const TransformerShape&, std::int64_t tokens, std::int64_t sequence);

}  // namespace stepcast::workloads
