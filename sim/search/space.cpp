#include "sim/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/suggest.hpp"
#include "sim/scenario/machine_rules.hpp"
#include "sim/scenario/rule_tally.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

/// What possible_so_far() says of what it cuts.
constexpr std::string_view impossible = "degrees that do not divide GPUs, heads, layers or batch";

/// A number that a user may write for a knob is below this.
std::int64_t most_written(const Knob& knob) { return knob.parts == 1 ? 1'000'000 : 1000; }

/// In which order knobs are set: those first that many rules read, so that what a rule forbids is
/// left out early; then all others as they stand in knobs().
constexpr std::string_view set_first[] = {
    "plan.tensor",      "plan.context",           "plan.pipeline",  "batch.micro_batch",
    "plan.schedule",    "plan.virtual_stages",    "plan.expert",    "plan.expert_tensor",
    "plan.data",        "plan.sequence_parallel", "plan.recompute", "plan.recompute_every",
    "plan.shard_degree"};

std::span<const Knob* const> knobs_as_set() {
  static const std::vector<const Knob*> order = [] {
    std::vector<const Knob*> out;
    for (const Knob& knob : knobs().first(first_of_plan)) out.push_back(&knob);
    for (const std::string_view key : set_first) out.push_back(find_knob(key));
    for (const Knob& knob : knobs())
      if (std::ranges::find(out, &knob) == out.end()) out.push_back(&knob);
    return out;
  }();
  return order;
}

/// The rules that read this knob last.
struct EarlyRules {
  std::vector<const workloads::Rule<workloads::PlanCase>*> plan;
  std::vector<const workloads::Rule<workloads::FrameworkPlan>*> framework;
};

const EarlyRules& rules_after(const Knob& knob) {
  static const std::vector<EarlyRules> by_knob = [] {
    std::vector<EarlyRules> out(num_knobs);
    for (const Knob& each : knobs()) {
      const std::string_view key(each.key), name = key.substr(key.find('.') + 1);
      EarlyRules& rules = out[each.place()];
      for (const auto all : {workloads::plan_rules(), workloads::expert_rules()})
        for (const auto& rule : all)
          if (rule.last == name) rules.plan.push_back(&rule);
      for (const auto& rule : workloads::framework_rules())
        if (rule.last == name) rules.framework.push_back(&rule);
    }
    return out;
  }();
  return by_knob[knob.place()];
}

/// What `of` breaks of them is counted as so many plans.
template <class Case>
bool keeps(const std::vector<const workloads::Rule<Case>*>& rules, const Case& of, RuleTally* tally,
           std::size_t plans) {
  for (const workloads::Rule<Case>* rule : rules) {
    if (!rule->broken(of)) continue;
    if (tally != nullptr) tally->add(*rule, of, plans);
    return false;
  }
  return true;
}

/// Lets a knob write its member of the draft.
void write(const Knob& knob, const KnobValues& values, DraftPlan& draft) {
  if (knob.member.set == nullptr) return;
  knob.member.set(draft, knob.in(values));
  const bool two_chunks = draft.plan.placement() != workloads::Placement::looped;
  if (two_chunks && draft.plan.virtual_stages == 1) draft.plan.virtual_stages = 2;  // unasked
}

}  // namespace

SearchSpace::SearchSpace(std::vector<Scenario> bases, bool across_nodes)
    : bases_(std::move(bases)) {
  expects(!bases_.empty() && bases_.size() < 256, "a framework at least");
  const Scenario asked = bases_.front();
  const KnobValues written = knob_values_of(asked);
  for (const Knob& knob : knobs()) {
    const bool open = std::ranges::count(asked.open, std::string_view(knob.key)) > 0;
    values_.push_back(knob.on_request && !open ? std::vector{knob.in(written)}
                                               : knob.usual(asked, across_nodes));
  }
  for (Scenario& base : bases_) base.stage_layers.clear(), base.open.clear();
  values_[framework_knob].clear();
  for (std::size_t i = 0; i < bases_.size(); ++i)
    values_[framework_knob].push_back(static_cast<std::int64_t>(i));
  make_variants();
}

