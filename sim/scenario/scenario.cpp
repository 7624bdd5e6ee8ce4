#include "sim/scenario/scenario.hpp"

#include "engine/check.hpp"
#include "sim/scenario/machine_rules.hpp"
#include "sim/scenario/rule_tally.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/step/framework_rules.hpp"
#include "workloads/step/recipe_rules.hpp"

namespace stepcast::sim {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

using Asked = const DegreeCase&;

bool divides_gpus(Asked a) {
  const auto fits = [&](std::int64_t degree) { return degree >= 1 && degree <= a.gpus; };
  return fits(a.plan.tensor) && fits(a.plan.pipeline) && fits(a.plan.context) &&
         a.gpus % (a.plan.tensor * a.plan.pipeline * a.plan.context) == 0;
}

std::int64_t sequences(Asked a) { return a.global_batch / a.plan.data_degree; }

std::string leaves_a_rest(const char* key, std::int64_t by, Asked a) {
  return std::string(key) + " = " + text(by) + " does not divide the " + text(sequences(a)) +
         " sequences of a replica";
}
std::string product(Asked) { return "global = micro_batch x micro_batches x data degree"; }

constexpr workloads::Rule<DegreeCase> degrees[] = {
    {"tensor", [](Asked a) { return !divides_gpus(a); },
     [](Asked a) {
       const std::int64_t context = a.plan.context;
       return "tensor " + text(a.plan.tensor) + " x pipeline " + text(a.plan.pipeline) +
              (context > 1 ? " x context " + text(context) : "") + " does not divide the " +
              text(a.gpus) + " GPUs";
     },
     [](Asked a) {
       return std::string(a.plan.context > 1 ? "tensor x context x pipeline x data degree = GPUs"
                                             : "tensor x pipeline x data degree = GPUs");
     }},
};

constexpr workloads::Rule<DegreeCase> batches[] = {
    {"data", [](Asked a) { return a.global_batch % a.plan.data_degree != 0; },
     [](Asked a) {
       return "a global batch of " + text(a.global_batch) + " sequences does not divide over " +
              text(a.plan.data_degree) + " replicas";
     },
     [](Asked) {
       return std::string("the global batch must be a multiple of the data-parallel degree");
     }},
    {"micro_batch",
     [](Asked a) { return a.micro.micro_batch && sequences(a) % *a.micro.micro_batch != 0; },
     [](Asked a) { return leaves_a_rest("micro_batch", *a.micro.micro_batch, a); }, product},
    {"micro_batches",
     [](Asked a) {
       return !a.micro.micro_batch && a.micro.micro_batches &&
              sequences(a) % *a.micro.micro_batches != 0;
     },
     [](Asked a) { return leaves_a_rest("micro_batches", *a.micro.micro_batches, a); }, product},
};

}  // namespace

Scenario::Scenario() = default;
Scenario::Scenario(const Scenario&) = default;
Scenario::Scenario(Scenario&&) noexcept = default;
Scenario& Scenario::operator=(const Scenario&) = default;
Scenario& Scenario::operator=(Scenario&&) noexcept = default;
Scenario::~Scenario() = default;

std::span<const workloads::Rule<DegreeCase>> degree_rules() { return degrees; }
std::span<const workloads::Rule<DegreeCase>> batch_rules() { return batches; }

workloads::Batch batch_of(const DegreeCase& a, std::int64_t sequence) {
  const std::int64_t all = sequences(a);
  workloads::Batch out{.micro_batch = 1, .micro_batches = all, .sequence = sequence};
  if (a.micro.micro_batch)
    out.micro_batch = *a.micro.micro_batch, out.micro_batches = all / out.micro_batch;
  else if (a.micro.micro_batches)
    out.micro_batches = *a.micro.micro_batches, out.micro_batch = all / out.micro_batches;
  else if (a.plan.pipeline == 1)
    out.micro_batch = all, out.micro_batches = 1;
  return out;
}

