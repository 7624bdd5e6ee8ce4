// Sentences that text and JSON of a design share.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "engine/units_text.hpp"
#include "sim/told/design.hpp"

namespace stepcast::sim {
namespace {

const Scenario& any_scenario(const DesignTold& told) { return told.machines.bases.front().front(); }

std::string placement_words(const topology::JobPlace& job) {
  std::string out =
      job.placement == topology::Placement::packed
          ? "nodes are packed: a job's neighbours are neighbours in the fabric"
          : fmt::format("nodes lie at random places of the fabric (seed {})", job.seed);
  out += job.other_jobs == 0
             ? "; the fabric is the job's own"
             : fmt::format("; other jobs take {:.3g} % of every link between switches",
                           100 * job.other_jobs);
  return out;
}

}  // namespace

std::string goal_words(const DesignGoal& goal, const Machines& machines) {
  const Scenario& s = machines.bases.front().front();
  const DesignLimits& limits = goal.limits;
  std::string out = s.goal.tokens.value > 0 ? to_text(s.goal.tokens) + " tokens"
                                            : to_text(s.goal.samples) + " sequences";
  out += " of " + s.model.name;
  if (std::isfinite(limits.days)) out += fmt::format(" in {} days", three_digits(limits.days));
  if (std::isfinite(limits.usd)) {
    out += ", budget " + to_text(Usd(limits.usd));
    if (goal.accounting.payback) out += " of the run's share";
  }
  if (std::isfinite(limits.capital)) out += ", capital " + to_text(Usd(limits.capital));
  if (std::isfinite(limits.watts)) out += ", power " + to_text(Watts(limits.watts));
  if (std::isfinite(limits.racks)) out += fmt::format(", {} racks", three_digits(limits.racks));
  return out;
}

std::vector<std::string> design_assumptions(const DesignTold& told) {
  const Scenario& s = any_scenario(told);
  std::vector<std::string> out{placement_words(s.fabric.job)};
  out.emplace_back("a machine is judged by its fastest plan");
  const Accounting& accounting = told.machines.accounting;
  out.emplace_back(accounting.payback
                       ? "a budget counts the run's share of what is paid (budget_counts)"
                       : "a budget counts all that is paid, also for time after the run");
  if (accounting.storage == 0 && accounting.staff == 0 && accounting.spares == 0)
    out.emplace_back("no storage, no staff, no spare nodes");
  else
    out.push_back(fmt::format("storage {} and staff {} a month, {} of the nodes as spares",
                              to_text(Usd(accounting.storage)), to_text(Usd(accounting.staff)),
                              percent(accounting.spares)));
  out.emplace_back(
      "rented machines have the first fabric of the list, without oversubscription of their own "
      "choice; bought ones any of it");
  if (s.failures.on)
    out.push_back("[failures] say what is left of the wall clock: " + s.failures.rates.name);
  else if (s.goal.goodput == 1)
    out.emplace_back("nothing fails (goodput 1)");
  else
    out.push_back("goodput " + three_digits(s.goal.goodput));
  if (std::isfinite(told.goal.limits.usd))
    out.emplace_back("in P(goal) the range of a price holds it in 80 % of cases");
  out.push_back(fmt::format("PUE {}, {} of CO2, electricity {} for what is bought",
                            three_digits(s.site.pue), to_text(s.site.carbon),
                            to_text(s.cost.electricity)));
  for (const TomlValue& node : told.goal.nodes)
    if (!told.goal.nics.empty() && node.text() != nullptr) {
      out.emplace_back("a node with fewer NICs is priced as one with all of them");
      break;
    }
  return out;
}

std::string offer_words(const DesignTold& told, std::size_t offer) {
  const Offer& one = told.machines.offers[offer];
  return name_of(told.machines.all[one.machine].scenario) + ", " + words_of(one.terms.way);
}

double datasheet_share(const StepReport& r) {
  return r.kernel_provenance[static_cast<std::size_t>(Provenance::datasheet)];
}

}  // namespace stepcast::sim