std::size_t SearchSpace::variant_of(const KnobValues& values) {
  const auto at = [&](std::size_t knob) { return static_cast<std::size_t>(values[knob]); };
  return (at(framework_knob) * recipe_names.size() + at(recipe_knob)) * graphs_names.size() +
         at(graphs_knob);
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
  const KnobValues written = knob_values_of(scenario);
  for (const Knob& knob : knobs()) {
    const bool open = std::ranges::count(scenario.open, std::string_view(knob.key)) > 0;
    out.values_.push_back(open ? knob.usual(scenario, true) : std::vector{knob.in(written)});
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

void SearchSpace::set(const std::string& key, const TomlValue& written) {
  const Knob* knob = find_knob(key);
  if (knob == nullptr || knob->place() == framework_knob) {
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
  values_[knob->place()] = std::move(values);
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
  return values_[knob.place()];
}

std::vector<std::string> SearchSpace::choices() const {
  std::vector<std::string> out;
  for (const Knob& knob : knobs()) {
    const auto& values = values_of(knob);
    if (values.size() < 2) continue;
    std::string line = std::string(knob.key).substr(std::string_view(knob.key).find('.') + 1);
    const bool framework = knob.place() == framework_knob;
    for (const std::int64_t value : values)
      line += " " + (framework ? bases_[static_cast<std::size_t>(value)].software.framework
                               : knob.word(value));
    out.push_back(std::move(line));
  }
  return out;
}

/// Whether values up to this knob leave anything: what the largest spaces consist of is cut here.
bool SearchSpace::possible_so_far(std::size_t index, const KnobValues& values) const {
  static const Knob &tensor = *find_knob("plan.tensor"), &context = *find_knob("plan.context"),
                    &pipeline = *find_knob("plan.pipeline"),
                    &micro_batch = *find_knob("batch.micro_batch"),
                    &chunks = *find_knob("plan.virtual_stages");
  const Scenario& s = base(values);
  const auto model_ranks = [&] { return tensor.in(values)*context.in(values)*pipeline.in(values); };
  if (index == tensor.place())
    return s.gpus % tensor.in(values) == 0 && s.model.heads % tensor.in(values) == 0;
  if (index == pipeline.place())
    return s.gpus % model_ranks() == 0 && s.global_batch % (s.gpus / model_ranks()) == 0 &&
           pipeline.in(values) <= s.model.layers;
  if (index == micro_batch.place() && micro_batch.in(values) > 0)
    return s.global_batch / (s.gpus / model_ranks()) % micro_batch.in(values) == 0;
  if (index == chunks.place()) {  // DualPipe's two chunks of a stage are of two copies
    const std::int64_t parts = chunks.in(values) == 2 ? 1 : chunks.in(values);
    return pipeline.in(values)*parts <= s.model.layers;
  }
  return true;
}

/// Of the values of all knobs that are set after so many.
std::size_t SearchSpace::combinations_after(std::size_t set) const {
  std::size_t out = 1;
  for (const Knob* knob : knobs_as_set().subspan(set)) out *= values_of(*knob).size();
  return out;
}

/// Of plans that come to the same, the one with the first value of each knob.
bool SearchSpace::first_of_its_kind(const KnobValues& chosen, const DraftPlan& plan) const {
  for (const Knob& knob : knobs()) {
    const auto& values = values_of(knob);
    if (values.size() < 2) continue;
    const std::int64_t own = knob.in(chosen), same = knob.same(plan, own);
    for (const std::int64_t earlier : values) {
      if (earlier == own) break;
      if (knob.same(plan, earlier) == same) return false;
    }
  }
  return true;
}

struct SearchSpace::Walk {
  const Values& values;
  DraftPlan& draft;
  const Visit& visit;
  RuleTally* tally;
};

/// Whether a draft in which `knob` is the last of the knobs that are set may become a plan.
bool SearchSpace::may_become_a_plan(const Knob& knob, std::size_t set, const KnobValues& values,
                                    const Walk& walk) const {
  DraftPlan& draft = walk.draft;
  const std::size_t plans = combinations_after(set);
  if (!possible_so_far(knob.place(), values)) {
    if (walk.tally != nullptr) walk.tally->add(knob.key, std::string(impossible), plans);
    return false;
  }
  if (knob.key == std::string_view("batch.micro_batch") &&
      !complete_batch(draft.base, draft.wishes, draft.plan, draft.batch, walk.tally, plans))
    return false;
  const EarlyRules& rules = rules_after(knob);
  const workloads::TransformerShape& model = draft.base.model;
  return keeps(rules.plan, {model, draft.plan, draft.batch}, walk.tally, plans) &&
         keeps(rules.framework, {model, draft.plan, draft.base.software}, walk.tally, plans);
}

/// With the first `set` knobs set.
bool SearchSpace::walk_knob(std::size_t set, KnobValues& values, const Walk& walk) const {
  DraftPlan& draft = walk.draft;
  if (set == num_knobs)
    return !complete_rest(draft.base, draft.wishes, draft.plan, draft.batch, walk.tally) ||
           !first_of_its_kind(values, draft) || walk.visit(values, draft);
  const Knob& knob = *knobs_as_set()[set];
  for (const std::int64_t value : walk.values[knob.place()]) {
    knob.put(values, value);
    write(knob, values, draft);
    if (may_become_a_plan(knob, set + 1, values, walk) && !walk_knob(set + 1, values, walk))
      return false;
  }
  return true;
}

bool SearchSpace::walk_framework(std::int64_t framework, const Values& of, const Visit& visit,
                                 RuleTally* tally) const {
  KnobValues values{};
  knobs()[framework_knob].put(values, framework);
  for (const std::int64_t recipe : of[recipe_knob])
    for (const std::int64_t graphs : of[graphs_knob]) {
      knobs()[recipe_knob].put(values, recipe);
      knobs()[graphs_knob].put(values, graphs);
      const Scenario& s = base(values);
      DraftPlan draft{s, s.plan, s.batch};
      if (!walk_knob(first_of_plan, values, {of, draft, visit, tally})) return false;
    }
  return true;
}

void SearchSpace::walk(const Visit& visit, RuleTally* tally) const {
  for (const std::int64_t framework : values_[framework_knob])
    if (!walk_framework(framework, values_, visit, tally)) return;
}

void SearchSpace::walk_few(const Visit& visit) const {
  constexpr std::string_view whole[] = {"plan.tensor", "plan.context", "plan.pipeline",
                                        "plan.expert", "plan.data",    "plan.sequence_parallel"};
  Values few = values_;
  for (const Knob& knob : knobs()) {
    std::vector<std::int64_t>& values = few[knob.place()];
    if (std::ranges::find(whole, knob.key) != std::end(whole)) continue;
    const bool again = knob.key == std::string_view("plan.recompute");
    values = again && values.size() > 1 ? std::vector{values.front(), values.back()}
                                        : std::vector{values.front()};
  }
  for (const std::int64_t framework : few[framework_knob])
    if (!walk_framework(framework, few, visit, nullptr)) return;
}

std::optional<KnobValues> SearchSpace::first_plan(std::int64_t framework) const {
  std::optional<KnobValues> out;
  walk_framework(
      framework, values_,
      [&](const KnobValues& values, const DraftPlan&) {
        out = values;
        return false;
      },
      nullptr);
  return out;
}

Scenario SearchSpace::scenario_of(const KnobValues& values) const {
  Scenario s = base(values);
  DraftPlan draft{base(values), s.plan, s.batch};
  for (const Knob* knob : knobs_as_set()) write(*knob, values, draft);
  s.plan = std::move(draft.plan);
  s.reduce = draft.wishes.reduce;
  s.micro = draft.wishes.micro;
  s.stage_layers = std::move(draft.wishes.stage_layers);
  if (draft.wishes.split)
    s.stage_layers = workloads::stage_layers(*draft.wishes.split, s.model, s.plan.parts());
  const std::int64_t tensor = s.plan.tensor, pipeline = s.plan.pipeline;
  return with_degrees(std::move(s), tensor, pipeline);
}

}  // namespace stepcast::sim
