#include "workloads/pieces/adapter_piece.hpp"

#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

std::int64_t rank_of(const PieceWriter& w) { return w.in().shape.lora.rank; }

/// Of one adapter: its products' sizes on this rank, and what it reads, leaves and hands on. Its
/// products are torch's or Megatron core's, without what the host does in Transformer Engine's
/// modules (module_call).
class AdapterWriter {
 public:
  AdapterWriter(PieceWriter& w, const Adapter& a)
      : w_(w),
        a_(a),
        name_("layer." + a.tensor),
        tokens_(a.experts ? ExpertSizes(w.in()).rows : w.sizes().tokens),
        cut_rank_(a.row || a.experts ? rank_of(w) : rank_of(w) / w.in().plan.tensor),
        cut_out_(a.row ? a.out / w.in().plan.tensor : a.out) {}

  /// A reads x, or its copy with dropout; B's output is scaled (read, write), and added to the
  /// product's (read two, write one).
  void forward() {
    dropout("");
    w_.gemm(name_ + ".lora_a.forward", tokens_, cut_rank_, a_.in);
    narrow("forward", CollectiveKind::all_gather);
    w_.gemm(name_ + ".lora_b.forward", tokens_, cut_out_, rank_of(w_));
    if (a_.row && w_.split()) w_.all_gather_hidden(name_ + ".lora_b.forward");
    if (!w_.compiled()) w_.pass(name_ + ".lora.scale", pointwise, 2 * output_bytes());
    w_.pass(name_ + ".lora.add", pointwise, 3 * output_bytes());
  }

  void backward(const ParameterTensors& unit) {
    // Of a row-parallel product that leaves a part of the sequence: this one left all of it.
    if (a_.row && w_.sequence_parallel()) w_.all_gather_hidden(name_ + ".lora_b.backward");
    w_.pass(name_ + ".lora.scale.backward", pointwise, 2 * w_.sizes().element * tokens_ * cut_out_);
    w_.gemm(name_ + ".lora_b.dgrad", tokens_, rank_of(w_), cut_out_);
    weight(unit, a_.second(), ".lora_b.wgrad", cut_out_, rank_of(w_));
    narrow("backward", CollectiveKind::reduce_scatter);
    w_.gemm(name_ + ".lora_a.dgrad", tokens_, a_.in, cut_rank_);
    weight(unit, a_.first(), ".lora_a.wgrad", cut_rank_, a_.in);
    dropout(".backward");
  }

 private:
  /// What is added: beside a row-parallel product of a rank's part of the sequence.
  std::int64_t output_bytes() const {
    return w_.sizes().element * (a_.row ? w_.sizes().local_tokens : tokens_) * a_.out;
  }
  /// Between the two, of the rank's width: gathered or summed over the tensor ranks.
  void narrow(const char* pass, CollectiveKind column) {
    if (!w_.split() || a_.experts) return;
    w_.collective(name_ + ".lora." + pass, a_.row ? CollectiveKind::all_reduce : column,
                  w_.in().precision.compute, w_.sizes().element * tokens_ * rank_of(w_));
  }
  /// Reads and writes x, and writes or reads a byte mask.
  void dropout(const char* pass) {
    if (w_.in().shape.lora.dropout)
      w_.pass(name_ + ".lora.dropout" + pass, pointwise,
              (2 * w_.sizes().element + 1) * tokens_ * a_.in);
  }
  void weight(const ParameterTensors& unit, const std::string& tensor, const char* suffix,
              std::int64_t out, std::int64_t in) {
    w_.for_weights(true);
    w_.weight_gradient(name_ + suffix, out, in, tokens_);
    w_.gradient(unit, tensor);
    w_.for_weights(false);
  }

  PieceWriter& w_;
  const Adapter& a_;
  std::string name_;
  std::int64_t tokens_, cut_rank_, cut_out_;
};

}  // namespace

std::vector<Adapter> adapters_of(const PieceWriter& w, const Linear& l) {
  if (!w.frozen()) return {};
  return adapters_beside(layer_adapters(w.in().shape, w.in().plan.tensor, w.kind()), l.tensor);
}

void write_dequantize(PieceWriter& w, const Linear& l) {
  const TransformerShape& s = w.in().shape;
  if (!dequantizes(s) || !quantized({l.tensor, 0, true, false})) return;
  const std::int64_t elements = l.in * l.out;
  w.pass(l.name + ".dequantize", quantize,
         frozen_bytes(s.lora.base, elements, w.sizes().element) + w.sizes().element * elements);
}

void write_adapters_forward(PieceWriter& w, const Linear& l) {
  for (const Adapter& a : adapters_of(w, l)) AdapterWriter(w, a).forward();
}

void write_adapters_backward(PieceWriter& w, const ParameterTensors& unit, const Linear& l) {
  for (const Adapter& a : adapters_of(w, l)) AdapterWriter(w, a).backward(unit);
}

}  // namespace stepcast::workloads
