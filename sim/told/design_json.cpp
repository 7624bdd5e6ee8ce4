#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/told/design.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

using DesignJson = nlohmann::ordered_json;

OrNull<double> finite_or_null(double value) {
  return {std::isfinite(value) ? std::optional(value) : std::nullopt};
}

const Form<Band>& band_form() {
  using B = const Band&;
  static const Form<Band> form = Form<Band>("band")
                                     .has("low", "", [](B b) { return b.low; })
                                     .has("value", "", [](B b) { return b.value; })
                                     .has("high", "", [](B b) { return b.high; });
  return form;
}

const Form<Scenario>& machine_form() {
  using S = const Scenario&;
  static const Form<Scenario> form =
      Form<Scenario>("machine")
          .has("name", "In words.", [](S s) { return name_of(s); })
          .has("node", "", [](S s) { return s.node.name; })
          .has("gpu", "", [](S s) { return s.node.gpu.name; })
          .has("nodes", "How many.", [](S s) { return s.nodes; })
          .has("gpus", "How many.", [](S s) { return s.gpus; })
          .has("nics", "Of a node.", [](S s) { return s.node.nics; })
          .has("fabric", "", [](S s) { return s.fabric.name; })
          .has("oversubscription", "1 is none.", [](S s) { return s.fabric.oversubscription; });
  return form;
}

const Form<Terms>& terms_form() {
  using T = const Terms&;
  const auto text = [](const std::string& value) {
    return value.empty() ? std::nullopt : std::optional(value);
  };
  static const Form<Terms> form =
      Form<Terms>("terms")
          .has("way", "In words.", [](T t) { return words_of(t.way); })
          .has("years", "Of a contract.",
               [](T t) { return t.way.years > 0 ? std::optional(t.way.years) : std::nullopt; })
          .has("upfront", "Of a contract: the share paid at signing.",
               [](T t) { return t.way.years > 0 ? std::optional(t.upfront) : std::nullopt; })
          .has("quote", "Its name.", [=](T t) { return text(t.way.quote); })
          .object("usd_price", "Of a GPU and hour; of what is bought, of a node.", band_form(),
                  [](T t) { return t.price.value > 0 ? &t.price : nullptr; })
          .has("source", "Of the price.", [=](T t) { return text(t.source); })
          .has("date", "Of the price.", [=](T t) { return text(t.date); });
  return form;
}

const Form<Cash>& cash_form() {
  using C = const Cash&;
  static const Form<Cash> form =
      Form<Cash>("cash")
          .object("signing", "Before the first hour.", band_form(),
                  [](C c) -> const Band& { return c.signing; })
          .object("a_month", "", band_form(), [](C c) -> const Band& { return c.a_month; })
          .has("months", "Of such payments.", [](C c) { return c.months; })
          .object("by_finish", "When the last token is trained.", band_form(),
                  [](C c) -> const Band& { return c.by_finish; })
          .object("total", "In all.", band_form(), [](C c) -> const Band& { return c.total; })
          .object("payback", "The run's share.", band_form(),
                  [](C c) -> const Band& { return c.payback; });
  return form;
}

struct ToldChoice {
  const DesignTold& told;
  const DesignChoice& c;
  const Offer& offer() const { return told.machines.offers[c.offer]; }
};

std::optional<ToldChoice> choice_of(const DesignTold& told, const DesignChoice* c) {
  return c != nullptr ? std::optional(ToldChoice{told, *c}) : std::nullopt;
}
std::optional<ToldChoice> choice_of(const DesignTold& told, const std::optional<DesignChoice>& c) {
  return choice_of(told, c ? &*c : nullptr);
}

