#include "sim/search/own_plan.hpp"

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// The report, or why there is none.
template <class Into>
void answer_into(Into& out, const SearchMachine& machine, const auto& scenario) {
  try {
    out.report = machine.step(scenario());
  } catch (const NoFeasiblePlan& error) {
    out.refused = error.what();
  } catch (const InputError& error) {
    out.refused = error.problem();
  }
}

Candidate own_candidate(const SearchSpace& space, const Scenario& own) {
  Candidate out = candidate_of(own);
  out.micro_batch = static_cast<std::int32_t>(own.batch.micro_batch);
  for (std::size_t i = 0; i < space.bases().size(); ++i)
    if (same_framework(space.bases()[i].software, own.software))
      out.framework = static_cast<std::uint8_t>(i);
  return out;
}

}  // namespace

OwnPlan beside_best(const SearchSpace& space, const SearchMachine& machine, const Scenario& own,
                    const Candidate& best) {
  OwnPlan out{own_candidate(space, own), {}, {}, {}};
  answer_into(out, machine, [&] { return own; });
  for (const Knob& knob : knobs()) {
    if (knob.get(out.candidate) == knob.get(best)) continue;
    Candidate turned = out.candidate;
    knob.set(turned, knob.get(best));
    KnobChange& change = out.changes.emplace_back(
        KnobChange{knob.key, knob_word(space, knob, out.candidate), knob_word(space, knob, best)});
    answer_into(change, machine, [&] { return space.scenario_of(turned); });
  }
  return out;
}

}  // namespace stepcast::sim
