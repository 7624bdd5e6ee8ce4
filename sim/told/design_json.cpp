#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/told/design.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

using DesignJson = nlohmann::ordered_json;

DesignJson finite_or_null(double value) {
  return std::isfinite(value) ? DesignJson(value) : DesignJson(nullptr);
}

DesignJson band_json(const Band& band) {
  return {{"low", band.low}, {"value", band.value}, {"high", band.high}};
}

DesignJson machine_json(const Scenario& s) {
  return {{"name", name_of(s)},      {"node", s.node.name},
          {"gpu", s.node.gpu.name},  {"nodes", s.nodes},
          {"gpus", s.gpus},          {"nics", s.node.nics},
          {"fabric", s.fabric.name}, {"oversubscription", s.fabric.oversubscription}};
}

DesignJson choice_json(const DesignTold& told, const DesignChoice& c) {
  const Offer& offer = told.machines.offers[c.offer];
  DesignJson out{{"machine", machine_json(told.machines.all[offer.machine].scenario)},
                 {"way", word_of(offer.way)},
                 {"days", band_json(c.outcome.run.days)}};
  if (c.outcome.run.dollars) out["usd"] = band_json(*c.outcome.run.dollars);
  if (c.outcome.run.dollars_per_gpu_hour)
    out["usd_per_gpu_hour"] = band_json(*c.outcome.run.dollars_per_gpu_hour);
  out["mwh"] = c.outcome.mwh;
  out["t_co2e"] = c.outcome.run.tonnes_co2.value;
  out["watts"] = c.outcome.watts;
  out["racks"] = told.designer.racks(c.offer);
  out["gpu_hours"] = c.outcome.run.gpu_hours.value;
  out["step_time_s"] = seconds(c.report.step_time);
  out["framework"] = c.report.scenario.software.framework;
  out["plan"] = c.plan;
  out["datasheet_share"] = datasheet_share(c.report);
  return out;
}

DesignJson choice_or_null(const DesignTold& told, const std::optional<DesignChoice>& c) {
  return c ? choice_json(told, *c) : DesignJson(nullptr);
}

DesignJson bill_json(const Bill& bill) {
  DesignJson lines = DesignJson::array();
  for (const BillLine& line : bill.lines) {
    DesignJson one{{"item", line.item}, {"number", line.count}, {"watts", line.power.value}};
    one["usd_each"] = line.usd ? band_json(*line.usd) : DesignJson(nullptr);
    one["usd"] = line.usd ? band_json(line.total()) : DesignJson(nullptr);
    if (!line.source.empty()) one["source"] = line.source;
    if (!line.date.empty()) one["date"] = line.date;
    if (line.unpriced) one["no_price"] = true;
    lines.push_back(std::move(one));
  }
  return {{"lines", std::move(lines)},
          {"capital_usd", band_json(bill.capital())},
          {"watts", bill.power().value},
          {"racks", bill.racks},
          {"no_price", bill.unpriced()}};
}

DesignJson answer_json(const DesignTold& told, const AimAnswer& one) {
  DesignJson out{{"proven", one.proven}, {"open", one.open}};
  if (!one.proven) out["least_open"] = finite_or_null(one.least_open);
  if (!one.choice) return out;
  out.update(choice_json(told, *one.choice));
  if (one.odds) out["p_goal"] = *one.odds;
  out["bill"] = bill_json(one.bill);
  StepReport report = one.choice->report;
  report.whole_run = one.choice->outcome.run;
  out["report"] = parsed_ordered_json(to_json(Answer(std::move(report))));
  return out;
}

DesignJson limits_json(const DesignLimits& limits) {
  return {{"days", finite_or_null(limits.days)},
          {"budget_usd", finite_or_null(limits.usd)},
          {"capital_usd", finite_or_null(limits.capital)},
          {"power_w", finite_or_null(limits.watts)},
          {"racks", finite_or_null(limits.racks)}};
}

DesignJson moves_json(const DesignTold& told) {
  DesignJson out = DesignJson::array();
  for (const LimitMove& move : told.answer.limits)
    out.push_back({{"limit", move.limit},
                   {"from", move.from},
                   {"to", move.to},
                   {"cheapest", choice_or_null(told, move.cheapest)},
                   {"fastest", choice_or_null(told, move.fastest)}});
  return out;
}

DesignJson prices_json(const DesignTold& told) {
  DesignJson out = DesignJson::array();
  for (const PriceMove& move : told.answer.prices)
    out.push_back({{"price", move.price},
                   {"factor", move.factor},
                   {"cheapest", choice_or_null(told, move.cheapest)}});
  return out;
}

DesignJson left_out_json(const DesignTold& told) {
  DesignJson out = DesignJson::array();
  for (const auto& [fate, count] : told.answer.fates)
    out.push_back({{"offers", count}, {"they", text_of(fate)}});
  return out;
}

}  // namespace

std::string design_json(const DesignTold& told) {
  const DesignAnswer& a = told.answer;
  DesignJson out{{"goal", goal_words(told.goal, told.machines)},
                 {"limits", limits_json(told.goal.limits)},
                 {"met", a.met()},
                 {"assumed", design_assumptions(told)}};
  for (const AimAnswer& one : a.answers) out[word_of(one.aim)] = answer_json(told, one);
  if (a.sure) {
    out["sure"] = choice_json(told, *a.sure);
    if (a.sure_odds) out["sure"]["p_goal"] = *a.sure_odds;
  }
  if (a.nearest) {
    out["nearest"] = choice_json(told, *a.nearest);
    out["nearest"]["without"] = a.without;
  }
  out["cheapest_to_rent"] = choice_or_null(told, a.by_way[0]);
  out["cheapest_to_own"] = choice_or_null(told, a.by_way[1]);
  out["limits_moved"] = moves_json(told);
  out["prices_moved"] = prices_json(told);
  out["front"] = DesignJson::array();
  for (const DesignChoice& one : a.front) out["front"].push_back(choice_json(told, one));
  out["offers"] = told.machines.offers.size();
  out["machines"] = told.machines.all.size();
  out["machines_searched"] = a.searched;
  out["plans_simulated"] = a.simulated;
  out["ruled_out"] = left_out_json(told);
  out["no_machine"] = DesignJson::array();
  for (const NoMachine& one : told.machines.none)
    out["no_machine"].push_back({{"machine", one.name}, {"why", one.why}});
  return json_text(out, 2);
}

}  // namespace stepcast::sim
