// Keys about a whole run: [run_goal], [cost], [site] and [power], for members.hpp.
#pragma once

#include "sim/files/key.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/run_goal.hpp"

namespace stepcast::sim {

inline constexpr Names<PowerCount, 2> power_count_names{{
    {"modelled", PowerCount::modelled},
    {"tdp", PowerCount::tdp},
}};

template <class Goal, class Visitor>
void visit_run_goal(Goal& goal, Visitor&& visit) {
  visit.may(
      Key{"tokens", "of the whole run: days, dollars, MWh and CO2 of it", "tokens", "15T"}.within(
          1, 1e18),
      goal.tokens);
  visit.may(Key{"samples", "the same in sequences", "samples", "N"}.within(1, 1e18), goal.samples);
  visit.may(Key{"days", "or how long it may take", "days", "N"}.within(1e-3, 36'525), goal.days);
  visit.positive({"goodput", "share of the wall clock that makes progress", "goodput", "SHARE"},
                 goal.goodput);
  visit.may({"today", "that the age of prices is counted to, 2026-11-23"}, goal.today);
}

template <class Cost, class Visitor>
void visit_cost(Cost& cost, Visitor&& visit) {
  visit.part({"price", "rent of a GPU: \"2.5 USD/h\", or a list (stepcast show prices)", "price",
              "USD/h"});
  visit.may({"price_low", "of its range; default: price"}, cost.price_low);
  visit.may({"price_high", "of its range; default: price"}, cost.price_high);
  visit.may({"own", "bought instead of rented", "own"}, cost.own);
  visit.part({"capex", "of a GPU with its share of node and network: \"46000 USD\", or a list"});
  visit.may({"capex_low", "of its range; default: capex"}, cost.capex_low);
  visit.may({"capex_high", "of its range; default: capex"}, cost.capex_high);
  visit.may({"overhead", "own: on top of capex, a share of it"}, cost.overhead);
  visit.positive({"years", "own: that capex is paid back in"}, cost.years);
  visit.may({"interest", "own: a year, 0.08 is 8 %"}, cost.interest);
  visit.positive({"utilisation", "own: share of its hours that the cluster works"},
                 cost.utilisation);
  visit.may({"opex", "own: of a GPU, beside electricity"}, cost.opex);
  visit.may({"electricity", "own: what a kWh costs"}, cost.electricity);
  visit.may({"source", "of the price"}, cost.source);
  visit.may({"date", "of the price, 2026-11-23 or 2026-11"}, cost.date);
}

template <class Site, class Visitor>
void visit_site(Site& site, Visitor&& visit) {
  visit.positive({"pue", "power of the building over that of the machines", "pue", "X"}, site.pue);
  visit.part({"carbon", "CO2 of electricity: \"369 g/kWh\", or a country: USA, Germany", "carbon",
              "G/KWH"});
  visit.may({"source", "of the carbon intensity"}, site.source);
  visit.may({"date", "of the carbon intensity"}, site.date);
}

/// Of the GPUs and of how their power is counted.
template <class Scenario, class Visitor>
void visit_power(Scenario& scenario, Visitor&& visit) {
  visit.may({"cap", "power limit of a GPU, below its tdp: 500 W", "power-cap", "W"},
            scenario.node.gpu.power_cap);
  visit.may({"clock", "of a GPU's SMs, locked: 1410 MHz", "clock", "MHZ"}, scenario.node.gpu.clock);
  visit.may({"count", "modelled, or tdp of the GPUs alone as model cards count"},
            scenario.power_count, power_count_names);
}

}  // namespace stepcast::sim
