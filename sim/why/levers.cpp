#include "sim/why/levers.hpp"

#include "engine/check.hpp"
#include "sim/scenario/machine_rules.hpp"

namespace stepcast::sim {
namespace {

using S = const Scenario&;
using workloads::Graphs;
using workloads::GroupedProducts;

struct Turn {
  const char* name;
  const char* key;
  bool (*left)(S);
  void (*make)(Scenario&);
};

bool experts(S s) { return s.model.experts.count > 0; }
bool dispatches(S s) { return experts(s) && s.plan.expert.degree * s.plan.expert_tensor() > 1; }

constexpr Turn turns[] = {
    {"no host sync in layers of experts", "software.host_sync = \"none\"",
     [](S s) {
       return experts(s) && s.software.experts.host_counts && !s.plan.expert.pad_to_capacity &&
              s.software.host.graphs != Graphs::iteration;
     },
     [](Scenario& s) { s.software.experts.host_counts = false; }},
    {"as many tokens for every expert", "routing.kind = \"balanced\"",
     [](S s) { return dispatches(s) && s.plan.routing.kind != workloads::RoutingKind::balanced; },
     [](Scenario& s) {
       s.plan.routing.kind = workloads::RoutingKind::balanced;
       s.plan.routing.counts.clear();
     }},
    {"one launch for the products of all experts", "software.grouped_gemm = \"one_launch\"",
     [](S s) { return experts(s) && s.software.experts.products == GroupedProducts::loop; },
     [](Scenario& s) { s.software.experts.products = GroupedProducts::one_launch; }},
    {"CUDA graphs of layers up to their exchange", "software.cuda_graphs = \"layers\"",
     [](S s) { return experts(s) && s.software.host.graphs == Graphs::none; },
     [](Scenario& s) { s.software.host.graphs = Graphs::layers; }},
    {"bf16 in the place of the recipe", "precision.recipe = \"none\"",
     [](S s) { return s.precision.recipe != workloads::Recipe::none; },
     [](Scenario& s) {
       s.precision.recipe = workloads::Recipe::none;
       s.precision.fp8_parameters = false;
       suit_gpu(s.precision, s.node.gpu, s.precision_origin);
     }},
};

}  // namespace

std::vector<Lever> levers(const Scenario& scenario, Session& session) {
  std::vector<Lever> out;
  for (const Turn& turn : turns) {
    if (!turn.left(scenario)) continue;
    Lever& lever = out.emplace_back(Lever{turn.name, turn.key, {}, {}});
    Scenario there = scenario;
    turn.make(there);
    there.run.fold = true;             // the same picosecond, sooner
    there.run.memory_is_known = true;  // how long it would take, were there room
    try {
      lever.step = session.step(there).step_time;
    } catch (const InputError& error) {
      lever.refused = error.problem();
    }
  }
  return out;
}

}  // namespace stepcast::sim
