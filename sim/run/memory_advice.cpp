#include "sim/run/memory_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/text_table.hpp"
#include "sim/run/memory_figures.hpp"
#include "workloads/step/framework_rules.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Recompute;
using workloads::ReduceWhen;

constexpr std::size_t most_changes = 4;  // that are named

struct Change {
  std::string what;
  Scenario scenario;
  workloads::MemoryFigures memory;  // replayed where nothing less decides, and of what is named
};

/// Of which a change must make sure to be named as one that fits.
constexpr double enough = 0.9;

/// The changed scenario with what follows from it; none: it cannot be run, or needs no less.
std::optional<Change> resolved(std::string what, Scenario changed, Bytes now, Bytes room) {
  try {
    changed = with_degrees(changed, changed.plan.tensor, changed.plan.pipeline);
    workloads::check(changed.model, changed.plan, changed.software, changed.plan_origin);
  } catch (const InputError&) {
    return std::nullopt;
  }
  workloads::MemoryFigures memory = fullest_memory(changed);
  if (memory.total() >= now) return std::nullopt;
  if (fit_in(room, changed, memory) == workloads::Fit::open) replay(memory, changed);
  return Change{std::move(what), std::move(changed), std::move(memory)};
}

/// Changes of one knob, and which of them to name.
class Advice {
 public:
  Advice(const Scenario& scenario, const MemoryOdds& odds)
      : scenario_(scenario),
        odds_(odds),
        room_(odds.most(scenario, enough)),
        now_(fullest_memory(scenario).total()) {}

  /// Of `settings`, from the mildest to the strongest, the first that fits, else the last that
  /// helps.
  template <class Settings, class Apply>
  void knob(const Settings& settings, Apply apply) {
    std::optional<Change> best;
    for (const auto& setting : settings) {
      Scenario changed = scenario_;
      std::string what = apply(changed, setting);
      if (auto change = resolved(std::move(what), std::move(changed), now_, room_))
        best = std::move(change);
      if (best && fits(*best)) break;
    }
    if (best) changes_.push_back(*std::move(best));
  }

  /// All changes together that help, until it fits.
  void together() {
    std::optional<Change> sum;
    Scenario changed = scenario_;
    std::string names;
    for (const Change& change : changes_) {
      merge(changed, change.scenario);
      names += (names.empty() ? "" : " and ") + change.what;
      sum = resolved(names, changed, now_, room_);
      if (sum && fits(*sum)) break;
    }
    if (sum && fits(*sum)) together_ = std::move(sum);
  }

  std::string text() const {
    std::vector<Change> named;
    std::ranges::copy_if(changes_, std::back_inserter(named),
                         [&](const Change& change) { return fits(change); });
    if (!named.empty()) return "; it fits with " + list(named);
    if (together_) return "; it fits with " + list({*together_});
    named = changes_;
    std::stable_sort(named.begin(), named.end(), [](const Change& a, const Change& b) {
      return a.memory.tensors() < b.memory.tensors();
    });
    return named.empty() ? "" : "; too little, but less: " + list(named);
  }

 private:
  bool fits(const Change& change) const {
    return fit_in(room_, change.scenario, change.memory) == workloads::Fit::surely;
  }

  /// "micro-batch 1 (61.0 GiB, 98 %), recompute full (58.0 GiB, 99 %)"
  std::string list(std::vector<Change> changes) const {
    std::string out;
    for (std::size_t i = 0; i < std::min(changes.size(), most_changes); ++i) {
      Change& change = changes[i];
      replay(change.memory, change.scenario);
      const Bytes needed = change.memory.needed();
      const std::string share =
          odds_.known() ? ", " + percent(odds_.fits(change.scenario, needed)) : "";
      out += fmt::format("{}{} ({}{})", i == 0 ? "" : ", ", change.what, to_text(needed), share);
    }
    return out;
  }

  /// Takes over the knobs that `from` has turned.
  void merge(Scenario& to, const Scenario& from) const {
    const auto turn = [&](auto member) {
      if (!(from.plan.*member == scenario_.plan.*member)) to.plan.*member = from.plan.*member;
    };
    turn(&workloads::ParallelPlan::data);
    turn(&workloads::ParallelPlan::tensor);
    turn(&workloads::ParallelPlan::pipeline);
    turn(&workloads::ParallelPlan::recompute);
    turn(&workloads::ParallelPlan::sequence_parallel);
    if (from.reduce != scenario_.reduce) to.reduce = from.reduce;
    if (from.micro.micro_batch != scenario_.micro.micro_batch) to.micro = from.micro;
    if (!(from.software == scenario_.software)) to.software = from.software;
  }

  const Scenario& scenario_;
  const MemoryOdds& odds_;
  Bytes room_;                   // what a plan may need to fit likely enough
  Bytes now_;                    // without fragmentation, as all that is compared with it
  std::vector<Change> changes_;  // the cheapest in time first
  std::optional<Change> together_;
};