const Form<ToldChoice>& choice_form() {
  using C = const ToldChoice&;
  static const Form<ToldChoice> form =
      Form<ToldChoice>("choice")
          .object("machine", "", machine_form(),
                  [](C t) -> const Scenario& {
                    return t.told.machines.all[t.offer().machine].scenario;
                  })
          .has("way", "rent, contract or own.",
               [](C t) { return word_of(t.offer().terms.way.tenure); })
          .object("terms", "How it is paid for.", terms_form(),
                  [](C t) -> const Terms& { return t.offer().terms; })
          .object("cash", "What leaves the account, US dollars.", cash_form(),
                  [](C t) -> const Cash& { return t.c.outcome.cash; })
          .object(
              "days", "Of the whole run.", band_form(),
              [](C t) -> const auto& { return t.c.outcome.run.days; })
          .object(
              "usd", "What a budget counts.", band_form(),
              [](C t) -> const auto& { return t.c.outcome.money; })
          .object(
              "usd_per_gpu_hour", "", band_form(),
              [](C t) -> const auto& { return t.c.outcome.run.dollars_per_gpu_hour; })
          .has("mwh", "At the building's meter.", [](C t) { return t.c.outcome.mwh; })
          .has("t_co2e", "Of that energy.", [](C t) { return t.c.outcome.run.tonnes_co2.value; })
          .has("watts", "At the meter while it trains.", [](C t) { return t.c.outcome.watts; })
          .has("racks", "", [](C t) { return t.told.designer.racks(t.c.offer); })
          .has("gpu_hours", "", [](C t) { return t.c.outcome.run.gpu_hours.value; })
          .has("step_time_s", "", [](C t) { return seconds(t.c.report.step_time); })
          .has("framework", "", [](C t) { return t.c.report.scenario.software.framework; })
          .has("plan", "In words.", [](C t) { return t.c.plan; })
          .has("datasheet_share", "Share of the step that rests on datasheets alone.",
               [](C t) { return datasheet_share(t.c.report); });
  return form;
}

const Form<BillLine>& bill_line_form() {
  using L = const BillLine&;
  const auto text = [](const std::string& value) {
    return value.empty() ? std::nullopt : std::optional(value);
  };
  static const Form<BillLine> form =
      Form<BillLine>("bill_line")
          .has("item", "", [](L l) { return l.item; })
          .has("number", "How many.", [](L l) { return l.count; })
          .has("watts", "Of all of them.", [](L l) { return l.power.value; })
          .object_or_null(
              "usd_each", "Of one.", band_form(), [](L l) -> const auto& { return l.usd; })
          .object_or_null("usd", "Of all of them.", band_form(),
                          [](L l) { return l.usd ? std::optional(l.total()) : std::nullopt; })
          .has("source", "Of the price, or what the line is part of.",
               [=](L l) { return text(l.source); })
          .has("date", "Of the price.", [=](L l) { return text(l.date); })
          .has("no_price", "No list says what it costs.",
               [](L l) { return l.unpriced ? std::optional(true) : std::nullopt; });
  return form;
}

const Form<Bill>& bill_form() {
  using B = const Bill&;
  static const Form<Bill> form =
      Form<Bill>("bill")
          .list(
              "lines", "", bill_line_form(), [](B b) -> const auto& { return b.lines; })
          .object("capital_usd", "The sum of the lines.", band_form(),
                  [](B b) { return b.capital(); })
          .has("watts", "The sum of the lines.", [](B b) { return b.power().value; })
          .has("racks", "", [](B b) { return b.racks; })
          .has("no_price", "Items that no list has a price of.", [](B b) { return b.unpriced(); });
  return form;
}

struct ToldAim {
  const DesignTold& told;
  const AimAnswer& one;
  std::optional<ToldChoice> choice() const { return choice_of(told, one.choice); }
};

DesignJson report_of(const DesignChoice& choice) {
  StepReport report = choice.report;
  report.whole_run = choice.outcome.run;
  return answer_json(Answer(std::move(report)));
}

