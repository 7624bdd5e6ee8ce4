#include "sim/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/suggest.hpp"
#include "sim/scenario/machine_rules.hpp"
#include "sim/scenario/rule_tally.hpp"

namespace stepcast::sim {
namespace {

constexpr double parts_of_one = 1e6;      // Candidate::capacity counts them
constexpr std::size_t first_of_plan = 3;  // knobs before it choose the base: framework, recipe ...

std::size_t index_of(const Knob& knob) { return static_cast<std::size_t>(&knob - knobs().data()); }

/// What possible_so_far() says of what it cuts.
constexpr std::string_view impossible = "degrees that do not divide GPUs, heads, layers or batch";

/// A number that a user may write for a knob is below this.
std::int64_t most_written(const Knob& knob) { return knob.parts == 1 ? 1'000'000 : 1000; }

PlanWishes wishes_of(const Scenario& base, const Candidate& c) {
  PlanWishes out;
  if (c.reduce != Reduction::software)
    out.reduce =
        c.reduce == Reduction::each ? workloads::ReduceWhen::each : workloads::ReduceWhen::last;
  out.micro = base.micro;
  if (c.micro_batch > 0) out.micro = {.micro_batch = c.micro_batch, .micro_batches = std::nullopt};
  if (c.split == Split::embeddings)
    out.split = workloads::StageSplit::embeddings;
  else
    out.stage_layers = base.stage_layers;
  return out;
}

void put(const Candidate& c, workloads::ParallelPlan& plan) {
  plan.data = c.data;
  plan.tensor = c.tensor;
  plan.context = c.context;
  plan.pipeline = c.pipeline;
  plan.virtual_stages = c.virtual_stages;
  plan.sequence_parallel = c.sequence_parallel;
  plan.shard_degree = c.shard_degree;
  plan.schedule = c.schedule;
  const bool two_chunks = plan.placement() != workloads::Placement::looped;
  if (two_chunks && c.virtual_stages == 1) plan.virtual_stages = 2;  // as where nobody says
  plan.recompute = c.recompute;
  plan.recompute_every = c.recompute_every;
  plan.prefetch = c.prefetch;
  plan.expert.degree = c.expert;
  plan.expert.tensor = c.expert_tensor;
  plan.expert.dispatcher = c.dispatcher;
  plan.expert.capacity_factor = static_cast<double>(c.capacity) / parts_of_one;
  plan.expert.pad_to_capacity = c.pad_to_capacity;
  plan.expert.shared_overlap = c.shared_overlap;
  plan.expert.overlap = c.expert_overlap;
  plan.expert.delay_wgrad = c.delay_wgrad;
  plan.tensor_overlap = c.tensor_overlap;
  plan.offload.activations = static_cast<double>(c.activation_offload) / parts_of_one;
  plan.offload.optimizer = static_cast<double>(c.optimizer_offload) / parts_of_one;
}

}  // namespace

SearchSpace::SearchSpace(std::vector<Scenario> bases, bool across_nodes)
    : bases_(std::move(bases)) {
  expects(!bases_.empty() && bases_.size() < 256, "a framework at least");
  const Scenario asked = bases_.front();
  const Candidate written = candidate_of(asked);
  for (const Knob& knob : knobs()) {
    const bool open = std::ranges::count(asked.open, std::string_view(knob.key)) > 0;
    values_.push_back(knob.on_request && !open ? std::vector{knob.get(written)}
                                               : knob.usual(asked, across_nodes));
  }
  for (Scenario& base : bases_) base.stage_layers.clear(), base.open.clear();
  values_[0].clear();
  for (std::size_t i = 0; i < bases_.size(); ++i)
    values_[0].push_back(static_cast<std::int64_t>(i));
  make_variants();
}

std::size_t SearchSpace::variant_of(const Candidate& c) {
  return (c.framework * recipe_names.size() + static_cast<std::size_t>(c.recipe)) *
             graphs_names.size() +
         static_cast<std::size_t>(c.graphs);
}

/// Of each framework one for every recipe and graphs; what a GPU cannot run, legal() refuses.
void SearchSpace::make_variants() {
  variants_.clear();
  for (const Scenario& base : bases_)
    for (const auto& [recipe_name, recipe] : recipe_names)
      for (const auto& [graphs_name, graphs] : graphs_names) {
        Scenario& s = variants_.emplace_back(base);
        s.precision.recipe = recipe;
        s.software.host.graphs = graphs;
        if (!workloads::broken_rule(recipe_gpu_rules(), RecipeOnGpu{recipe, s.node.gpu}))
          suit_gpu(s.precision, s.node.gpu, s.precision_origin);
      }
}

SearchSpace SearchSpace::of_open_keys(const Scenario& scenario) {
  SearchSpace out;
  out.bases_ = {scenario};
  out.bases_.front().open.clear();
  const Candidate written = candidate_of(scenario);
  for (const Knob& knob : knobs()) {
    const bool open = std::ranges::count(scenario.open, std::string_view(knob.key)) > 0;
    out.values_.push_back(open ? knob.usual(scenario, true) : std::vector{knob.get(written)});
    if (open && knob.key == std::string_view("plan.stage_layers"))
      out.bases_.front().stage_layers.clear();
    // A plan tells the values of its own tables; this one is told among the changed keys.
    if (open && knob.key == std::string_view("software.cuda_graphs"))
      out.bases_.front().changed.emplace_back(knob.key);
  }
  out.make_variants();
  return out;
}

bool same_framework(const workloads::Software& a, const workloads::Software& b) {
  return a.framework == b.framework && a.version == b.version;
}

Candidate candidate_of(const Scenario& s) {
  Candidate c;
  const workloads::ParallelPlan& plan = s.plan;
  const auto small = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  c.tensor = small(plan.tensor), c.context = small(plan.context);
  c.pipeline = small(plan.pipeline), c.virtual_stages = small(plan.virtual_stages);
  c.shard_degree = small(plan.shard_degree);
  c.recompute_every = small(plan.recompute_every), c.prefetch = small(plan.prefetch);
  c.micro_batch = small(s.micro.micro_batch.value_or(0));
  c.data = plan.data, c.schedule = plan.schedule, c.recompute = plan.recompute;
  c.sequence_parallel = plan.sequence_parallel;
  c.expert = small(plan.expert.degree), c.expert_tensor = small(plan.expert.tensor);
  c.capacity = small(std::llround(plan.expert.capacity_factor * parts_of_one));
  c.pad_to_capacity = plan.expert.pad_to_capacity, c.shared_overlap = plan.expert.shared_overlap;
  c.dispatcher = plan.expert.dispatcher;
  c.expert_overlap = plan.expert.overlap, c.delay_wgrad = plan.expert.delay_wgrad;
  c.tensor_overlap = plan.tensor_overlap;
  c.activation_offload = small(std::llround(plan.offload.activations * parts_of_one));
  c.optimizer_offload = small(std::llround(plan.offload.optimizer * parts_of_one));
  c.recipe = s.precision.recipe, c.graphs = s.software.host.graphs;
  if (s.reduce)
    c.reduce = *s.reduce == workloads::ReduceWhen::each ? Reduction::each : Reduction::last;
  return c;
}

void SearchSpace::set(const std::string& key, const TomlValue& written) {
  const Knob* knob = find_knob(key);
  if (knob == nullptr || index_of(*knob) == 0) {
    std::vector<std::string> known;
    for (const Knob& each : knobs().subspan(1)) known.emplace_back(each.key);
    throw InputError(written.where, "'" + key + "' is no knob of a plan", suggestion(key, known));
  }
  const auto value_of = [&](const TomlValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value.data);
        number != nullptr && knob->words.empty() && *number >= knob->least &&
        *number < most_written(*knob))
      return *number * knob->parts;
    if (const auto* share = std::get_if<double>(&value.data);
        share != nullptr && knob->parts > 1 && *share >= 0 && *share < 1000)
      return static_cast<std::int64_t>(std::llround(*share * static_cast<double>(knob->parts)));
    const auto* flag = std::get_if<bool>(&value.data);
    const std::string word = flag != nullptr           ? (*flag ? "true" : "false")
                             : value.text() != nullptr ? *value.text()
                                                       : "";
    std::vector<std::string> words;
    for (const auto& [name, number] : knob->words) {
      if (word == name) return number;
      words.emplace_back(name);
    }
    throw InputError(value.where,
                     fmt::format("{} is no value of '{}'", write_toml_value(value), key),
                     !words.empty()     ? suggestion(word, words)
                     : knob->parts == 1 ? fmt::format("a whole number from {} on", knob->least)
                                        : "a number, as 1.25");
  };
  std::vector<std::int64_t> values;
  if (const auto* items = written.array())
    for (const TomlValue& item : *items) values.push_back(value_of(item));
  else
    values.push_back(value_of(written));
  if (values.empty()) throw InputError(written.where, "'" + key + "' has no values", "e.g. [1, 2]");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
        values.begin() + static_cast<std::ptrdiff_t>(i))
      throw InputError(written.where, "'" + key + "' has a value twice");
  values_[index_of(*knob)] = std::move(values);
}

