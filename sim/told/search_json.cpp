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

/// A value of a knob: a number, a word, a share.
SearchJson knobs_schema(bool lists) {
  SearchJson out = type_schema("object");
  for (const Knob& knob : knobs()) {
    SearchJson one = type_schema(knob.parts > 1                                         ? "number"
                                 : knob.words.empty() && knob.place() != framework_knob ? "integer"
                                                                                        : "string");
    form_detail::put_property(out, knob.key, lists ? list_schema(std::move(one)) : std::move(one),
                              true);
  }
  return out;
}

SchemaOf plan_knobs() {
  return [](Definitions& all) {
    return all.reference("knobs", [](Definitions&) { return knobs_schema(false); });
  };
}

SearchJson report_of(StepReport report) {
  if (asks_for_costs(report.scenario) && !report.whole_run) add_whole_run(report);
  return answer_json(Answer(std::move(report)));
}

/// What a form's functions borrow: a part of an answer, and the answer.
template <class T>
struct In {
  const SearchAnswer& a;
  const T& of;
};

template <class T>
std::vector<In<T>> all_in(const SearchAnswer& a, const std::vector<T>& list) {
  std::vector<In<T>> out;
  for (const T& one : list) out.push_back({a, one});
  return out;
}

constexpr const char* bound_meaning =
    "Below it the plan's objective cannot come: seconds, joules or US dollars of a step.";

Form<RefusedByRule> rule_form() {
  using R = const RefusedByRule&;
  return Form<RefusedByRule>("rule")
      .has("key", "That the rule is about.", [](R r) { return std::string(r.key); })
      .has("combinations", "That it refuses.", [](R r) { return r.plans; })
      .has("first", "The sentence of the first.", [](R r) { return std::string(r.first); });
}

Form<In<Found>> found_form() {
  using F = const In<Found>&;
  return Form<In<Found>>("plan_found")
      .json("knobs", "The plan.", plan_knobs(), [](F f) { return plan_of(f.a, f.of.knobs); })
      .has("step_time_s", "Its step.", [](F f) { return seconds(f.of.report.step_time); })
      .has("bound", bound_meaning, [](F f) { return f.of.bound; })
      .has("p_fits", "How likely it fits into memory.", [](F f) { return f.of.report.p_fits; })
      .has("first_is_faster", "How likely the first plan is faster than this one when measured.",
           [](F f) -> std::optional<double> {
             const Found& first = f.a.result.found.front();
             if (&f.of == &first || !f.a.order) return std::nullopt;
             return f.a.order->probability(seconds(first.report.step_time),
                                           seconds(f.of.report.step_time));
           })
      .has("p_best", "How likely it is the fastest of the first plans (--top) that fit.",
           [](F f) -> std::optional<double> {
             const std::size_t place = static_cast<std::size_t>(&f.of - f.a.result.found.data());
             if (!f.a.order || f.a.options.objective == Objective::energy) return std::nullopt;
             if (place >= f.a.options.top) return std::nullopt;
             return f.a.order->best(contenders_of(f.a))[place];
           })
      .json("report", "As of stepcast run; of the first plans (--top).", step_schema(),
            [](F f) -> std::optional<SearchJson> {
              const std::size_t place = static_cast<std::size_t>(&f.of - f.a.result.found.data());
              if (place >= f.a.options.top) return std::nullopt;
              return report_of(f.of.report);
            });
}

Form<In<Miss>> miss_form() {
  using M = const In<Miss>&;
  return Form<In<Miss>>("miss")
      .json("knobs", "The plan.", plan_knobs(), [](M m) { return plan_of(m.a, m.of.knobs); })
      .has("needs_bytes", "Memory of a GPU.", [](M m) { return m.of.needed.value; })
      .has("lacks_bytes", "Beyond what a GPU has.",
           [](M m) {
             const Bytes has = m.a.space.base(m.of.knobs).node.gpu.memory;
             return std::max<std::int64_t>(0, (m.of.needed - has).value);
           })
      .has("p_fits", "How likely it fits all the same.", [](M m) { return m.of.p_fits; });
}

Form<In<Found>> risky_plan_form() {
  using F = const In<Found>&;
  return Form<In<Found>>("risky_plan")
      .json("knobs", "The plan.", plan_knobs(), [](F f) { return plan_of(f.a, f.of.knobs); })
      .has("step_time_s", "Its step.", [](F f) { return seconds(f.of.report.step_time); })
      .has("p_fits", "How likely it fits.", [](F f) { return f.of.report.p_fits; });
}

