#include "workloads/pieces/context_piece.hpp"

#include <algorithm>
#include <utility>

#include "workloads/pieces/attention_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

/// A ring never holds all scores of its rows, so kernels that keep them gather instead.
ContextExchange exchange_of(const PieceWriter& w) {
  const ContextExchange wanted = w.in().software.attention.exchange;
  return wanted == ContextExchange::ring && keeps_scores(w) ? ContextExchange::all_gather : wanted;
}

/// One step of the ring: the own block under its causal mask, then half blocks, s/c queries by
/// s/(2c) keys or s/(2c) by s/c, which are two squares of s/(2c) for each sequence. Without a mask
/// every block is whole.
AttentionPart ring_block(const PieceWriter& w, bool own) {
  AttentionPart part = whole_attention(w);
  part.rows = part.sequence = part.sequence / w.in().plan.context;
  if (own || !part.causal) return part;
  part.batch *= 2;
  part.rows = part.sequence = part.sequence / 2;
  part.causal = false;
  return part;
}

/// All of a rank's rows against the gathered keys: as much as c blocks, 2c squares of s/(2c) under
/// the mask.
AttentionPart gathered_rows(const PieceWriter& w) {
  const std::int64_t c = w.in().plan.context;
  AttentionPart part = whole_attention(w);
  if (keeps_scores(w)) {
    part.rows /= c;
    return part;
  }
  const std::int64_t squares = part.causal ? 2 * c : c;
  part.rows = part.sequence = part.causal ? part.sequence / (2 * c) : part.sequence / c;
  part.batch *= squares;
  part.causal = false;
  return part;
}

/// All of the sequence for 1/c of the heads.
AttentionPart some_heads(const PieceWriter& w) {
  const std::int64_t c = w.in().plan.context;
  AttentionPart part = whole_attention(w);
  part.heads = std::max<std::int64_t>(1, part.heads / c);
  part.kv_heads = std::max<std::int64_t>(1, part.kv_heads / c);
  return part;
}

/// Outputs of two blocks joined by their statistics: read one, read and write the other.
void merge(PieceWriter& w, const std::string& name, std::int64_t bytes) {
  w.pass(name, pointwise, 3 * bytes);
}

/// K and V.
std::int64_t kept_bytes(const PieceWriter& w) { return key_bytes(w) + value_bytes(w); }

/// c - 1 exchanges of K and V, each under the block at hand.
void ring_forward(PieceWriter& w) {
  const std::int64_t c = w.in().plan.context;
  for (std::int64_t step = 0; step < c; ++step) {
    const bool sends = step + 1 < c;
    if (sends) w.start_ring("context.forward", kept_bytes(w));
    write_attention_part_forward(w, ring_block(w, step == 0));
    if (step > 0) merge(w, "layer.attention.core.merge", output_bytes(w));
    if (sends) w.wait_ring();
  }
}

/// c exchanges: K and V first, with their gradients in between, these alone at last, home to their
/// rank. dQ, dK, dV of the blocks are summed.
void ring_backward(PieceWriter& w) {
  const std::int64_t c = w.in().plan.context;
  for (std::int64_t step = 0; step < c; ++step) {
    const std::int64_t pairs = step == 0 || step + 1 == c ? 1 : 2;
    w.start_ring("context.backward", pairs * kept_bytes(w));
    write_attention_part_backward(w, ring_block(w, step == 0));
    if (step > 0) merge(w, "layer.attention.core.backward.merge", query_bytes(w) + kept_bytes(w));
    w.wait_ring();
  }
}

void gather_keys(PieceWriter& w, const std::string& pass) {
  for (const auto& [tensor, bytes] : {std::pair{"k", key_bytes(w)}, {"v", value_bytes(w)}})
    w.context_collective("context." + pass + ".gather_" + tensor, CollectiveKind::all_gather,
                         w.in().plan.context * bytes);
}

/// q, k, v to the ranks of their heads and the output back, or gradients the other way.
void exchange_heads(PieceWriter& w, const std::string& name, std::int64_t bytes) {
  w.context_collective("context." + name, CollectiveKind::all_to_all, bytes);
}

}  // namespace

void write_context_attention_forward(PieceWriter& w) {
  switch (exchange_of(w)) {
    case ContextExchange::ring:
      return ring_forward(w);
    case ContextExchange::all_gather:
      gather_keys(w, "forward");
      return write_attention_part_forward(w, gathered_rows(w));
    case ContextExchange::all_to_all:
      exchange_heads(w, "forward.to_heads", query_bytes(w) + kept_bytes(w));
      write_attention_part_forward(w, some_heads(w));
      return exchange_heads(w, "forward.to_tokens", output_bytes(w));
  }
}

void write_context_attention_backward(PieceWriter& w) {
  switch (exchange_of(w)) {
    case ContextExchange::ring:
      return ring_backward(w);
    case ContextExchange::all_gather:
      gather_keys(w, "backward");
      write_attention_part_backward(w, gathered_rows(w));
      for (const auto& [tensor, bytes] : {std::pair{"k", key_bytes(w)}, {"v", value_bytes(w)}})
        w.context_collective(std::string("context.backward.scatter_") + tensor,
                             CollectiveKind::reduce_scatter, w.in().plan.context * bytes);
      return;
    case ContextExchange::all_to_all:
      exchange_heads(w, "backward.to_heads", output_bytes(w));
      write_attention_part_backward(w, some_heads(w));
      return exchange_heads(w, "backward.to_tokens", query_bytes(w) + kept_bytes(w));
  }
}

}  // namespace stepcast::workloads