namespace {

/// Throws the first rule that is broken.
struct Throw {
  template <class Case>
  bool operator()(std::span<const workloads::Rule<Case>> rules, const Case& of,
                  const std::string& where) const {
    workloads::check_rules(rules, of, where);
    return true;
  }
};

/// Says whether none is, and counts what is.
struct Ask {
  RuleTally* tally = nullptr;
  std::size_t plans = 1;
  template <class Case>
  bool operator()(std::span<const workloads::Rule<Case>> rules, const Case& of,
                  const std::string&) const {
    const auto* broken = workloads::broken_rule(rules, of);
    if (broken != nullptr && tally != nullptr) tally->add(*broken, of, plans);
    return broken == nullptr;
  }
};

/// complete_batch(); `legal` is shown every table of rules.
template <class Legal>
bool complete_batch_with(const Legal& legal, const Scenario& s, const PlanWishes& wishes,
                         workloads::ParallelPlan& plan, workloads::Batch& batch) {
  const DegreeCase asked{plan, s.gpus, s.global_batch, wishes.micro};
  if (!legal(recipe_gpu_rules(), RecipeOnGpu{s.precision.recipe, s.node.gpu}, s.precision_origin))
    return false;
  if (!legal(degree_rules(), asked, s.plan_origin)) return false;
  plan.data_degree = s.gpus / (plan.tensor * plan.pipeline * plan.context);
  if (!legal(batch_rules(), asked, s.batch_origin)) return false;
  batch = batch_of(asked, s.batch.sequence);
  return true;
}

template <class Legal>
bool complete_rest_with(const Legal& legal, const Scenario& s, const PlanWishes& wishes,
                        workloads::ParallelPlan& plan, const workloads::Batch& batch) {
  const bool groups = plan.data == workloads::DataParallel::zero1 && s.model.experts.count == 0;
  plan.shard_group = groups ? s.software.data.shard_group : 0;
  plan.reduce = wishes.reduce.value_or(workloads::usual_reduction(plan, s.software));
  plan.stage_layers = wishes.stage_layers;
  if (plan.stage_layers.empty() && plan.parts() <= s.model.layers)
    plan.stage_layers = workloads::stage_layers(
        wishes.split.value_or(s.software.pipeline.stage_split), s.model, plan.parts());
  const workloads::PlanCase cut{s.model, plan, batch};
  return legal(workloads::plan_rules(), cut, s.plan_origin) &&
         legal(workloads::expert_rules(), cut, s.plan_origin) &&
         legal(workloads::lora_plan_rules(), cut, s.plan_origin) &&
         legal(workloads::framework_rules(), workloads::FrameworkPlan{s.model, plan, s.software},
               s.plan_origin) &&
         legal(plan_node_rules(), PlanOnNode{plan, s.node}, s.plan_origin) &&
         legal(workloads::recipe_rules(),
               workloads::RecipeCase{s.model, plan, batch, s.precision, s.software},
               s.precision_origin);
}

}  // namespace

bool complete_batch(const Scenario& scenario, const PlanWishes& wishes,
                    workloads::ParallelPlan& plan, workloads::Batch& batch, RuleTally* tally,
                    std::size_t plans) {
  return complete_batch_with(Ask{tally, plans}, scenario, wishes, plan, batch);
}

bool complete_rest(const Scenario& scenario, const PlanWishes& wishes,
                   workloads::ParallelPlan& plan, const workloads::Batch& batch, RuleTally* tally) {
  return complete_rest_with(Ask{tally}, scenario, wishes, plan, batch);
}

Scenario with_degrees(Scenario scenario, std::int64_t tensor, std::int64_t pipeline) {
  scenario.plan.tensor = tensor;
  scenario.plan.pipeline = pipeline;
  const PlanWishes wishes{scenario.reduce, scenario.micro, std::nullopt, scenario.stage_layers};
  complete_batch_with(Throw{}, scenario, wishes, scenario.plan, scenario.batch);
  complete_rest_with(Throw{}, scenario, wishes, scenario.plan, scenario.batch);
  workloads::check(scenario.model, scenario.plan, scenario.batch, scenario.plan_origin);
  scenario.open.clear();
  return scenario;
}

double local_batch(const Scenario& scenario) {
  return static_cast<double>(scenario.global_batch) / static_cast<double>(scenario.gpus);
}

}  // namespace stepcast::sim