/// Divisors of a replica's sequences below the micro-batch, the largest first.
std::vector<std::int64_t> smaller_micro_batches(const Scenario& s) {
  std::vector<std::int64_t> out;
  const std::int64_t sequences = s.batch.micro_batch * s.batch.micro_batches;
  for (std::int64_t size = s.batch.micro_batch / 2; size >= 1; size /= 2)
    if (sequences % size == 0) out.push_back(size);
  return out;
}

std::vector<std::int64_t> doublings(std::int64_t degree, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (degree *= 2; degree <= most; degree *= 2) out.push_back(degree);
  return out;
}

/// Kinds that shard more.
std::vector<DataParallel> stronger_kinds(const Scenario& s) {
  std::vector<DataParallel> out;
  for (const auto& [name, kind] : data_parallel_names)
    if (kind > s.plan.data) out.push_back(kind);
  return out;
}

void add_batch_changes(Advice& advice, const Scenario& s) {
  if (s.plan.reduce == ReduceWhen::last && s.batch.micro_batches > 1)
    advice.knob(std::vector{ReduceWhen::each}, [](Scenario& c, ReduceWhen when) {
      c.reduce = when;
      return std::string("reduce = \"each\"");
    });
  advice.knob(smaller_micro_batches(s), [](Scenario& c, std::int64_t size) {
    c.micro = {.micro_batch = size, .micro_batches = std::nullopt};
    return fmt::format("micro-batch {}", size);
  });
  if (s.plan.tensor > 1 && !s.plan.sequence_parallel)
    advice.knob(std::vector{true}, [](Scenario& c, bool on) {
      c.plan.sequence_parallel = on;
      return std::string("sequence parallelism");
    });
}

/// What runs less again than all of a layer, and saves something.
std::vector<Recompute> cheaper_recompute(const Scenario& s) {
  if (s.software.selective == workloads::SelectiveRecompute::operators ||
      s.software.attention.keeps_scores())
    return {Recompute::selective};
  if (s.software.eager() || s.software.compiled()) return {Recompute::operators};
  return {};
}

void add_plan_changes(Advice& advice, const Scenario& s) {
  advice.knob(stronger_kinds(s), [](Scenario& c, DataParallel kind) {
    c.plan.data = kind;
    const bool sharded = kind == DataParallel::zero2 || kind == DataParallel::zero3;
    if (!c.software_by_default.empty() && sharded) c.software = {};  // the default follows: FSDP2
    return "data = \"" + word_for(data_parallel_names, kind) + "\"";
  });
  advice.knob(doublings(s.plan.tensor, s.node.gpus), [](Scenario& c, std::int64_t degree) {
    c.plan.tensor = degree;
    return fmt::format("tensor {}", degree);
  });
  if (s.plan.recompute != Recompute::full)
    advice.knob(std::vector{Recompute::full}, [](Scenario& c, Recompute kind) {
      c.plan.recompute = kind;
      return "recompute " + word_for(recompute_names, kind);
    });
  advice.knob(doublings(s.plan.pipeline, s.model.layers), [](Scenario& c, std::int64_t degree) {
    c.plan.pipeline = degree;
    return fmt::format("pipeline {}", degree);
  });
}

}  // namespace

std::string memory_advice(const Scenario& s, const MemoryOdds& odds) {
  Advice advice(s, odds);
  add_batch_changes(advice, s);
  if (s.plan.recompute == Recompute::none)
    advice.knob(cheaper_recompute(s), [](Scenario& c, Recompute kind) {
      c.plan.recompute = kind;
      return "recompute " + word_for(recompute_names, kind);
    });
  add_plan_changes(advice, s);
  advice.together();
  return advice.text();
}

std::vector<std::string> memory_warnings(const Scenario& s) {
  std::vector<std::string> out;
  if (!s.micro.micro_batch && !s.micro.micro_batches && s.batch.micro_batch > 1)
    out.push_back(fmt::format(
        "batch.micro_batch is not given: all {} sequences of a replica are one micro-batch",
        s.batch.micro_batch));
  const workloads::StepInputs in{s.model, s.plan, s.batch, s.precision, s.software};
  if (in.core_again() && !s.software.attention.keeps_scores())
    out.emplace_back(
        "recompute of the attention core saves no memory: this attention kernel keeps no scores, "
        "and backward runs it once more");
  const bool waits = s.reduce == ReduceWhen::last && s.batch.micro_batches > 1 &&
                     (s.plan.data == DataParallel::zero2 || s.plan.data == DataParallel::zero3);
  if (!waits) return out;
  Scenario each = s;
  each.plan.reduce = ReduceWhen::each;
  const Bytes with_last = memory_figures(s).needed(), with_each = memory_figures(each).needed();
  if (with_each < with_last)
    out.push_back(
        fmt::format("plan.reduce = \"last\" keeps whole gradients: {} per GPU, {} when "
                    "they are reduced for each micro-batch",
                    to_text(with_last), to_text(with_each)));
  return out;
}

}  // namespace stepcast::sim
