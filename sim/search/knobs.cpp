#include "sim/search/knobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "sim/files/names.hpp"
#include "workloads/pieces/piece.hpp"
#include "workloads/plan/stage_split.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

using Values = std::vector<std::int64_t>;
using Words = std::span<const std::pair<std::string_view, std::int64_t>>;
using workloads::DataParallel;

// What nobody tries without a reason, so that the usual spaces stay small; --space says otherwise.
constexpr std::int64_t least_tokens_of_context_rank = 4096, most_micro_batch = 16, most_chunks = 20;

template <class E, std::size_t N>
constexpr auto numbered(const Names<E, N>& names) {
  std::array<std::pair<std::string_view, std::int64_t>, N> out{};
  for (std::size_t i = 0; i < N; ++i)
    out[i] = {names[i].first, static_cast<std::int64_t>(names[i].second)};
  return out;
}

constexpr auto data_words = numbered(data_parallel_names);
constexpr auto schedule_words = numbered(schedule_names);
constexpr auto recompute_words = numbered(recompute_names);
constexpr auto dispatcher_words = numbered(dispatcher_names);
constexpr auto recipe_words = numbered(recipe_names);
constexpr auto optimizer_words = numbered(optimizer_form_names);
constexpr auto graph_words = numbered(graphs_names);
constexpr auto tensor_overlap_words = numbered(tensor_overlap_names);
constexpr std::array<std::pair<std::string_view, std::int64_t>, 3> reduce_words{
    {{"software", 0}, {"last", 1}, {"each", 2}}};
constexpr std::array<std::pair<std::string_view, std::int64_t>, 2> split_words{
    {{"software", 0}, {"embeddings", 1}}};
constexpr std::array<std::pair<std::string_view, std::int64_t>, 2> flag_words{
    {{"false", 0}, {"true", 1}}};

/// By operators where torch's checkpoint can.
Values recompute_kinds(const Scenario& s) {
  Values out;
  for (const auto& [word, value] : recompute_words) {
    const auto kind = static_cast<workloads::Recompute>(value);
    const bool operators = kind == workloads::Recompute::operators;
    if (!operators || s.software.eager() || s.software.compiled()) out.push_back(value);
  }
  return out;
}

/// 1, 2, 4 ... up to `most`.
Values doublings(std::int64_t most) {
  Values out;
  for (std::int64_t n = 1; n <= most; n *= 2) out.push_back(n);
  return out;
}

Values divisors(std::int64_t of, std::int64_t most) {
  Values out;
  for (std::int64_t n = 1; n <= std::min(of, most); ++n)
    if (of % n == 0) out.push_back(n);
  return out;
}

Values all_words(Words words) {
  Values out;
  for (const auto& [word, value] : words) out.push_back(value);
  return out;
}

/// A node's ranks, and some of its multiples.
Values shard_degrees(const Scenario& base) {
  Values out{0};
  for (std::int64_t n = base.node.gpus; n < base.gpus && n > 1; n *= 4) out.push_back(n);
  return out;
}

/// A part of one as a knob's value.
constexpr std::int64_t millionths = 1'000'000;

/// Of layers of experts; without any, what the scenario says.
Values of_experts(const Scenario& base, const Values& usual, std::int64_t idle) {
  return base.model.experts.count > 0 ? usual : Values{idle};
}

/// The schedules of today's stages. GPipe is never faster here and never smaller; orders of a file
/// are of one number of stages: both are tried where a user names them.
Values released_schedules() {
  Values out;
  for (const auto& [word, value] : schedule_words)
    if (value != static_cast<std::int64_t>(workloads::Schedule::gpipe)) out.push_back(value);
  return out;
}

std::int64_t itself(const DraftPlan&, std::int64_t value) { return value; }

