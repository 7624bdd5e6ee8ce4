#include "sim/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/suggest.hpp"

namespace stepcast::sim {
namespace {

std::size_t index_of(const Knob& knob) { return static_cast<std::size_t>(&knob - knobs().data()); }

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
}

}  // namespace

SearchSpace::SearchSpace(std::vector<Scenario> bases, bool across_nodes)
    : bases_(std::move(bases)) {
  expects(!bases_.empty() && bases_.size() < 256, "a framework at least");
  for (Scenario& base : bases_) base.stage_layers.clear(), base.open.clear();
  for (const Knob& knob : knobs()) values_.push_back(knob.usual(bases_.front(), across_nodes));
  values_[0].clear();
  for (std::size_t i = 0; i < bases_.size(); ++i)
    values_[0].push_back(static_cast<std::int64_t>(i));
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
  }
  return out;
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
        number != nullptr && knob->words.empty() && *number >= 0 && *number < 1'000'000)
      return *number;
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
                     words.empty() ? "a whole number" : suggestion(word, words));
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
  if (table.table() == nullptr) throw InputError(table.where, "[space] must be a table");
  for (const TomlEntry& entry : *table.table()) {
    if (entry.value.table() == nullptr) {
      set(entry.key, entry.value);
      continue;
    }
    for (const TomlEntry& inner : *entry.value.table())
      set(entry.key + "." + inner.key, inner.value);
  }
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

bool SearchSpace::legal(const Candidate& c, CandidatePlan& out) const {
  const Scenario& s = base(c);
  put(c, out.plan);
  return complete(s, wishes_of(s, c), out.plan, out.batch);
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

bool SearchSpace::walk_knob(std::size_t index, Candidate& c, CandidatePlan& scratch,
                            const Visit& visit) const {
  if (index == knobs().size())
    return !legal(c, scratch) || !first_of_its_kind(c, scratch) || visit(c, scratch);
  for (const std::int64_t value : values_[index]) {
    knobs()[index].set(c, value);
    if (possible_so_far(index, c) && !walk_knob(index + 1, c, scratch, visit)) return false;
  }
  return true;
}

bool SearchSpace::walk_framework(std::uint8_t framework, const Visit& visit) const {
  Candidate candidate;
  candidate.framework = framework;
  const Scenario& s = base(candidate);
  CandidatePlan scratch{s, s.plan, s.batch};
  return walk_knob(1, candidate, scratch, visit);
}

void SearchSpace::walk(const Visit& visit) const {
  for (const std::int64_t framework : values_[0])
    if (!walk_framework(static_cast<std::uint8_t>(framework), visit)) return;
}

std::optional<Candidate> SearchSpace::first_plan(std::uint8_t framework) const {
  std::optional<Candidate> out;
  walk_framework(framework, [&](const Candidate& c, const CandidatePlan&) {
    out = c;
    return false;
  });
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
