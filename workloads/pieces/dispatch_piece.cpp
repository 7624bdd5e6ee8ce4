#include "workloads/pieces/dispatch_piece.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

bool exchanges(const PieceWriter& w) { return w.in().plan.expert.degree > 1; }
Dispatcher dispatcher(const PieceWriter& w) { return w.in().plan.expert.dispatcher; }
/// Kernels that know where tokens go, rather than NCCL's collectives.
bool by_own_kernels(const PieceWriter& w) {
  return exchanges(w) &&
         (dispatcher(w) == Dispatcher::node_aware || dispatcher(w) == Dispatcher::nvlink_domain);
}
bool gathers_tokens(const PieceWriter& w) {
  return exchanges(w) && dispatcher(w) == Dispatcher::all_gather;
}
bool cuts_experts(const PieceWriter& w) { return w.in().plan.expert_tensor() > 1; }
bool fused_permute(const PieceWriter& w) { return w.in().software.experts.fused_permute; }
std::string way(bool backward) { return backward ? ".backward" : ".forward"; }

/// Scales of a row of h elements: none in 16 bits, a float per 128 elements or a byte per 32 in 8.
std::int64_t sent_row_bytes(const PieceWriter& w, const ExpertSizes& s) {
  switch (w.in().plan.expert.dispatch_dtype) {
    case Dtype::fp8:
      return s.hidden + 4;
    case Dtype::fp8_block:
      return s.hidden + 4 * ((s.hidden + 127) / 128);
    case Dtype::mxfp8:
      return s.hidden + (s.hidden + 31) / 32;
    default:
      return s.row_bytes();
  }
}

/// The host reads how many rows come, so that nothing is launched before the device has counted
/// them (Megatron core token_dispatcher.py, cuda_sync_point; DeepEP spins on the count likewise).
void wait_for_counts(PieceWriter& w) {
  if (w.in().software.experts.host_counts && !pads_to_capacity(w.in())) w.host_wait();
}

/// Rows of each expert, counted from the map of tokens and experts (a byte each), and gathered from
/// the ranks that share experts; six kernels on a few numbers.
void count_rows(PieceWriter& w, const ExpertSizes& s) {
  if (pads_to_capacity(w.in())) return;
  w.pass("layer.experts.count", router, s.tokens * s.all + 8 * s.all);
  if (!exchanges(w) && !cuts_experts(w)) return;
  if (exchanges(w) && !gathers_tokens(w))
    w.expert_collective("layer.experts.counts", CollectiveKind::all_gather,
                        8 * s.all * w.in().plan.expert.degree);
  for (int i = 0; i < 6; ++i) w.pass("layer.experts.offsets", router, 16 * s.all);
}

/// Which row each pair of token and expert gets: three kernels over the map (Transformer Engine
/// permutation.py), or eight of torch that make indexes out of it.
void map_rows(PieceWriter& w, std::int64_t tokens, std::int64_t experts) {
  const int kernels = fused_permute(w) ? 3 : 8;
  for (int i = 0; i < kernels; ++i) w.pass("layer.experts.row_map", permute, 5 * tokens * experts);
}

/// `from` bytes are read and `to` written. A sum of rows by torch: cleared, and added to row by
/// row.
void spread_rows(PieceWriter& w, const std::string& name, std::int64_t from, std::int64_t to) {
  w.pass(name, permute, from + to);
}
void sum_rows(PieceWriter& w, const std::string& name, std::int64_t from, std::int64_t to) {
  if (fused_permute(w)) return w.pass(name, permute, from + to);
  w.pass(name + ".clear", pointwise, to);
  w.pass(name, permute, 3 * from);
}

