// Keys about layers of experts: of [plan], [routing] and [software], for members.hpp.
#pragma once

#include "sim/files/names.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/software.hpp"

namespace stepcast::sim {

/// Keys of [plan] about experts.
template <class Expert, class Visitor>
void visit_expert_plan(Expert& expert, Visitor& visit) {
  visit.positive(searched({"expert", "expert-parallel degree: ranks that share a layer's experts",
                           "expert", "N"}),
                 expert.degree);
  visit.positive(searched({"expert_tensor", "ranks that share each expert; default: as tensor",
                           "expert-tensor", "N"}),
                 expert.tensor);
  visit.may(searched({"dispatcher", "how tokens travel to experts", "dispatcher", "KIND"}),
            expert.dispatcher, dispatcher_names);
  visit.may({"dispatch_dtype", "type of tokens on their way to experts"}, expert.dispatch_dtype,
            dtype_names);
  visit.may({"exchange_sms", "SMs that the exchange holds; 0: the library's usual number"},
            expert.exchange_sms);
  visit.may(
      searched({"capacity_factor", "most rows of an expert over the mean; 0: no token is dropped"}),
      expert.capacity_factor);
  visit.may(searched({"pad_to_capacity", "experts take as many rows whatever comes"}),
            expert.pad_to_capacity);
  visit.may(searched({"shared_expert_overlap", "shared experts run beside the exchange"}),
            expert.shared_overlap);
  visit.may(searched({"expert_overlap", "the exchange runs under another micro-batch's compute",
                      "expert-overlap"}),
            expert.overlap);
  visit.may(
      searched({"delay_wgrad", "weight gradients apart, where they hide more of the exchange"}),
      expert.delay_wgrad);
}

template <class Routing, class Visitor>
void visit_routing(Routing& routing, Visitor&& visit) {
  visit.may({"kind", "where tokens go", "routing", "KIND"}, routing.kind, token_routing_names);
  visit.positive({"seed", "of random routing"}, routing.seed);
  visit.may({"max_violation", "rows of the fullest expert over the mean, less one"},
            routing.max_violation);
  visit.may({"counts", "tokens of each expert, an array, or a CSV file with a column tokens"},
            routing.counts);
}

template <class Experts, class Visitor>
void visit_expert_software(Experts& experts, Visitor& visit) {
  visit.may({"experts", "has layers of experts"}, experts.runs);
  visit.may({"dispatchers", "ways of tokens to experts that it has"}, experts.dispatchers,
            dispatcher_names);
  visit.may({"grouped_gemm", "products of a rank's experts: a call each, or one kernel"},
            experts.products, grouped_product_names);
  visit.may({"router_fused", "scores, top-k and counts in one kernel"}, experts.fused_router);
  visit.may({"permute_fused", "rows move to experts in one kernel"}, experts.fused_permute);
  visit.may({"weighed_back", "fused: rows are weighed when they are back, and kept for backward"},
            experts.weighed_back);
  visit.may({"host_sync", "whether the host reads the rows of experts in every layer"},
            experts.host_counts, host_sync_names);
}

}  // namespace stepcast::sim
