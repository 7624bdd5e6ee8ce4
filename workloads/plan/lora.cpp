#include "workloads/plan/lora.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/low_precision.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::workloads {
namespace {

using Shape = const TransformerShape&;
using Asked = const PlanCase&;

using enum LoraTarget;

bool has(Shape s, LoraTarget target) { return adapted(s) && s.lora.targets.has(target); }
/// Layers of experts alone, beside which no adapter of an MLP lies.
bool only_bare_experts(Shape s) {
  return expert_layers(s) == s.layers && s.experts.shared_ffn == 0 && !s.lora.experts;
}

bool has_own_size_anywhere(Shape s) {
  return any_layer(s, [&](const LayerForm& f) { return has_own_sizes(s, f); });
}

std::string rank_text(Shape s) { return "lora_rank " + std::to_string(s.lora.rank); }

constexpr Rule<TransformerShape> rules_of_adapters[] = {
    {"lora_rank", [](Shape s) { return s.lora.rank < 0 || s.lora.rank > 100'000; },
     [](Shape s) { return rank_text(s); },
     [](Shape) { return std::string("0 for none; 8 to 64 are usual"); }},
    {"lora_targets", [](Shape s) { return adapted(s) && s.lora.targets.empty(); },
     [](Shape s) { return rank_text(s) + " without targets"; },
     [](Shape) { return std::string("lora_targets = [\"q\", \"v\"], or leave it out"); }},
    {"lora_targets", [](Shape s) { return latent(s) && (has(s, q) || has(s, k) || has(s, v)); },
     [](Shape) {
       return std::string("adapters of q, k or v beside latent attention are not modelled");
     },
     [](Shape) { return std::string("lora_targets = [\"o\"] are"); }},
    {"lora_targets", [](Shape s) { return adapted(s) && adapter_parameters(s) == 0; },
     [](Shape) { return std::string("the model has no product that lora_targets names"); },
     [](Shape) { return std::string("q, k, v and o are of layers of attention alone"); }},
    {"lora_rank",
     [](Shape s) { return adapted(s) && (s.index.heads > 0 || has_own_size_anywhere(s)); },
     [](Shape) {
       return std::string("adapters beside an index or layers of several sizes are not modelled");
     },
     [](Shape) { return std::string("lora_rank = 0"); }},
    {"lora_targets", [](Shape s) { return adapted_mlp(s) && only_bare_experts(s); },
     [](Shape) {
       return std::string("adapters of gate, up or down where every layer has experts alone");
     },
     [](Shape) {
       return std::string(
           "take q, k, v, o; lora_experts = true puts one beside a rank's experts, as "
           "Megatron-Bridge does");
     }},
    {"lora_targets", [](Shape s) { return !gated(s) && has(s, gate); },
     [](Shape) { return std::string("an adapter of gate in a model without gates"); },
     [](Shape) { return std::string("its MLP has up and down"); }},
    {"lora_base", [](Shape s) { return dequantizes(s) && s.experts.count > 0; },
     [](Shape) { return std::string("frozen experts of fewer than 16 bits are not modelled"); },
     [](Shape) { return std::string("leave lora_base = \"compute\""); }},
    {"lora_rank", [](Shape s) { return adapted(s) && masked(s); },
     [](Shape) { return std::string("adapters of a model of masked positions are not modelled"); },
     [](Shape) { return std::string("objective next_token"); }},
    {"lora_rank", [](Shape s) { return adapted(s) && s.mtp_layers > 0; },
     [](Shape) {
       return std::string("adapters beside a module for further tokens (MTP) are not modelled");
     },
     [](Shape) { return std::string("mtp_layers = 0"); }},
};

constexpr Rule<PlanCase> plan_rules_of_adapters[] = {
    {"tensor", [](Asked a) { return a.shape.lora.rank % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "lora_rank", a.shape.lora.rank);
     },
     [](Asked) { return std::string("tensor ranks cut adapters along their rank"); }},
    {"expert_tensor",
     [](Asked a) { return adapted(a.shape) && a.shape.lora.experts && a.plan.expert_tensor() > 1; },
     [](Asked) { return std::string("adapters beside experts that tensor ranks cut"); },
     [](Asked) { return std::string("expert_tensor = 1, or lora_experts = false"); }},
    {"tensor_overlap",
     [](Asked a) { return adapted(a.shape) && a.plan.tensor_overlap != TensorOverlap::none; },
     [](Asked) { return std::string("tensor_overlap beside adapters is not modelled"); },
     [](Asked) { return std::string("tensor_overlap = \"none\""); }},
};

/// Of gate, up and down: beside the shared experts, and beside those of a rank.
void add_beside_experts(std::vector<Adapter>& out, Shape s, std::int64_t tensor) {
  const auto add = [&](const std::string& of, std::int64_t width, std::int64_t ffn, bool routed) {
    if (has(s, gate)) out.push_back({gate, of + ".gate", width, ffn, false, routed});
    if (has(s, up)) out.push_back({up, of + ".up", width, ffn, false, routed});
    if (has(s, down)) out.push_back({down, of + ".down", ffn, width, !routed, routed});
  };
  const ExpertShape& e = s.experts;
  if (e.shared_ffn > 0) add("shared", s.hidden, e.shared_ffn / tensor, false);
  if (s.lora.experts) add("experts", expert_width(s), e.ffn, true);
}

}  // namespace

