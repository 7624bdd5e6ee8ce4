#include "validate/published/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/files/names.hpp"
#include "sim/run/memory_figures.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

using sim::Scenario;
using workloads::Recompute;

/// What a row states ran; memory is predicted within a fifth (reserved over allocated,
/// recalled, 2026).
bool may_fit(Scenario scenario) {
  scenario.node.gpu.memory = Bytes(scenario.node.gpu.memory.value * 6 / 5);
  return sim::fits(scenario);
}

Scenario with(const Scenario& scenario, Recompute recompute, std::int64_t micro_batch) {
  Scenario out = scenario;
  out.plan.recompute = recompute;
  if (recompute != Recompute::full) out.plan.recompute_every = 1;
  out.micro.micro_batch = micro_batch;
  return sim::with_degrees(out, out.plan.tensor, out.plan.pipeline);
}

/// With a pipeline the largest micro-batch has the largest bubble: the fastest one that fits.
std::int64_t fastest_micro_batch(const Scenario& scenario, Recompute recompute,
                                 std::int64_t sequences, sim::Session& session) {
  std::int64_t best = 1;
  Duration least{};
  for (const std::int64_t size : {1, 2, 4, 8}) {
    if (sequences % size != 0) break;
    Scenario candidate = with(scenario, recompute, size);
    if (size > 1 && !sim::fits(candidate)) break;
    candidate.run.ignore_memory = true;
    const Duration step = session.step(candidate).step_time;
    if (size == 1 || step < least) best = size, least = step;
  }
  return best;
}

std::int64_t largest_micro_batch(const Scenario& scenario, Recompute recompute,
                                 std::int64_t sequences) {
  std::int64_t best = 1;
  for (std::int64_t size = 2; size <= sequences; ++size)
    if (sequences % size == 0) {
      if (!sim::fits(with(scenario, recompute, size))) break;
      best = size;
    }
  return best;
}

}  // namespace

std::optional<std::int64_t> stated_micro_batch(const PublishedRow& row, std::int64_t sequences) {
  if (row.micro_batch_seqs && *row.micro_batch_seqs > 0) {
    std::int64_t size = std::min(*row.micro_batch_seqs, sequences);
    while (sequences % size != 0) --size;  // the last one of a step is smaller there
    return size;
  }
  if (row.grad_accum && *row.grad_accum > 0 && sequences % *row.grad_accum == 0)
    return sequences / *row.grad_accum;
  return std::nullopt;
}

void choose(Scenario& scenario, const Choice& choice, std::vector<std::string>& assumed,
            sim::Session& session) {
  auto [recompute, selective_every, micro_batch, sequences] = choice;
  constexpr std::array<Recompute, 3> by_cost = {Recompute::none, Recompute::selective,
                                                Recompute::full};
  // The share of blocks that some code calls selective is open where the row does not state it:
  // none where that fits, else the code's default, every one.
  const bool every_block = selective_every == 1 && !sim::fits(with(scenario, Recompute::selective,
                                                                   micro_batch.value_or(1)));
  if (recompute == Recompute::selective && (selective_every > 1 || every_block)) {
    recompute = Recompute::full;
    scenario.plan.recompute_every = selective_every;
    assumed.push_back(fmt::format("recompute of 1 layer in {}", selective_every));
  }
  if (!recompute) {
    // The exchange cannot overlap and be sent once more.
    const Recompute most = scenario.plan.expert.overlap ? Recompute::selective : Recompute::full;
    recompute = most;
    for (const Recompute candidate : by_cost)
      if (candidate <= most && may_fit(with(scenario, candidate, micro_batch.value_or(1)))) {
        recompute = candidate;
        break;
      }
    assumed.push_back(fmt::format("recompute {}, the least that fits",
                                  sim::word_for(sim::recompute_names, *recompute)));
  }
  if (!micro_batch) {
    const bool pipeline = scenario.plan.pipeline > 1;
    micro_batch = pipeline ? fastest_micro_batch(scenario, *recompute, sequences, session)
                           : largest_micro_batch(scenario, *recompute, sequences);
    assumed.push_back(fmt::format("micro-batch {}, the {} that fits", *micro_batch,
                                  pipeline ? "fastest" : "largest"));
  }
  scenario = with(scenario, *recompute, *micro_batch);
}

std::optional<Recompute> recompute_of(const PublishedRow& row, const FrameworkDefaults& framework,
                                      const Scenario& scenario, std::int64_t micro_batch) {
  if (const auto stated = stated_recompute(row)) return stated;
  if (framework.recompute == Recompute::none &&
      !may_fit(with(scenario, Recompute::none, micro_batch)))
    return std::nullopt;
  return framework.recompute;
}

}  // namespace stepcast::validate
