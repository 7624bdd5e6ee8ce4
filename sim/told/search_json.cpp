#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/told/json.hpp"
#include "sim/told/search.hpp"

namespace stepcast::sim {
namespace {

using SearchJson = nlohmann::ordered_json;

SearchJson value_of(const SearchAnswer& a, const Knob& knob, std::int64_t value) {
  if (knob.parts > 1) return static_cast<double>(value) / static_cast<double>(knob.parts);
  if (knob.words.empty() && knob.place() != framework_knob) return value;
  return knob_word(a.space, knob, value);
}

SearchJson plan_of(const SearchAnswer& a, const KnobValues& values) {
  SearchJson out;
  for (const Knob& knob : knobs()) out[knob.key] = value_of(a, knob, knob.in(values));
  return out;
}

SearchJson report_of(StepReport report) {
  if (asks_for_costs(report.scenario) && !report.whole_run) add_whole_run(report);
  return parsed_ordered_json(to_json(Answer(report)));
}

SearchJson own_of(const SearchAnswer& a) {
  SearchJson out{{"knobs", plan_of(a, a.own->knobs)}};
  if (a.own->report)
    out["report"] = report_of(*a.own->report);
  else
    out["refused"] = a.own->refused;
  out["changes"] = SearchJson::array();
  for (const KnobChange& change : a.own->changes) {
    SearchJson one{{"knob", change.knob}, {"from", change.from}, {"to", change.to}};
    if (change.report)
      one["step_time_s"] = seconds(change.report->step_time);
    else
      one["refused"] = change.refused;
    out["changes"].push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string search_json(const SearchAnswer& a) {
  const SearchResult& r = a.result;
  SearchJson space = SearchJson::object();
  for (const Knob& knob : knobs()) {
    SearchJson values = SearchJson::array();
    for (const std::int64_t value : a.space.values_of(knob))
      values.push_back(value_of(a, knob, value));
    space[knob.key] = std::move(values);
  }
  SearchJson out{{"proof", proof_text(a)},
                 {"proven", r.proven()},
                 {"space", std::move(space)},
                 {"legal", r.legal},
                 {"do_not_fit", r.too_large},
                 {"surely_do_not_fit", r.surely_too_large},
                 {"left_out", r.left_out},
                 {"simulated", r.simulated()},
                 {"open", r.open}};
  if (r.open > 0) {
    out["least_open_bound"] = r.least_open;
    if (!r.found.empty()) out["gap"] = std::max(0.0, 1 - r.least_open / r.found.front().value);
  }
  out["fits"] = a.space.bases().front().run.fits;
  SearchJson risky{{"plans", r.risky.plans}, {"taken", r.risky.taken}};
  if (const auto& fastest = r.risky.fastest)
    risky["fastest"] = {{"knobs", plan_of(a, fastest->knobs)},
                        {"step_time_s", seconds(fastest->report.step_time)},
                        {"p_fits", fastest->report.p_fits.value_or(0)}};
  out["risky"] = std::move(risky);
  out["not_legal"] = SearchJson::array();
  for (const RefusedByRule& rule : r.by_rule)
    out["not_legal"].push_back(
        {{"key", rule.key}, {"combinations", rule.plans}, {"first", rule.first}});
  out["plans"] = SearchJson::array();
  const bool ordered = a.order && a.options.objective != Objective::energy;
  const std::vector<double> best =
      ordered ? a.order->best(contenders_of(a)) : std::vector<double>();
  for (std::size_t i = 0; i < r.found.size(); ++i) {
    const Found& found = r.found[i];
    SearchJson one{{"knobs", plan_of(a, found.knobs)},
                   {"step_time_s", seconds(found.report.step_time)},
                   {"bound", found.bound}};
    if (found.report.p_fits) one["p_fits"] = *found.report.p_fits;
    if (i > 0 && a.order)
      one["first_is_faster"] = a.order->probability(seconds(r.found[0].report.step_time),
                                                    seconds(found.report.step_time));
    if (i < best.size()) one["p_best"] = best[i];
    if (i < a.options.top) one["report"] = report_of(found.report);
    out["plans"].push_back(std::move(one));
  }
  out["misses"] = SearchJson::array();
  for (const Miss& miss : r.misses)
    out["misses"].push_back(
        {{"knobs", plan_of(a, miss.knobs)},
         {"needs_bytes", miss.needed.value},
         {"lacks_bytes", std::max<std::int64_t>(
                             0, (miss.needed - a.space.base(miss.knobs).node.gpu.memory).value)},
         {"p_fits", miss.p_fits}});
  if (a.own) out["own"] = own_of(a);
  return json_text(out, 2);
}

}  // namespace stepcast::sim