/// Where a rank has all experts, nothing is dispatched.
std::int64_t same_dispatcher(const DraftPlan& c, std::int64_t value) {
  const bool idle = c.plan.expert.degree * c.plan.expert_tensor() == 1 &&
                    c.plan.expert.exchange_sms == 0 &&
                    workloads::bits_per_element(c.plan.expert.dispatch_dtype) == 16;
  return idle ? 0 : value;
}

bool units(const DraftPlan& c) {
  const Scenario& s = c.base;
  return workloads::StepInputs{s.model, c.plan, c.batch, s.precision, s.software}.sharded();
}

std::int64_t same_reduction(const DraftPlan& c, std::int64_t value) {
  if (c.batch.micro_batches == 1) return 0;
  const bool each =
      workloads::usual_reduction(c.plan, c.base.software) == workloads::ReduceWhen::each;
  return value == (each ? 2 : 1) ? 0 : value;
}

std::int64_t same_split(const DraftPlan& c, std::int64_t value) {
  if (c.plan.pipeline == 1) return 0;
  const auto layers = [&](workloads::StageSplit split) {
    return workloads::stage_layers(split, c.base.model, c.plan.parts());
  };
  const auto own = c.base.software.pipeline.stage_split;
  if (value == 1 && layers(own) == layers(workloads::StageSplit::embeddings)) return 0;
  return value;
}

/// A member of the plan; of a part of one, millionths.
template <auto... Path>
struct PlanMember {
  static std::int64_t written(const Scenario& s) {
    const auto& member = (s.plan.*....*Path);
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(member)>>)
      return std::llround(member * static_cast<double>(millionths));
    else
      return static_cast<std::int64_t>(member);
  }
  static void set(DraftPlan& draft, std::int64_t value) {
    auto& member = (draft.plan.*....*Path);
    using Type = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_floating_point_v<Type>)
      member = static_cast<double>(value) / static_cast<double>(millionths);
    else
      member = static_cast<Type>(value);
  }
};
template <auto... Path>
constexpr KnobMember in_plan{PlanMember<Path...>::written, PlanMember<Path...>::set};

using Base = const Scenario&;
using Plan = const DraftPlan&;
using workloads::ExpertPlan, workloads::OffloadPlan, workloads::ParallelPlan, workloads::ReduceWhen;

constexpr KnobMember framework{[](Base) -> std::int64_t { return 0; }, nullptr};
constexpr KnobMember recipe{[](Base s) { return static_cast<std::int64_t>(s.precision.recipe); },
                            nullptr};
constexpr KnobMember graphs{
    [](Base s) { return static_cast<std::int64_t>(s.software.host.graphs); }, nullptr};

constexpr KnobMember micro_batch{
    [](Base s) { return s.micro.micro_batch.value_or(0); },
    [](DraftPlan& draft, std::int64_t value) {
      draft.wishes.micro = value > 0 ? MicroBatching{value, std::nullopt} : draft.base.micro;
    }};

/// In the order of reduce_words.
constexpr KnobMember reduction{[](Base s) -> std::int64_t {
                                 return !s.reduce ? 0 : *s.reduce == ReduceWhen::last ? 1 : 2;
                               },
                               [](DraftPlan& draft, std::int64_t value) {
                                 draft.wishes.reduce.reset();
                                 if (value != 0)
                                   draft.wishes.reduce =
                                       value == 1 ? ReduceWhen::last : ReduceWhen::each;
                               }};

/// In the order of split_words. Layers that a scenario gives one by one are the software's here.
constexpr KnobMember split{[](Base) -> std::int64_t { return 0; },
                           [](DraftPlan& draft, std::int64_t value) {
                             draft.wishes.split.reset();
                             draft.wishes.stage_layers = draft.base.stage_layers;
                             if (value == 0) return;
                             draft.wishes.split = workloads::StageSplit::embeddings;
                             draft.wishes.stage_layers.clear();
                           }};