void SearchSpace::set_all(const TomlValue& table) {
  const TomlValue dotted = dotted_keys(table);
  for (const TomlEntry& entry : *dotted.table()) set(entry.key, entry.value);
}

TomlValue dotted_keys(const TomlValue& table) {
  if (table.table() == nullptr) throw InputError(table.where, "[space] must be a table");
  TomlValue out = toml_table(table.where);
  for (const TomlEntry& entry : *table.table()) {
    if (entry.value.table() == nullptr) {
      out.set(entry.key, entry.value);
      continue;
    }
    for (const TomlEntry& inner : *entry.value.table())
      out.set(entry.key + "." + inner.key, inner.value);
  }
  return out;
}

const std::vector<std::int64_t>& SearchSpace::values_of(const Knob& knob) const {
  return values_[index_of(knob)];
}

std::vector<std::string> SearchSpace::choices() const {
  std::vector<std::string> out;
  for (const Knob& knob : knobs()) {
    const auto& values = values_of(knob);
    if (values.size() < 2) continue;
    std::string line = std::string(knob.key).substr(std::string_view(knob.key).find('.') + 1);
    const bool framework = index_of(knob) == 0;
    for (const std::int64_t value : values)
      line += " " + (framework ? bases_[static_cast<std::size_t>(value)].software.framework
                               : knob.word(value));
    out.push_back(std::move(line));
  }
  return out;
}