/// NCCL's exchange of whole rows, and that of their weights, 4 bytes each. The other kernels send
/// weights and indices along, 8 bytes for each expert of a token.
void exchange(PieceWriter& w, const ExpertSizes& s, const std::string& name, bool to_experts,
              bool weights, const Beside& beside) {
  const ExpertPlan& plan = w.in().plan.expert;
  const ExpertShape& e = w.in().shape.experts;
  const bool own = by_own_kernels(w);
  const std::int64_t received = to_experts ? s.taken_bytes()
                                : own      ? s.token_bytes()
                                           : s.sent_bytes();
  if (w.in().software.keeps_exchanges && w.saves(received)) return beside ? beside() : void();
  const bool first_way = to_experts && weights;  // forward's dispatch alone may be in 8 bits
  TokenExchange tokens;
  tokens.dispatcher = plan.dispatcher;
  tokens.combine = !to_experts;
  tokens.tokens = s.tokens;
  tokens.row_bytes =
      (own && first_way ? sent_row_bytes(w, s) : s.row_bytes()) + (own ? 8 * s.per_token : 0);
  tokens.experts = e.count;
  tokens.per_token = e.per_token;
  tokens.groups = e.groups;
  tokens.group_limit = e.group_limit;
  tokens.sms = plan.exchange_sms;
  tokens.fullest = s.fullest;
  w.exchange_tokens(name, tokens, s.sent * tokens.row_bytes,
                    plan.shared_overlap ? beside : Beside{});
  if (!own && weights)
    w.expert_collective(name + ".weights", CollectiveKind::all_to_all, 4 * s.sent);
}

/// Tokens of all ranks that share experts, on each of them.
void gather_tokens(PieceWriter& w, const ExpertSizes& s, const std::string& name, bool sums) {
  const std::int64_t part = w.in().plan.expert_tensor();
  const std::int64_t joined = part * s.token_bytes();
  const std::int64_t all = joined * w.in().plan.expert.degree;
  if (sums) {
    w.expert_collective(name, CollectiveKind::reduce_scatter, all);
    if (part > 1)
      w.expert_tensor_collective(name + ".tensor", CollectiveKind::reduce_scatter, joined);
    return;
  }
  if (part > 1) w.expert_tensor_collective(name + ".tensor", CollectiveKind::all_gather, joined);
  w.expert_collective(name, CollectiveKind::all_gather, all);
}

std::int64_t gathered_tokens(const PieceWriter& w, const ExpertSizes& s) {
  return s.tokens * w.in().plan.expert_tensor() * w.in().plan.expert.degree;
}

/// Between the order of arrival and that of experts, a pass over all rows; and between the ranks
/// that share each expert.
void to_own_experts(PieceWriter& w, const ExpertSizes& s, const std::string& name) {
  const std::int64_t rows = s.taken_bytes();
  if (gathers_tokens(w) || by_own_kernels(w)) return spread_rows(w, name + ".permute", rows, rows);
  if (cuts_experts(w)) w.expert_tensor_collective(name, CollectiveKind::all_gather, rows);
  const bool mixed = exchanges(w) || cuts_experts(w);  // rows of several ranks
  if (mixed && s.experts > 1) w.pass(name + ".sort", permute, 2 * rows);
}
void from_own_experts(PieceWriter& w, const ExpertSizes& s, const std::string& name) {
  const std::int64_t rows = s.taken_bytes();
  if (gathers_tokens(w))
    return sum_rows(w, name + ".unpermute", rows, gathered_tokens(w, s) * s.row_bytes());
  if (by_own_kernels(w)) return sum_rows(w, name + ".unpermute", rows, rows);
  const bool mixed = exchanges(w) || cuts_experts(w);
  if (mixed && s.experts > 1) w.pass(name + ".sort", permute, 2 * rows);
  if (cuts_experts(w)) w.expert_tensor_collective(name, CollectiveKind::reduce_scatter, rows);
}

/// Megatron core up to 0.12 (moe_layer.py; in the activation from 0.13, 2659630, 2025-04-09).
bool weighs_back(const PieceWriter& w) { return w.fused() && w.in().software.experts.weighed_back; }

}  // namespace