bool adapted_mlp(Shape s) { return has(s, gate) || has(s, up) || has(s, down); }

std::span<const Rule<TransformerShape>> lora_rules() { return rules_of_adapters; }
std::span<const Rule<PlanCase>> lora_plan_rules() { return plan_rules_of_adapters; }

std::vector<Adapter> layer_adapters(Shape s, std::int64_t tensor, const LayerForm& form) {
  if (!adapted(s)) return {};
  const RankWidths rank(s, tensor);
  const Adapter all[] = {{q, "attention.q", s.hidden, rank.query + rank.gate},
                         {k, "attention.k", s.hidden, rank.kv},
                         {v, "attention.v", s.hidden, rank.kv_values},
                         {o, "attention.o", rank.value, s.hidden, true},
                         {gate, "mlp.gate", s.hidden, rank.ffn},
                         {up, "mlp.up", s.hidden, rank.ffn},
                         {down, "mlp.down", rank.ffn, s.hidden, true}};
  std::vector<Adapter> out;
  for (const Adapter& adapter : all) {
    const bool there =
        adapter.tensor.starts_with("mlp.") ? form.mlp == Mlp::dense : attends(form.mixer);
    if (has(s, adapter.target) && there) out.push_back(adapter);
  }
  if (form.experts()) add_beside_experts(out, s, tensor);
  return out;
}

std::vector<Adapter> adapters_beside(const std::vector<Adapter>& adapters,
                                     const std::string& tensor) {
  const std::string part = tensor.substr(0, tensor.find('.') + 1);
  const auto lies = [&](const Adapter& a) {
    if (tensor == "attention.qkv") return a.target == q || a.target == k || a.target == v;
    if (tensor == part + "gate_up")
      return a.tensor.starts_with(part) && (a.target == gate || a.target == up);
    return a.tensor == tensor;
  };
  std::vector<Adapter> out;
  std::ranges::copy_if(adapters, std::back_inserter(out), lies);
  return out;
}

namespace {

/// Over all layers, those beside experts so often.
std::int64_t adapter_elements(Shape s, std::int64_t of_experts) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; adapted(s) && layer < s.layers; ++layer)
    for (const Adapter& a : layer_adapters(s, 1, layer_form(s, layer)))
      sum += (a.experts ? of_experts : 1) * s.lora.rank * (a.in + a.out);
  return sum;
}

}  // namespace

std::int64_t adapter_parameters(Shape s) { return adapter_elements(s, 1); }
std::int64_t adapter_products(Shape s) { return adapter_elements(s, s.experts.per_token); }

std::int64_t trained_parameters(Shape s) {
  return adapted(s) ? adapter_parameters(s) : parameters(s);
}

void freeze(ParameterTensors& tensors, Shape s) {
  if (!adapted(s)) return;
  for (ParameterTensor& tensor : tensors) {
    tensor.frozen = true;
    if (quantized(tensor)) tensor.base = s.lora.base;
  }
}

void add_adapters(ParameterTensors& out, Shape s, std::int64_t tensor, const LayerForm& form) {
  const std::int64_t rank = s.lora.rank;
  for (const Adapter& a : layer_adapters(s, tensor, form)) {
    const std::int64_t cut = a.experts ? 1 : tensor;
    add_weight(out, a.first(), a.row ? rank : rank / cut, a.in, false);
    out.back().expert = a.experts;
    add_weight(out, a.second(), a.row ? a.out / cut : a.out, rank, false);
    out.back().expert = a.experts;
  }
}

// Blocks of 64 with an absmax in fp32; doubly quantized, those in a byte each, 256 of them with one
// in fp32 (QLoRA, arXiv 2305.14314, section 3).
std::int64_t frozen_bytes(LoraBase base, std::int64_t elements, std::int64_t element) {
  constexpr std::int64_t block = 64, of_blocks = 256;
  const std::int64_t blocks = ceil_div(elements, block);
  switch (base) {
    case LoraBase::compute:
      return element * elements;
    case LoraBase::int8:
    case LoraBase::fp8:
      return elements;
    case LoraBase::nf4:
      return ceil_div(elements, std::int64_t{2}) + 4 * blocks;
    case LoraBase::nf4_double:
      return ceil_div(elements, std::int64_t{2}) + blocks + 4 * ceil_div(blocks, of_blocks);
  }
  throw BrokenPromise("unknown type of frozen weights");
}

}  // namespace stepcast::workloads
