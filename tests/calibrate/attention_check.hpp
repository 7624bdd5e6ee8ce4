// Runs attention on the emulated GPU and compares every row with the reference. Included after
// emulated_cuda.hpp.
#pragma once

#include "tests/calibrate/kernel_tensor.hpp"

namespace stepcast::calibrate::cuda_kernels {

struct AttentionErrors {
  double o = 0, lse = 0, dq = 0, dk = 0, dv = 0;
};

struct AttentionRun {
  AttentionShape shape;
  Tensor q, k, v, d_o, o, lse;

  explicit AttentionRun(const AttentionShape& s)
      : shape(s),
        q(Tensor::random(s.type, q_elements(), 1)),
        k(Tensor::random(s.type, kv_elements(), 2)),
        v(Tensor::random(s.type, kv_elements(), 3)),
        d_o(Tensor::random(s.type, q_elements(), 4)),
        o(s.type, q_elements()),
        lse(ElementType::fp32, s.batch * s.heads * s.sequence) {}

  std::int64_t q_elements() const {
    return shape.batch * shape.sequence * shape.heads * shape.head_dim;
  }
  std::int64_t kv_elements() const { return q_elements() / shape.heads * shape.kv_heads; }

  reference::Attention reference_shape() const {
    return {.batch = shape.batch,
            .sequence = shape.sequence,
            .heads = shape.heads,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim,
            .causal = shape.causal,
            .scale = shape.scale};
  }

  AttentionErrors forward() {
    attention_forward(shape, q.data(), k.data(), v.data(), o.data(), lse.floats(), nullptr);
    const reference::Row qs = q.values(), ks = k.values(), vs = v.values();
    reference::Row wanted_o(qs.size()), wanted_lse;
    for (std::int64_t batch = 0; batch < shape.batch; ++batch)
      for (std::int64_t head = 0; head < shape.heads; ++head)
        for (std::int64_t token = 0; token < shape.sequence; ++token) {
          const auto row = reference::attention_output(reference_shape(), {qs, ks, vs, {}},
                                                       {batch, head, token});
          const auto first =
              ((batch * shape.sequence + token) * shape.heads + head) * shape.head_dim;
          std::copy(row.o.begin(), row.o.end(), wanted_o.begin() + first);
          wanted_lse.push_back(row.lse);
        }
    AttentionErrors errors;
    errors.o = reference::relative_error(o.values(), wanted_o);
    errors.lse = reference::relative_error(lse.values(), wanted_lse);
    return errors;
  }

  /// After forward().
  AttentionErrors backward() {
    Tensor dq(shape.type, q_elements()), dk(shape.type, kv_elements());
    Tensor dv(shape.type, kv_elements());
    Tensor workspace(ElementType::fp32,
                     static_cast<std::int64_t>(attention_workspace_bytes(shape) / 4));
    attention_backward(shape,
                       {.q = q.data(),
                        .k = k.data(),
                        .v = v.data(),
                        .o = o.data(),
                        .d_o = d_o.data(),
                        .lse = lse.floats(),
                        .dq = dq.data(),
                        .dk = dk.data(),
                        .dv = dv.data(),
                        .workspace = workspace.data()},
                       nullptr);
    const reference::Row qs = q.values(), ks = k.values(), vs = v.values(), d_os = d_o.values();
    const reference::AttentionTensors t{qs, ks, vs, d_os};
    const auto statistics = reference::attention_statistics(reference_shape(), t);
    reference::Row wanted_q, wanted_k, wanted_v;
    for (std::int64_t batch = 0; batch < shape.batch; ++batch)
      for (std::int64_t token = 0; token < shape.sequence; ++token) {
        for (std::int64_t head = 0; head < shape.heads; ++head)
          for (double x : reference::attention_dq(reference_shape(), t, {batch, head, token}))
            wanted_q.push_back(x);
        for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
          const auto key = reference::attention_key_gradients(reference_shape(), t, statistics,
                                                              {batch, head, token});
          wanted_k.insert(wanted_k.end(), key.dk.begin(), key.dk.end());
          wanted_v.insert(wanted_v.end(), key.dv.begin(), key.dv.end());
        }
      }
    AttentionErrors errors;
    errors.dq = reference::relative_error(dq.values(), wanted_q);
    errors.dk = reference::relative_error(dk.values(), wanted_k);
    errors.dv = reference::relative_error(dv.values(), wanted_v);
    return errors;
  }
};

}  // namespace stepcast::calibrate::cuda_kernels