void write_permute(PieceWriter& w, const ExpertSizes& s, bool backward) {
  const bool here = !by_own_kernels(w) && !gathers_tokens(w);
  if (backward) {
    if (here) sum_rows(w, "layer.experts.permute.backward", s.sent_bytes(), s.token_bytes());
    return;
  }
  if (by_own_kernels(w))
    w.pass("layer.experts.layout", router, 2 * s.tokens * s.all);
  else
    count_rows(w, s);
  if (drops_tokens(w.in())) wait_for_counts(w);
  if (here) {
    map_rows(w, s.tokens, s.all);
    spread_rows(w, "layer.experts.permute.forward", s.token_bytes(), s.sent_bytes() + 4 * s.sent);
  }
  w.begin_node(LayerNode::dispatch);  // what waits for the counts is the exchange alone
  if (!drops_tokens(w.in()) && !gathers_tokens(w)) wait_for_counts(w);
}

void write_dispatch(PieceWriter& w, const ExpertSizes& s, bool backward, const Beside& beside) {
  const std::string name = "layer.experts.dispatch" + way(backward);
  if (!exchanges(w)) return beside ? beside() : void();
  if (!gathers_tokens(w)) return exchange(w, s, name, !backward, true, beside);
  gather_tokens(w, s, name, backward);
  if (backward) return;
  w.expert_collective("layer.experts.map", CollectiveKind::all_gather,
                      5 * s.all * gathered_tokens(w, s));
  if (!drops_tokens(w.in())) wait_for_counts(w);
}

void write_arrival(PieceWriter& w, const ExpertSizes& s, bool backward) {
  const std::string name = "layer.experts.arrival" + way(backward);
  if (backward) return from_own_experts(w, s, name);
  if (gathers_tokens(w)) map_rows(w, gathered_tokens(w, s), s.experts);
  if (by_own_kernels(w)) map_rows(w, s.rows, s.experts);
  to_own_experts(w, s, name);
}

void write_departure(PieceWriter& w, const ExpertSizes& s, bool backward) {
  const std::string name = "layer.experts.departure" + way(backward);
  backward ? to_own_experts(w, s, name) : from_own_experts(w, s, name);
}

void write_combine(PieceWriter& w, const ExpertSizes& s, bool backward, const Beside& beside) {
  const std::string name = "layer.experts.combine" + way(backward);
  if (!exchanges(w)) return beside ? beside() : void();
  if (gathers_tokens(w)) return gather_tokens(w, s, name, !backward);
  exchange(w, s, name, backward, false, beside);
}

void write_unpermute(PieceWriter& w, const ExpertSizes& s, bool backward) {
  if (by_own_kernels(w) || gathers_tokens(w)) return;  // the way back sums a token's rows
  if (backward)
    spread_rows(w, "layer.experts.unpermute.backward", s.token_bytes(), s.sent_bytes());
  else
    sum_rows(w, "layer.experts.unpermute.forward", s.sent_bytes(), s.token_bytes());
}

/// torchtitan, up to 2026-03 whatever is compiled: rows that are back become fp32 (2 + 4), are
/// weighed (4 + 4) and narrowed (4 + 2); backward widens the gradient, multiplies it by the weights
/// and by the rows, and sums the latter (models/moe/moe.py at bb308da6, 2025-11;
/// token_dispatcher.py at b5bcd76c).
void write_weighing(PieceWriter& w, const ExpertSizes& s, bool backward) {
  if (weighs_back(w))
    return backward
               ? w.pass("layer.experts.weigh.backward", pointwise, 3 * s.sent_bytes() + 8 * s.sent)
               : w.pass("layer.experts.weigh", pointwise, 2 * s.sent_bytes() + 4 * s.sent);
  if (w.fused() || !w.in().software.experts.weighed_wide) return;
  const std::string name = std::string("layer.experts.weigh") + (backward ? ".backward" : "");
  const std::int64_t wide = s.wide_sent_bytes();
  w.pass_fp32(name + ".widen", pointwise, s.sent_bytes() + wide);
  w.pass_fp32(name, pointwise, 2 * wide);
  if (backward) {
    w.pass_fp32(name + ".weights", pointwise, 3 * wide);
    w.pass_fp32(name + ".sum", reduction, wide);
  }
  w.pass_fp32(name + ".narrow", pointwise, wide + s.sent_bytes());
}

}  // namespace stepcast::workloads
