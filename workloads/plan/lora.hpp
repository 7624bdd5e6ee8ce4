// Low-rank adapters beside the products of a layer: which, how large, in what type the frozen
// weights lie beside them, and what is not modelled with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/plan/rank_parameters.hpp"
#include "workloads/plan/rules.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// Beside a product of a tensor rank. Both parts are cut as Megatron cuts them (Megatron-Bridge
/// peft/utils.py ParallelLinearAdapter; recalled, 2026): beside a column-parallel product the first
/// one's columns and the second one's, beside a row-parallel one the first one's rows.
struct Adapter {
  LoraTarget target{};
  std::string tensor;   // "attention.q"
  std::int64_t in = 0;  // of the rank's product
  std::int64_t out = 0;
  bool row = false;      // beside a row-parallel product
  bool experts = false;  // on the rows that a rank's experts take: whole on every rank
  std::string first() const { return tensor + ".lora_a"; }
  std::string second() const { return tensor + ".lora_b"; }
};

/// Those of such a layer: beside attention's products, not beside those of other mixers.
std::vector<Adapter> layer_adapters(const TransformerShape&, std::int64_t tensor, const LayerForm&);
/// Those beside the product of a tensor, of each that it packs: "attention.qkv" has q, k and v.
std::vector<Adapter> adapters_beside(const std::vector<Adapter>&, const std::string& tensor);

/// Gate, up or down are among their targets.
bool adapted_mlp(const TransformerShape&);

/// Of the whole model; those beside experts count once, though every expert rank has its own. 0
/// without adapters.
std::int64_t adapter_parameters(const TransformerShape&);
/// Multiply-adds of a token in adapters, forward: those beside experts once for each expert that
/// the token goes to.
std::int64_t adapter_products(const TransformerShape&);
/// Parameters that a step updates: the adapters', or all.
std::int64_t trained_parameters(const TransformerShape&);

/// Freezes a unit's tensors where the model has adapters.
void freeze(ParameterTensors&, const TransformerShape&);
/// And adds the adapters of a layer.
void add_adapters(ParameterTensors&, const TransformerShape&, std::int64_t tensor,
                  const LayerForm&);

/// Of a frozen weight, with its scales, where 16-bit ones take `element` bytes each.
std::int64_t frozen_bytes(LoraBase, std::int64_t elements, std::int64_t element);
/// Frozen weights are narrower than products read them: made wide for each.
inline bool dequantizes(const TransformerShape& s) {
  return adapted(s) && s.lora.base != LoraBase::compute;
}

/// What adapters cannot lie beside, and what they do not go with.
std::span<const Rule<TransformerShape>> lora_rules();
std::span<const Rule<PlanCase>> lora_plan_rules();

}  // namespace stepcast::workloads