/// With the members of its choice, where there is one.
const Form<ToldAim>& aim_form() {
  using A = const ToldAim&;
  static const Form<ToldAim> form =
      Form<ToldAim>("aim")
          .has("proven", "No offer is better.", [](A a) { return a.one.proven; })
          .has("open", "Offers that were not looked at to the end.", [](A a) { return a.one.open; })
          .has("least_open", "The least that these can come to.",
               [](A a) {
                 return a.one.proven ? std::nullopt
                                     : std::optional(finite_or_null(a.one.least_open));
               })
          .members(choice_form(), [](A a) { return a.choice(); })
          .has("p_goal", "How likely it keeps to deadline and budget.",
               [](A a) { return a.one.choice ? a.one.odds : std::nullopt; })
          .object("bill", "What the machine is made of.", bill_form(),
                  [](A a) { return a.one.choice ? &a.one.bill : nullptr; })
          .json("report", "The step, as of stepcast run.", step_schema(),
                [](A a) -> std::optional<DesignJson> {
                  if (!a.one.choice) return std::nullopt;
                  return report_of(*a.one.choice);
                });
  return form;
}

const Form<DesignLimits>& limits_form() {
  using L = const DesignLimits&;
  static const Form<DesignLimits> form =
      Form<DesignLimits>("limits")
          .has("days", "", [](L l) { return finite_or_null(l.days); })
          .has("budget_usd", "", [](L l) { return finite_or_null(l.usd); })
          .has("capital_usd", "", [](L l) { return finite_or_null(l.capital); })
          .has("power_w", "", [](L l) { return finite_or_null(l.watts); })
          .has("racks", "", [](L l) { return finite_or_null(l.racks); });
  return form;
}

const Form<Accounting>& accounting_form() {
  using A = const Accounting&;
  static const Form<Accounting> form =
      Form<Accounting>("accounting")
          .has("budget_counts", "cash: all that is paid; payback: the run's share.",
               [](A a) { return std::string(a.payback ? "payback" : "cash"); })
          .has("storage_usd_a_month", "", [](A a) { return a.storage; })
          .has("staff_usd_a_month", "", [](A a) { return a.staff; })
          .has("spares", "A share of the nodes that train.", [](A a) { return a.spares; });
  return form;
}

template <class T>
struct ToldMove {
  const DesignTold& told;
  const T& move;
};

template <class T>
std::vector<ToldMove<T>> all_told(const DesignTold& told, const std::vector<T>& list) {
  std::vector<ToldMove<T>> out;
  for (const T& one : list) out.push_back({told, one});
  return out;
}

constexpr const char* then = "Then; null: nothing meets the goal.";

Form<ToldMove<LimitMove>> limit_move_form() {
  using M = const ToldMove<LimitMove>&;
  return Form<ToldMove<LimitMove>>("limit_move")
      .has("limit", "", [](M m) { return m.move.limit; })
      .has("from", "Days, US dollars, watts or racks.", [](M m) { return m.move.from; })
      .has("to", "As it might be.", [](M m) { return m.move.to; })
      .object_or_null("cheapest", then, choice_form(),
                      [](M m) { return choice_of(m.told, m.move.cheapest); })
      .object_or_null("fastest", then, choice_form(),
                      [](M m) { return choice_of(m.told, m.move.fastest); });
}

Form<ToldMove<PriceMove>> price_move_form() {
  using M = const ToldMove<PriceMove>&;
  return Form<ToldMove<PriceMove>>("price_move")
      .has("price", "", [](M m) { return m.move.price; })
      .has("factor", "As it might be.", [](M m) { return m.move.factor; })
      .object_or_null("cheapest", then, choice_form(),
                      [](M m) { return choice_of(m.told, m.move.cheapest); });
}

using FateOf = std::pair<Fate, std::size_t>;

Form<FateOf> fate_form() {
  return Form<FateOf>("fate")
      .has("offers", "How many.", [](const FateOf& f) { return f.second; })
      .has("they", "What became of them.",
           [](const FateOf& f) { return std::string(text_of(f.first)); });
}

Form<NoMachine> no_machine_form() {
  using N = const NoMachine&;
  return Form<NoMachine>("no_machine")
      .has("machine", "", [](N n) { return n.name; })
      .has("why", "", [](N n) { return n.why; });
}

struct ToldWay {
  const DesignTold& told;
  const WayAnswer& one;
};

