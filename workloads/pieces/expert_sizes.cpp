#include "workloads/pieces/expert_sizes.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/plan/model_size.hpp"
#include "workloads/plan/routing.hpp"

namespace stepcast::workloads {
namespace {

/// Rows of one expert from one rank: ceil(T k / E x factor) (Megatron core moe_utils.py,
/// get_capacity()).
std::int64_t capacity(const StepInputs& in, std::int64_t tokens) {
  const ExpertShape& e = in.shape.experts;
  const double mean = static_cast<double>(tokens * e.per_token) / static_cast<double>(e.count);
  return static_cast<std::int64_t>(std::ceil(mean * in.plan.expert.capacity_factor));
}

/// Of all layers and micro-batches, each with a routing of its own, so many are drawn.
constexpr std::int64_t draws = 16;

}  // namespace

bool pads_to_capacity(const StepInputs& in) { return in.plan.expert.pad_to_capacity; }
bool drops_tokens(const StepInputs& in) {
  return in.plan.expert.capacity_factor > 0.0 && !pads_to_capacity(in);
}

ExpertSizes::ExpertSizes(const StepInputs& in) {
  const ExpertShape& e = in.shape.experts;
  const ExpertPlan& plan = in.plan.expert;
  const std::int64_t part = in.plan.expert_tensor();
  const Sizes sizes(in);
  tokens = sizes.local_tokens;
  per_token = e.per_token;
  all = e.count;
  experts = e.count / plan.degree;
  model = sizes.hidden;
  hidden = expert_width(in.shape);
  ffn = e.ffn / part;
  shared = e.shared_ffn / in.plan.tensor;
  element = sizes.element;
  // Those of a group's ranks and of the ranks that share each expert with them.
  fullest = pads_to_capacity(in)
                ? 1.0
                : fullest_part(in.plan.routing, e, plan.degree, tokens * plan.degree * part, draws);
  sent = tokens * e.per_token;
  const auto mean = static_cast<double>(sent * part);
  rows = std::max<std::int64_t>(1, std::llround(mean * fullest));
  most = tokens * plan.degree * part * std::min(per_token, experts);
  if (plan.capacity_factor == 0.0) return;
  const std::int64_t room = capacity(in, tokens);
  const std::int64_t full = room * experts * plan.degree * part;
  most = pads_to_capacity(in) ? full : std::min(most, full);
  if (pads_to_capacity(in)) {
    sent = room * e.count;
    rows = full;
    return;
  }
  if (in.software.own()) {  // has room for what may come
    sent = std::min(sent, room * e.count);
    rows = std::min(rows, full);
    return;
  }
  // What finds its expert full is dropped, by each rank from its own tokens.
  const CappedRows left =
      capped_rows(in.plan.routing, e, plan.degree, tokens, plan.degree * part, room, draws);
  sent = std::max<std::int64_t>(1, std::llround(static_cast<double>(sent) * left.kept));
  rows = std::max<std::int64_t>(1, std::llround(mean * left.fullest));
  fullest = left.fullest / left.kept;
}

}  // namespace stepcast::workloads
