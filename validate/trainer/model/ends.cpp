#include "validate/trainer/model/ends.hpp"

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using workloads::GroupKind;

}  // namespace

template <class Real>
HeadActivations<Real> make_head_activations(Kernels<Real>& kernels, const RankShare& s) {
  return {.rstd = kernels.allocate_wide(s.local_tokens),
          .lse = kernels.allocate_wide(s.tokens),
          .head_input = kernels.allocate(s.tokens * s.hidden),
          .logits = kernels.allocate(s.tokens * static_cast<std::size_t>(s.vocab.size)),
          .targets = kernels.allocate_tokens(s.tokens)};
}

template <class Real>
Ends<Real>::Ends(const TrainerJob& job, const RankShare& share, StepCalls<Real>& calls,
                 Parameters<Real>& parameters, Workspace<Real>& work)
    : share_(share),
      calls_(calls),
      parameters_(parameters),
      work_(work),
      tied_here_(job.model.tied_embeddings && share.first_stage && share.last_stage) {
  if (share.first_stage) embedding_ = tensor("embedding");
  if (!share.last_stage) return;
  final_norm_ = tensor("final_norm");
  head_ = tensor(tied_here_ ? "embedding" : "head");
  loss_ = calls.kernels().allocate_wide(1);
  target_ = calls.kernels().allocate_wide(share.tokens);
  if (share.split) maximum_ = calls.kernels().allocate_wide(share.tokens);
  if (share.split) sums_ = calls.kernels().allocate_wide(2 * share.tokens);
}

template <class Real>
std::size_t Ends<Real>::tensor(const char* name) const {
  for (std::size_t i = 0; i < share_.parameters.root.size(); ++i)
    if (share_.parameters.root[i].name == name) return i;
  expects(false, "a tensor of the root");
  return 0;
}

// Each tensor rank has some rows of the table; the others' come out as zeros, and are summed.
template <class Real>
void Ends<Real>::embedding_forward(Tokens tokens, Out x) {
  const Out rows = share_.sequence_parallel ? work_.whole.all() : x;
  calls_.embedding_forward(rows, parameters_.weight(root, embedding_), tokens, share_.vocab);
  if (share_.sequence_parallel)
    calls_.reduce_scatter("embedding.forward", GroupKind::tensor, rows, x);
  else if (share_.split)
    calls_.all_reduce("embedding.forward", GroupKind::tensor, x);
}

template <class Real>
void Ends<Real>::embedding_backward(Tokens tokens, In gradient) {
  In dy = gradient;
  if (share_.sequence_parallel) {
    calls_.all_gather("embedding.backward", GroupKind::tensor, gradient, work_.whole.all());
    dy = work_.whole.all();
  }
  const Out dtable = parameters_.gradient(root, embedding_);
  if (!tied_here_) calls_.embedding_zero(dtable);  // else the head's gradient is in it
  calls_.embedding_backward(dtable, dy, tokens, share_.vocab);
  parameters_.complete(root, embedding_);
}

template <class Real>
void Ends<Real>::head_forward(In x, HeadActivations<Real>& kept) {
  const Out y = share_.sequence_parallel ? work_.local.all() : kept.head_input.all();
  calls_.rmsnorm_forward("final_norm.forward", y, kept.rstd.all(), x,
                         parameters_.weight(root, final_norm_));
  if (share_.sequence_parallel)
    calls_.all_gather("head.forward", GroupKind::tensor, y, kept.head_input.all());
  calls_.gemm("head.forward", Layout::nt, kept.logits.all(), kept.head_input.all(), head_weight(),
              {.m = as_count(share_.tokens), .n = share_.vocab.size, .k = as_count(share_.hidden)});
  calls_.loss_forward(kept.lse.all(), target_.all(), kept.logits.all(), kept.targets.all(),
                      share_.vocab);
  if (share_.split) join_columns(kept.lse.all(), target_.all());
  calls_.kernels().add_loss(loss_.all(), kept.lse.all(), target_.all());
}

template <class Real>
void Ends<Real>::start_step() {
  const Wide<Real> none = 0;
  if (loss_.size() > 0) calls_.kernels().upload(loss_.all(), {&none, 1});
}

template <class Real>
double Ends<Real>::loss() {
  Wide<Real> sum = 0;
  calls_.kernels().download({&sum, 1}, loss_.all());
  return static_cast<double>(sum);
}

template <class Real>
void Ends<Real>::join_columns(WideOut lse, WideOut target) {
  using WideCopy = CopyPiece<Wide<Real>, Wide<Real>>;
  Kernels<Real>& kernels = calls_.kernels();
  const WideOut most = maximum_.all(), sums = sums_.all();
  const std::size_t n = share_.tokens;
  const auto copy = [&](WideOut to, WideOut from) {
    const WideCopy piece{to, from};
    kernels.copies_wide({&piece, 1});
  };
  copy(most, lse);
  calls_.all_reduce_wide("loss.max", GroupKind::tensor, most, Reduction::max);
  kernels.lse_to_sums(sums.first(n), lse, most);
  copy(sums.last(n), target);
  calls_.all_reduce_wide("loss.sums", GroupKind::tensor, sums);
  kernels.sums_to_lse(lse, most, sums.first(n));
  copy(target, sums.last(n));
}

template <class Real>
void Ends<Real>::head_backward(In x, HeadActivations<Real>& kept, double scale, Out gradient) {
  const Out dlogits = kept.logits.all();  // in place
  calls_.loss_backward(dlogits, kept.lse.all(), kept.targets.all(), share_.vocab,
                       static_cast<Wide<Real>>(scale));
  const Out dx = work_.whole.all();
  calls_.gemm("head.dgrad", Layout::nn, dx, dlogits, head_weight(),
              {.m = as_count(share_.tokens), .n = as_count(share_.hidden), .k = share_.vocab.size});
  calls_.gemm("head.wgrad", Layout::tn, parameters_.gradient(root, head_), dlogits,
              kept.head_input.all(),
              {.m = share_.vocab.size, .n = as_count(share_.hidden), .k = as_count(share_.tokens)});
  if (!tied_here_) parameters_.complete(root, head_);
  Out dy = dx;
  if (share_.sequence_parallel) {
    dy = work_.local.all();
    calls_.reduce_scatter("head.backward", GroupKind::tensor, dx, dy);
  } else if (share_.split) {
    calls_.all_reduce("head.backward", GroupKind::tensor, dx);
  }
  calls_.rmsnorm_backward("final_norm.backward", gradient, parameters_.gradient(root, final_norm_),
                          dy, x, parameters_.weight(root, final_norm_), kept.rstd.all());
  parameters_.complete(root, final_norm_);
}

template HeadActivations<float> make_head_activations(Kernels<float>&, const RankShare&);
template HeadActivations<double> make_head_activations(Kernels<double>&, const RankShare&);
template HeadActivations<Bfloat16> make_head_activations(Kernels<Bfloat16>&, const RankShare&);
template HeadActivations<Half> make_head_activations(Kernels<Half>&, const RankShare&);
template class Ends<float>;
template class Ends<double>;
template class Ends<Bfloat16>;
template class Ends<Half>;

}  // namespace stepcast::validate