const Knob table[num_knobs] = {
    {"software.framework", framework, [](Base, bool) { return Values{0}; }, itself, {}},
    {"precision.recipe", recipe, [](Base, bool) { return all_words(recipe_words); }, itself,
     recipe_words, true},
    {"software.cuda_graphs", graphs, [](Base, bool) { return all_words(graph_words); }, itself,
     graph_words, true},
    {"plan.tensor",
     in_plan<&ParallelPlan::tensor>,
     [](Base b, bool across) { return divisors(b.model.heads, across ? b.gpus : b.node.gpus); },
     itself,
     {}},
    {"plan.context",
     in_plan<&ParallelPlan::context>,
     [](Base b, bool) {
       return doublings(std::max<std::int64_t>(1, b.batch.sequence / least_tokens_of_context_rank));
     },
     itself,
     {}},
    {"plan.pipeline",
     in_plan<&ParallelPlan::pipeline>,
     [](Base b, bool) { return divisors(b.gpus, b.model.layers); },
     itself,
     {}},
    {"batch.micro_batch",
     micro_batch,
     [](Base b, bool) { return doublings(std::min(b.global_batch, most_micro_batch)); },
     itself,
     {}},
    {"plan.virtual_stages",
     in_plan<&ParallelPlan::virtual_stages>,
     [](Base b, bool) { return divisors(b.model.layers, most_chunks); },
     [](Plan c, std::int64_t value) {  // others have two, said or not
       const bool two = c.plan.placement() != workloads::Placement::looped;
       return two && value <= 2 ? 1 : value;
     },
     {}},
    {"plan.data", in_plan<&ParallelPlan::data>, [](Base, bool) { return all_words(data_words); },
     itself, data_words},
    {"plan.sequence_parallel", in_plan<&ParallelPlan::sequence_parallel>,
     [](Base, bool) { return all_words(flag_words); },
     [](Plan c, std::int64_t value) { return c.plan.tensor == 1 ? 0 : value; }, flag_words},
    {"plan.recompute", in_plan<&ParallelPlan::recompute>,
     [](Base b, bool) { return recompute_kinds(b); }, itself, recompute_words},
    {"plan.recompute_every",
     in_plan<&ParallelPlan::recompute_every>,
     [](Base, bool) {
       return Values{1, 2, 4};
     },
     itself,
     {}},
    {"plan.shard_degree",
     in_plan<&ParallelPlan::shard_degree>,
     [](Base b, bool) { return shard_degrees(b); },
     [](Plan c, std::int64_t value) {
       const bool all = value == c.plan.copies() && c.plan.data != DataParallel::ddp;
       return all ? 0 : value;
     },
     {},
     false,
     1,
     0},
    {"plan.reduce", reduction, [](Base, bool) { return all_words(reduce_words); }, same_reduction,
     reduce_words},
    {"plan.prefetch",
     in_plan<&ParallelPlan::prefetch>,
     [](Base, bool) {
       return Values{1, 2};
     },
     [](Plan c, std::int64_t value) { return units(c) ? value : 1; },
     {},
     false,
     1,
     0},
    {"plan.stage_layers", split, [](Base, bool) { return all_words(split_words); }, same_split,
     split_words},
    {"plan.schedule", in_plan<&ParallelPlan::schedule>,
     [](Base, bool) { return released_schedules(); },
     [](Plan c, std::int64_t value) {
       const bool one_turn = c.plan.pipeline == 1 && c.batch.micro_batches == 1;
       const auto schedule = static_cast<workloads::Schedule>(value);
       const bool needs_stages =
           workloads::placement_of(schedule, c.plan.orders) != workloads::Placement::looped;
       return one_turn && !needs_stages ? 0 : value;
     },
     schedule_words, true},
    {"plan.expert",
     in_plan<&ParallelPlan::expert, &ExpertPlan::degree>,
     [](Base b, bool) { return of_experts(b, divisors(b.model.experts.count, b.gpus), 1); },
     itself,
     {}},
    {"plan.expert_tensor",
     in_plan<&ParallelPlan::expert, &ExpertPlan::tensor>,
     [](Base b, bool) {
       return of_experts(b, {1, 0}, 0);
     },
     [](Plan c, std::int64_t value) { return value == 0 ? c.plan.tensor : value; },
     {},
     false,
     1,
     0},
    {"plan.dispatcher", in_plan<&ParallelPlan::expert, &ExpertPlan::dispatcher>,
     [](Base b, bool) { return of_experts(b, all_words(dispatcher_words), 1); }, same_dispatcher,
     dispatcher_words, true},
    {"plan.capacity_factor",
     in_plan<&ParallelPlan::expert, &ExpertPlan::capacity_factor>,
     [](Base b, bool) {
       return of_experts(b, {0, millionths, millionths * 5 / 4, millionths * 3 / 2}, 0);
     },
     itself,
     {},
     true,
     millionths,
     0},
    {"plan.pad_to_capacity", in_plan<&ParallelPlan::expert, &ExpertPlan::pad_to_capacity>,
     [](Base b, bool) { return of_experts(b, all_words(flag_words), 0); }, itself, flag_words,
     true},
    {"plan.shared_expert_overlap", in_plan<&ParallelPlan::expert, &ExpertPlan::shared_overlap>,
     [](Base b, bool) {
       return b.model.experts.shared_ffn > 0 ? all_words(flag_words) : Values{0};
     },
     itself, flag_words},
    {"plan.expert_overlap", in_plan<&ParallelPlan::expert, &ExpertPlan::overlap>,
     [](Base b, bool) { return of_experts(b, all_words(flag_words), 0); }, itself, flag_words,
     true},
    {"plan.delay_wgrad", in_plan<&ParallelPlan::expert, &ExpertPlan::delay_wgrad>,
     [](Base b, bool) { return of_experts(b, all_words(flag_words), 0); },
     [](Plan c, std::int64_t value) { return c.plan.expert.overlap ? value : 0; }, flag_words,
     true},
    {"plan.tensor_overlap", in_plan<&ParallelPlan::tensor_overlap>,
     [](Base, bool) { return all_words(tensor_overlap_words); },
     [](Plan c, std::int64_t value) { return c.plan.tensor == 1 ? 0 : value; },
     tensor_overlap_words, true},
    {"plan.optimizer", in_plan<&ParallelPlan::optimizer>,
     [](Base, bool) { return all_words(optimizer_words); }, itself, optimizer_words, true},
    {"plan.activation_offload",
     in_plan<&ParallelPlan::offload, &OffloadPlan::activations>,
     [](Base, bool) {
       return Values{0, millionths / 4, millionths / 2, millionths};
     },
     itself,
     {},
     true,
     millionths,
     0},
    {"plan.optimizer_offload",
     in_plan<&ParallelPlan::offload, &OffloadPlan::optimizer>,
     [](Base, bool) {
       return Values{0, millionths / 2, millionths};
     },
     itself,
     {},
     true,
     millionths,
     0},
};

}  // namespace

std::size_t Knob::place() const { return static_cast<std::size_t>(this - table); }

void Knob::put(KnobValues& values, std::int64_t value) const {
  values[place()] = static_cast<std::int32_t>(value);
}

std::string Knob::word(std::int64_t value) const {
  for (const auto& [word, number] : words)
    if (number == value) return std::string(word);
  return parts == 1 ? std::to_string(value)
                    : fmt::format("{:g}", static_cast<double>(value) / static_cast<double>(parts));
}

std::span<const Knob> knobs() { return table; }

const Knob* find_knob(std::string_view key) {
  const auto found = std::ranges::find(table, key, &Knob::key);
  return found == std::end(table) ? nullptr : &*found;
}

KnobValues knob_values_of(const Scenario& scenario) {
  KnobValues out{};
  for (const Knob& knob : table) knob.put(out, knob.member.written(scenario));
  return out;
}

}  // namespace stepcast::sim
