#include "sim/scenario/assumptions.hpp"

#include <algorithm>
#include <string_view>

#include "workloads/plan/plan.hpp"

namespace stepcast::sim {
namespace {

using S = const Scenario&;

/// What is not known, and whether a step rests on it.
struct Unknown {
  bool (*used)(S);
  std::string_view says;
};

bool gpu_is(S s, std::initializer_list<std::string_view> begins) {
  return std::ranges::any_of(
      begins, [&](std::string_view begin) { return s.node.gpu.name.starts_with(begin); });
}

bool blackwell(S s) {
  return s.node.gpu.architecture.nccl == topology::NcclGeneration::blackwell &&
         s.node.gpu.nvlink.value > 0;
}
bool by_rccl(S s) {
  return s.node.gpu.architecture.collectives == topology::CollectiveLibrary::rccl;
}

/// Tokens leave their rank for their experts.
bool exchanges(S s) {
  return s.model.experts.count > 0 && s.plan.expert.degree * s.plan.expert_tensor() > 1;
}

bool own_kernels(S s) {
  using enum workloads::Dispatcher;
  const workloads::Dispatcher dispatcher = s.plan.expert.dispatcher;
  return exchanges(s) && (dispatcher == node_aware || dispatcher == nvlink_domain);
}

bool gathers_or_scatters(S s) {
  const bool shards = s.plan.data != workloads::DataParallel::ddp && s.plan.copies() > 1;
  return shards || (s.plan.tensor > 1 && s.plan.sequence_parallel);
}

// What the survey of 2026 looked for and did not find (docs/modern.md).
constexpr Unknown unknowns[] = {
    {[](S s) {
       return blackwell(s) && ((exchanges(s) && !own_kernels(s)) || gathers_or_scatters(s));
     },
     "NCCL's all-to-all, all-gather and reduce-scatter on Blackwell are known by latency and "
     "largest rate alone: sizes between follow its cost model"},
    {[](S s) {
       return exchanges(s) && gpu_is(s, {"b300", "gb300"});
     },
     "no exchange between experts was measured on B300 or GB300: it takes the shares of their "
     "links "
     "that others reach"},
    {[](S s) { return s.precision.recipe != workloads::Recipe::none && gpu_is(s, {"gb200"}); },
     "products of 8 and 4 bits were not measured by shape on GB200: they follow B200's and B300's"},
    {[](S s) { return exchanges(s) && s.plan.routing.kind == workloads::RoutingKind::uniform; },
     "how unevenly real training loads experts is not published: tokens are routed uniformly at "
     "random (routing.kind, max_violation)"},
    {own_kernels,
     "the fixed cost of the exchange's kernels is not published by tokens: it is one time for all "
     "sizes (scenarios/exchange)"},
    {[](S s) {
       return own_kernels(s) && s.plan.expert.dispatcher == workloads::Dispatcher::nvlink_domain;
     },
     "HybridEP's rates by size are not published: they are DeepEP V2's"},
    {[](S s) { return s.precision.recipe == workloads::Recipe::nvfp4; },
     "Transformer Engine's quantize kernels of nvfp4 are not published: they follow another "
     "library's"},
    {[](S s) {
       return s.model.experts.count > 0 && !s.plan.expert.pad_to_capacity &&
              s.software.host.graphs == workloads::Graphs::iteration;
     },
     "a graph of the whole step has buffers of one size for experts' rows: that they overflow and "
     "the step runs again is left out"},
    {[](S s) { return workloads::adapted(s.model); },
     "no run with adapters is among those that error bars rest on: they are full training's"},
    {[](S s) { return s.node.gpu.announced; },
     "the GPU is announced, not released: its figures are the vendor's, its kernels' shares of "
     "them "
     "those of the generation before"},
    {[](S s) { return by_rccl(s) && s.gpus > 1; },
     "RCCL's own tables are not read: it is taken to choose as NCCL of that version does"},
    {[](S s) { return s.node.name.find("36x2") != std::string::npos; },
     "two racks of 36 are timed as one of 72: the width between their switches is not published"},
    {[](S s) { return s.model.name == "deepseek-v3" && gpu_is(s, {"h800"}); },
     "no step of DeepSeek-V3 on H800 is published: its 180,000 GPU hours for a trillion tokens are "
     "1,543 tokens/s per GPU"},
};

}  // namespace

std::vector<std::string> assumptions(const Scenario& s) {
  std::vector<std::string> out;
  if (s.collective) return out;
  for (const Unknown& unknown : unknowns)
    if (unknown.used(s)) out.emplace_back(unknown.says);
  return out;
}

}  // namespace stepcast::sim
