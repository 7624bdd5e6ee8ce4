#include "workloads/plan/model_size.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::workloads {
namespace {

/// Of one of the experts' products. Packed, every expert's weight is a tensor of its own
/// (Transformer Engine GroupedLinear), else one tensor has them all (torchtitan GroupedExperts).
void add_product(ParameterTensors& out, const std::string& name, std::int64_t experts,
                 std::int64_t in, std::int64_t out_width, bool packed, bool bias) {
  const auto add = [&](const std::string& of, std::int64_t matrices) {
    out.push_back({of, matrices * in * out_width, true, false, true});
    out.back().rows = out_width;
    out.back().matrices = matrices;
  };
  if (packed) {
    for (std::int64_t i = 0; i < experts; ++i) add(name + "." + std::to_string(i), 1);
  } else {
    add(name, experts);
  }
  if (bias) out.push_back({name + ".bias", experts * out_width, false, false, true});
}

void add_shared(ParameterTensors& out, const TransformerShape& s, std::int64_t tensor,
                bool packed) {
  const std::int64_t ffn = s.experts.shared_ffn / tensor;
  if (ffn == 0) return;
  if (gated(s) && packed) {
    add_weight(out, "shared.gate_up", 2 * ffn, s.hidden, false);
  } else {
    if (gated(s)) add_weight(out, "shared.gate", ffn, s.hidden, false);
    add_weight(out, "shared.up", ffn, s.hidden, false);
  }
  add_weight(out, "shared.down", s.hidden, ffn, false);
  if (s.experts.shared_gate) out.push_back({"shared.weight", s.hidden, true, true});
}

}  // namespace

void add_expert_tensors(ParameterTensors& out, const TransformerShape& s, const ParallelPlan& plan,
                        bool packed) {
  const ExpertShape& e = s.experts;
  const std::int64_t here = e.count / plan.expert.degree, ffn = e.ffn / plan.expert_tensor();
  const std::int64_t width = expert_width(s);
  add_weight(out, "router", e.count, s.hidden, true);
  if (e.biases) out.push_back({"router.bias", e.count, false, true});
  if (e.latent > 0)
    for (const char* way : {"latent.to", "latent.from"})
      add_weight(out, way, e.latent, s.hidden, true);
  if (gated(s) && packed) {
    add_product(out, "experts.gate_up", here, width, 2 * ffn, packed, e.biases);
  } else {
    if (gated(s)) add_product(out, "experts.gate", here, width, ffn, packed, e.biases);
    add_product(out, "experts.up", here, width, ffn, packed, e.biases);
  }
  add_product(out, "experts.down", here, ffn, width, packed, e.biases);
  add_shared(out, s, plan.tensor, packed);
}

std::int64_t expert_elements_of(const ParameterTensors& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& t : tensors) sum += t.expert ? t.elements : 0;
  return sum;
}

std::int64_t shard_elements_of(const ParameterTensors& tensors, const ParallelPlan& plan) {
  const std::int64_t experts = expert_elements_of(tensors), dense = elements_of(tensors) - experts;
  const auto part = [](std::int64_t n, std::int64_t parts) { return (n + parts - 1) / parts; };
  return part(dense, plan.shards()) + (experts > 0 ? part(experts, plan.expert_copies()) : 0);
}

}  // namespace stepcast::workloads
