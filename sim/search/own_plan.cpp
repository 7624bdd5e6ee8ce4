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

KnobValues own_values(const SearchSpace& space, const Scenario& own) {
  KnobValues out = knob_values_of(own);
  find_knob("batch.micro_batch")->put(out, own.batch.micro_batch);
  for (std::size_t i = 0; i < space.bases().size(); ++i)
    if (same_framework(space.bases()[i].software, own.software))
      knobs()[framework_knob].put(out, static_cast<std::int64_t>(i));
  return out;
}

}  // namespace

OwnPlan beside_best(const SearchSpace& space, const SearchMachine& machine, const Scenario& own,
                    const KnobValues& best) {
  OwnPlan out{own_values(space, own), {}, {}, {}};
  answer_into(out, machine, [&] { return own; });
  for (const Knob& knob : knobs()) {
    if (knob.in(out.knobs) == knob.in(best)) continue;
    KnobValues turned = out.knobs;
    knob.put(turned, knob.in(best));
    KnobChange& change = out.changes.emplace_back(
        KnobChange{knob.key, knob_word(space, knob, out.knobs), knob_word(space, knob, best)});
    answer_into(change, machine, [&] { return space.scenario_of(turned); });
  }
  return out;
}

}  // namespace stepcast::sim
