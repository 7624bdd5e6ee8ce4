#include "sim/command/asked_search.hpp"

#include <algorithm>

#include "engine/units_text.hpp"
#include "sim/command/scenario_input.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/confidence/confidence.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/launch/own_words.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/search/bases.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {
namespace {

/// What is said of the space, the later the stronger: [space], --space FILE, the plan's keys,
/// --fix.
TomlValue asked_space(const Verb& verb, const Arguments& arguments, const TomlValue* own_space) {
  TomlValue out = toml_table("stepcast search");
  const auto add_all = [&](const TomlValue& table) {
    const TomlValue dotted = dotted_keys(table);
    for (const TomlEntry& entry : *dotted.table()) out.set(entry.key, entry.value);
  };
  if (own_space != nullptr) add_all(*own_space);
  if (arguments.has("space")) {
    const TomlValue file = read_toml_file(arguments.get("space"));
    const TomlValue* table = file.find("space");
    add_all(table != nullptr ? *table : file);
  }
  for (const auto& [key, value] : settings_of(verb, arguments))
    if (find_knob(key) != nullptr) out.set(key, value);
  for (const std::string& fixed : arguments.all("fix")) {
    const std::size_t equals = fixed.find('=');
    if (equals == std::string::npos)
      throw UsageError("--fix " + fixed + " has no '='", "e.g. --fix plan.tensor=4");
    out.set(fixed.substr(0, equals), read_setting(fixed.substr(equals + 1), "--fix"));
  }
  return out;
}

/// Leaves out of what is usually tried the values that the user's own file has no words for: what a
/// search finds is laid over it. Whatever the user asks for stays.
void leave_out_wordless(TomlValue& space, Scenario base, std::string_view stack, bool across) {
  const auto says = [&](const Scenario& s) { return own_words_of(s, stack).why_not.empty(); };
  base.plan.recompute = workloads::Recompute::full;  // or recompute_every means nothing
  if (!says(base)) return;
  constexpr const char* origin = "the words of your own file";
  for (const Knob& knob : knobs().subspan(first_of_plan)) {
    if (knob.on_request || space.find(knob.key) != nullptr) continue;
    const std::vector<std::int64_t> usual = knob.usual(base, across);
    TomlValue::Array said;
    for (const std::int64_t value : usual) {
      DraftPlan draft{base, base.plan, base.batch};
      knob.member.set(draft, value);
      Scenario one = base;
      one.plan = draft.plan;
      one.batch = draft.batch;
      if (!says(one)) continue;
      said.push_back(knob.words.empty() ? TomlValue{value, origin}
                                        : toml_text(knob.word(value), origin));
    }
    if (!said.empty() && said.size() < usual.size()) space.set(knob.key, {std::move(said), origin});
  }
}

SearchSpace space_of(const Arguments& arguments, const TomlValue& asked,
                     std::vector<Scenario> bases) {
  SearchSpace space(std::move(bases), arguments.has("allow-tp-across-nodes"));
  space.set_all(asked);
  return space;
}

void check_price(const Scenario& s) {
  if (s.cost.price.value == 0 && s.cost.capex.value == 0)
    throw UsageError("--objective dollars-per-token without --price",
                     "give what a GPU costs for an hour, --price 2.5, a list, or --own");
}

SearchOptions options_of(const Arguments& arguments) {
  SearchOptions out;
  out.top = static_cast<std::size_t>(arguments.count("top", 10));
  out.limit = static_cast<std::size_t>(arguments.count("limit", 0, 1));
  out.threads = arguments.threads();
  out.all = arguments.has("all");
  const std::string objective = arguments.choice("objective");
  if (objective == "joules-per-token") out.objective = Objective::energy;
  if (objective == "dollars-per-token") out.objective = Objective::dollars;
  if (arguments.has("time"))
    out.deadline = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       parse<Duration>(arguments.get("time"), "--time"));
  return out;
}

/// With error bars and what failures leave, where a whole run is asked for.
void complete_shown(SearchAnswer& answer, const Simulator& simulator) {
  std::vector<Found>& found = answer.result.found;
  for (std::size_t i = 0; i < std::min(answer.options.top, found.size()); ++i) {
    if (!asks_for_costs(found[i].report.scenario)) return;
    simulator.judge_step(found[i].report);
    complete(found[i].report, simulator);
  }
}

}  // namespace

TomlValue asked_search(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue) {
  TomlValue document = asked_document(verb, arguments, catalogue);
  if (document.find("sweep") != nullptr)
    throw InputError(document.where, "has a [sweep]",
                     "a sweep over plan.tensor = \"best\" and the like searches at each point");
  document.erase("reference");
  TomlValue space = asked_space(verb, arguments, document.find("space"));
  document.erase("space");
  if (const std::string stack = own_stack(arguments, catalogue); !stack.empty())
    leave_out_wordless(space, search_bases(document, catalogue).front(), stack,
                       arguments.has("allow-tp-across-nodes"));
  document.set("space", std::move(space));
  return document;
}

AskedSearch open_search(const TomlValue& asked, const Arguments& arguments,
                        const Catalogue& catalogue) {
  TomlValue base = asked;
  base.erase("space");
  SearchAnswer answer{space_of(arguments, *asked.find("space"), search_bases(base, catalogue)),
                      options_of(arguments),
                      {},
                      {},
                      {}};
  if (answer.options.objective == Objective::dollars) check_price(answer.space.bases().front());
  return {std::move(answer), std::move(base)};
}

std::optional<Scenario> own_plan(const AskedSearch& asked, const Catalogue& catalogue,
                                 const std::function<void(const InputError&)>& why_not) {
  if (asked.base.find("plan") == nullptr) return std::nullopt;
  try {
    Scenario out = read_scenario(asked.base, catalogue);
    out.noise = {};
    if (out.open.empty()) return out;
  } catch (const InputError& error) {
    why_not(error);
  }
  return std::nullopt;
}

SearchMachine machine_of(const SearchAnswer& answer, Session& session) {
  SearchMachine out = machine_of(session);
  out.refusal = refusal_by_launch(answer.space);
  return out;
}

void find_plans(AskedSearch& asked, const SearchMachine& machine, const std::atomic<bool>& stop) {
  SearchAnswer& answer = asked.answer;
  answer.result = search_plans(answer.space, machine, answer.options, stop);
  if (answer.result.legal == 0)
    throw InputError(asked.base.where, "no plan of this space is legal",
                     "stepcast run with one of them says which rule it breaks");
}

void complete_search(SearchAnswer& answer, const std::optional<Scenario>& own,
                     const SearchMachine& machine, Session& session,
                     const std::shared_ptr<Confidence>& confidence) {
  if (const Order* order = confidence->order()) answer.order = *order;
  complete_shown(answer, simulator_of(session, confidence));
  if (own && !answer.result.found.empty())
    answer.own = beside_best(answer.space, machine, *own, answer.result.found.front().knobs);
}

}  // namespace stepcast::sim