Form<ToldWay> way_form() {
  using W = const ToldWay&;
  return Form<ToldWay>("way")
      .has("way", "In words.", [](W w) { return words_of(w.one.way); })
      .has("above_budget", "It meets the goal but for budget and capital.",
           [](W w) { return w.one.above_budget; })
      .object_or_null("cheapest", "Null: nothing meets the goal so.", choice_form(),
                      [](W w) { return choice_of(w.told, w.one.choice); });
}

std::vector<ToldWay> ways_of(const DesignTold& told) {
  std::vector<ToldWay> out;
  for (const WayAnswer& one : told.answer.by_way) out.push_back({told, one});
  return out;
}

std::vector<ToldChoice> front_of(const DesignTold& told) {
  std::vector<ToldChoice> out;
  for (const DesignChoice& one : told.answer.front) out.push_back({told, one});
  return out;
}

Form<DesignTold> made_design_form() {
  using T = const DesignTold&;
  Form<DesignTold> out;
  out.has("goal", "In words.", [](T t) { return goal_words(t.goal, t.machines); })
      .object(
          "limits", "Null where there is none.", limits_form(),
          [](T t) -> const auto& { return t.goal.limits; })
      .object(
          "accounting", "What is paid beside machines.", accounting_form(),
          [](T t) -> const auto& { return t.machines.accounting; })
      .has("met", "Whether a machine meets the goal.", [](T t) { return t.answer.met(); })
      .has("assumed", "What the goal does not say.", design_assumptions);
  for (std::size_t i = 0; i < std::size(aims); ++i)
    out.object(word_of(aims[i]), "The best machine in this.", aim_form(), [i](T t) {
      return ToldAim{t, t.answer.answers[i]};
    });
  using C = const ToldChoice&;
  Form<ToldChoice> sure = choice_form(), nearest = choice_form();
  sure.has("p_goal", "How likely it keeps to deadline and budget.",
           [](C c) { return c.told.answer.sure_odds; });
  nearest.has("without", "The limits that it breaks.", [](C c) { return c.told.answer.without; });
  return out
      .object("sure", "The cheapest that meets the goal in nine cases of ten.",
              sure.named("sure_choice"), [](T t) { return choice_of(t, t.answer.sure); })
      .object("nearest", "Where nothing meets the goal: the cheapest without some limits.",
              nearest.named("nearest_choice"), [](T t) { return choice_of(t, t.answer.nearest); })
      .object_or_null("cheapest_to_rent", "By the lists.", choice_form(),
                      [](T t) { return choice_of(t, t.answer.cheapest_to(Tenure::rent)); })
      .object_or_null("cheapest_to_own", "By the lists.", choice_form(),
                      [](T t) { return choice_of(t, t.answer.cheapest_to(Tenure::own)); })
      .list("by_way", "Of each way to come by a machine the cheapest.", way_form(), ways_of)
      .list("limits_moved", "A little more and less of each limit.", limit_move_form(),
            [](T t) { return all_told(t, t.answer.limits); })
      .list("prices_moved", "A little more and less of each price.", price_move_form(),
            [](T t) { return all_told(t, t.answer.prices); })
      .list("front", "Offers that no other beats in days, dollars and energy.", choice_form(),
            front_of)
      .has("offers", "Machines with a way to come by each.",
           [](T t) { return t.machines.offers.size(); })
      .has("machines", "", [](T t) { return t.machines.all.size(); })
      .has("machines_searched", "Whose plans were searched.", [](T t) { return t.answer.searched; })
      .has("plans_simulated", "", [](T t) { return t.answer.simulated; })
      .list(
          "ruled_out", "", fate_form(), [](T t) -> const auto& { return t.answer.fates; })
      .list(
          "no_machine", "What cannot be built, and why.", no_machine_form(),
          [](T t) -> const auto& { return t.machines.none; });
}

const Form<DesignTold>& design_form() {
  static const Form<DesignTold> form = made_design_form();
  return form;
}

}  // namespace

std::string design_json(const DesignTold& told) {
  return json_text(stamped("design", design_form().json(told)), 2);
}

nlohmann::ordered_json design_schema() {
  return document_schema("design", "What stepcast design prints.", design_form().schema_of());
}

}  // namespace stepcast::sim
