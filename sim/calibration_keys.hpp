// What makes two rows of a calibration table the same measurement: what was measured, on what, and
// how. Results, quality and source do not count.
#pragma once

#include <tuple>

#include "sim/calibration_table.hpp"

namespace stepcast::sim {

inline auto key_of(const GemmRow& r) {
  return std::tie(r.gpu, r.dtype, r.m, r.n, r.k, r.layout, r.data, r.accumulate, r.choice, r.cache);
}
inline auto key_of(const AttentionRow& r) {
  return std::tie(r.gpu, r.dtype, r.pass, r.implementation, r.batch, r.heads, r.kv_heads,
                  r.sequence, r.head_dim, r.mask, r.cache);
}
inline auto key_of(const ElementwiseRow& r) {
  return std::tie(r.gpu, r.dtype, r.kind, r.implementation, r.tokens, r.shape, r.width, r.pass,
                  r.cache);
}
inline auto key_of(const CollectiveRow& r) {
  return std::tie(r.gpu, r.dtype, r.collective, r.ranks, r.nodes, r.gpus_per_node, r.bytes.value,
                  r.fabric, r.nccl, r.timing, r.processes, r.node_bandwidth.value, r.algorithm,
                  r.protocol);
}
inline auto key_of(const CopyRow& r) {
  return std::tie(r.gpu, r.kind, r.what, r.gpus, r.bytes.value, r.cache);
}
inline auto key_of(const NcclTuningRow& r) {
  return std::tie(r.gpu, r.nccl, r.collective, r.algorithm, r.protocol, r.ranks, r.nodes);
}
inline auto key_of(const NcclChoiceRow& r) {
  return std::tie(r.gpu, r.nccl, r.collective, r.ranks, r.nodes, r.bytes.value);
}
inline auto key_of(const LaunchRow& r) { return std::tie(r.gpu, r.what); }
inline auto key_of(const OverlapRow& r) {
  return std::tie(r.gpu, r.kernel, r.collective, r.ranks, r.nodes, r.bytes.value);
}
inline auto key_of(const PowerRow& r) { return std::tie(r.gpu, r.load); }

}  // namespace stepcast::sim