Form<In<RiskyPlans>> risky_form() {
  using R = const In<RiskyPlans>&;
  return Form<In<RiskyPlans>>("risky_plans")
      .has("plans", "Of those that were looked at.", [](R r) { return r.of.plans; })
      .has("not_simulated", "Of them: slower than others for sure.",
           [](R r) { return r.of.plans - r.of.simulated; })
      .has("taken", "Nothing is likelier to fit: they are what was found.",
           [](R r) { return r.of.taken; })
      .object("fastest", "Of them; the first plan may be faster.", risky_plan_form(), [](R r) {
        return r.of.fastest ? std::optional(In<Found>{r.a, *r.of.fastest}) : std::nullopt;
      });
}

Form<KnobChange> change_form() {
  using C = const KnobChange&;
  return Form<KnobChange>("knob_change")
      .has("knob", "", [](C c) { return c.knob; })
      .has("from", "As the own plan has it.", [](C c) { return c.from; })
      .has("to", "As the best plan has it.", [](C c) { return c.to; })
      .has(
          "step_time_s", "With this change alone.",
          [](C c) { return c.report ? std::optional(seconds(c.report->step_time)) : std::nullopt; })
      .has("refused", "Why it cannot be made alone.",
           [](C c) { return c.report ? std::nullopt : std::optional(c.refused); });
}

Form<In<OwnPlan>> own_form() {
  using O = const In<OwnPlan>&;
  return Form<In<OwnPlan>>("own_plan")
      .json("knobs", "The plan.", plan_knobs(), [](O o) { return plan_of(o.a, o.of.knobs); })
      .json("report", "As of stepcast run.", step_schema(),
            [](O o) -> std::optional<SearchJson> {
              if (!o.of.report) return std::nullopt;
              return report_of(*o.of.report);
            })
      .has("refused", "Why it has no answer.",
           [](O o) { return o.of.report ? std::nullopt : std::optional(o.of.refused); })
      .list(
          "changes", "Each knob alone as the best plan has it.", change_form(),
          [](O o) -> const auto& { return o.of.changes; });
}

SearchJson space_json(const SearchAnswer& a) {
  SearchJson space = SearchJson::object();
  for (const Knob& knob : knobs()) {
    SearchJson values = SearchJson::array();
    for (const std::int64_t value : a.space.values_of(knob))
      values.push_back(value_of(a, knob, value));
    space[knob.key] = std::move(values);
  }
  return space;
}

Form<SearchAnswer> made_search_form() {
  using A = const SearchAnswer&;
  return Form<SearchAnswer>()
      .has("proof", "What is proven, in a sentence.", [](A a) { return proof_text(a); })
      .has("proven", "No plan of the space is better than the first.",
           [](A a) { return a.result.proven(); })
      .json(
          "space", "The values of each knob.", [](Definitions&) { return knobs_schema(true); },
          space_json)
      .has("legal", "Plans of the space.", [](A a) { return a.result.legal; })
      .has("do_not_fit", "Of them, more likely too large than not.",
           [](A a) { return a.result.too_large; })
      .has("surely_do_not_fit", "Of these, surely.", [](A a) { return a.result.surely_too_large; })
      .has("left_out", "Bounded away without a simulation.", [](A a) { return a.result.left_out; })
      .has("simulated", "", [](A a) { return a.result.simulated(); })
      .has("open", "Neither, since the search ended early.", [](A a) { return a.result.open; })
      .has(
          "least_open_bound", "Of what is open.",
          [](A a) { return a.result.open > 0 ? std::optional(a.result.least_open) : std::nullopt; })
      .has("gap", "By so much of it the best may be beaten.",
           [](A a) -> std::optional<double> {
             const SearchResult& r = a.result;
             if (r.open == 0 || r.found.empty()) return std::nullopt;
             return std::max(0.0, 1 - r.least_open / r.found.front().value);
           })
      .has("fits", "Probability to fit from which plans are put in order.",
           [](A a) { return a.space.bases().front().run.fits; })
      .list(
          "not_legal", "Combinations of knobs that are no plan, by rule.", rule_form(),
          [](A a) -> const auto& { return a.result.by_rule; })
      .list("plans", "Those that were simulated, the best first.", found_form(),
            [](A a) { return all_in(a, a.result.found); })
      .list("misses", "Of the plans that do not fit those that lack least.", miss_form(),
            [](A a) { return all_in(a, a.result.misses); })
      .object("risky", "Plans that more likely fit than not, and less likely than that.",
              risky_form(),
              [](A a) {
                return std::optional(In<RiskyPlans>{a, a.result.risky});
              })
      .object("own", "The scenario's own plan beside the best.", own_form(), [](A a) {
        return a.own ? std::optional(In<OwnPlan>{a, *a.own}) : std::nullopt;
      });
}

const Form<SearchAnswer>& search_form() {
  static const Form<SearchAnswer> form = made_search_form();
  return form;
}

}  // namespace

std::string search_json(const SearchAnswer& a) {
  return json_text(stamped("search", search_form().json(a)), 2);
}

nlohmann::ordered_json search_schema() {
  return document_schema("search", "What stepcast search prints.", search_form().schema_of());
}

}  // namespace stepcast::sim