/// Whether values up to this knob leave anything: what the largest spaces consist of is cut here.
bool SearchSpace::possible_so_far(std::size_t index, const Candidate& c) const {
  const Scenario& s = base(c);
  const std::string_view key = knobs()[index].key;
  const std::int64_t model_ranks = std::int64_t{c.tensor} * c.context * c.pipeline;
  if (key == "plan.tensor") return s.gpus % c.tensor == 0 && s.model.heads % c.tensor == 0;
  if (key == "plan.pipeline")
    return s.gpus % model_ranks == 0 && s.global_batch % (s.gpus / model_ranks) == 0 &&
           c.pipeline <= s.model.layers;
  if (key == "batch.micro_batch" && c.micro_batch > 0)
    return s.global_batch / (s.gpus / model_ranks) % c.micro_batch == 0;
  if (key == "plan.virtual_stages")  // DualPipe's two chunks of a stage are of two copies
    return c.pipeline * (c.virtual_stages == 2 ? 1 : c.virtual_stages) <= s.model.layers;
  return true;
}

bool SearchSpace::legal(const Candidate& c, CandidatePlan& out, RuleTally* tally) const {
  put(c, out.plan);
  return complete(out.base, wishes_of(out.base, c), out.plan, out.batch, tally);
}

/// Of the values of all knobs after this one.
std::size_t SearchSpace::combinations_after(std::size_t index) const {
  std::size_t out = 1;
  for (std::size_t i = index + 1; i < values_.size(); ++i) out *= values_[i].size();
  return out;
}

/// Of plans that come to the same, the one with the first value of each knob.
bool SearchSpace::first_of_its_kind(const Candidate& c, const CandidatePlan& plan) const {
  for (const Knob& knob : knobs()) {
    const auto& values = values_of(knob);
    if (values.size() < 2) continue;
    const std::int64_t own = knob.get(c), same = knob.same(plan, own);
    for (const std::int64_t earlier : values) {
      if (earlier == own) break;
      if (knob.same(plan, earlier) == same) return false;
    }
  }
  return true;
}

struct SearchSpace::Walk {
  CandidatePlan& scratch;
  const Visit& visit;
  RuleTally* tally;
};

bool SearchSpace::walk_knob(std::size_t index, Candidate& c, const Walk& walk) const {
  if (index == knobs().size())
    return !legal(c, walk.scratch, walk.tally) || !first_of_its_kind(c, walk.scratch) ||
           walk.visit(c, walk.scratch);
  const Knob& knob = knobs()[index];
  for (const std::int64_t value : values_[index]) {
    knob.set(c, value);
    if (!possible_so_far(index, c)) {
      if (walk.tally != nullptr)
        walk.tally->add(knob.key, std::string(impossible), combinations_after(index));
    } else if (!walk_knob(index + 1, c, walk)) {
      return false;
    }
  }
  return true;
}

bool SearchSpace::walk_framework(std::uint8_t framework, const Visit& visit,
                                 RuleTally* tally) const {
  Candidate candidate;
  candidate.framework = framework;
  for (const std::int64_t recipe : values_[1])
    for (const std::int64_t graphs : values_[2]) {
      knobs()[1].set(candidate, recipe);
      knobs()[2].set(candidate, graphs);
      const Scenario& s = base(candidate);
      CandidatePlan scratch{s, s.plan, s.batch};
      if (!walk_knob(first_of_plan, candidate, {scratch, visit, tally})) return false;
    }
  return true;
}

void SearchSpace::walk(const Visit& visit, RuleTally* tally) const {
  for (const std::int64_t framework : values_[0])
    if (!walk_framework(static_cast<std::uint8_t>(framework), visit, tally)) return;
}

std::optional<Candidate> SearchSpace::first_plan(std::uint8_t framework) const {
  std::optional<Candidate> out;
  walk_framework(
      framework,
      [&](const Candidate& c, const CandidatePlan&) {
        out = c;
        return false;
      },
      nullptr);
  return out;
}

Scenario SearchSpace::scenario_of(const Candidate& c) const {
  Scenario s = base(c);
  put(c, s.plan);
  const PlanWishes wishes = wishes_of(s, c);
  s.reduce = wishes.reduce;
  s.micro = wishes.micro;
  s.stage_layers = wishes.stage_layers;
  if (wishes.split)
    s.stage_layers = workloads::stage_layers(*wishes.split, s.model, s.plan.parts());
  return with_degrees(std::move(s), c.tensor, c.pipeline);
}

}  // namespace stepcast::sim
