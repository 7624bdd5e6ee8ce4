// The cheapest, the fastest and the greenest machine that meets a goal, proven: an outer
// branch and bound over machines, each of which a search over its plans answers. A machine is
// judged by its fastest plan. docs/design.md has the bounds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/design/machine.hpp"
#include "sim/run/step_report.hpp"

namespace stepcast::sim {

/// What is made small: USD of the run, days, MWh at the building's meter.
enum class Aim : std::uint8_t { cheapest, fastest, greenest };
inline constexpr Aim aims[] = {Aim::cheapest, Aim::fastest, Aim::greenest};
std::string word_of(Aim);

/// What a search over a machine's plans says.
struct FastestPlan {
  std::optional<StepReport> report{};  // of the fastest plan, or of those found so far
  /// Without a report: every plan takes longer; infinite: none is legal and fits.
  double at_least_s = 0;
  bool open = false;  // ended early: there may be a faster one, none faster than open_s
  double open_s = 0;
  std::size_t legal = 0, too_large = 0, simulated = 0;
  std::string plan{};  // its knobs in words
};

enum class SearchDepth : std::uint8_t { glance, whole };

/// Searches a machine's plans; those that cannot take less than `above_s` may be left out. A glance
/// is content with a good plan. With [failures] the report has its goodput.
using PlanFinder = std::function<FastestPlan(const Machine&, double above_s, SearchDepth)>;

/// What a run comes to on an offer.
struct DesignOutcome {
  WholeRun run;
  Cash cash;
  Band money{};                                  // USD that a budget counts
  double days = 0, usd = 0, mwh = 0, watts = 0;  // usd: of `money`; watts: at the meter, training
  double of(Aim) const;
};

struct DesignChoice {
  std::size_t offer{};
  StepReport report;
  DesignOutcome outcome;
  std::string plan;
};

/// The first that sorts an offer out, or that it is among the answers.
enum class Fate : std::uint8_t {
  way,      // not the one that is asked for
  racks,    // the machine needs more
  capital,  // its bill is above
  power,    // idle cards alone draw more
  peak,     // at the cards' peak it misses a limit, or beats no answer
  plans,    // the bound of each of its plans says so
  no_plan,  // none is legal
  memory,   // none fits
  missed,   // simulated: it misses a limit
  beaten,   // simulated, meets the goal
  answer,
  open,  // ended before it was known
};
inline constexpr std::size_t num_fates = 12;
std::string_view text_of(Fate);

/// An exact search over offers: what it learns of a machine serves every later question.
class Designer {
 public:
  /// All are borrowed.
  Designer(const Machines&, const PartList&, const PeakRules&, PlanFinder,
           const std::atomic<bool>& stop);

  /// Glances at a few machines that may be the best: best() begins with what is known, and has
  /// something to say when it is ended early.
  void scout(Aim, const DesignLimits&);
  /// The best offer within the limits; none: no offer is.
  std::optional<DesignChoice> best(Aim, const DesignLimits&, const PriceFactors& = {});
  /// Every offer that is known to keep to the limits, each with the fastest plan so far.
  std::vector<DesignChoice> known(const DesignLimits&, const PriceFactors& = {}) const;
  /// After best(): nothing that was left open can be better than its answer.
  bool proven() const { return open_ == 0; }
  std::size_t open() const { return open_; }
  /// The least value among what was left open.
  double least_open() const { return least_open_; }

  /// What became of an offer, by what is known; `answers` are those of best().
  Fate fate(std::size_t offer, const DesignLimits&, const std::vector<std::size_t>& answers) const;
  std::size_t searched() const { return searched_; }    // machines
  std::size_t simulated() const { return simulated_; }  // plans of them

  /// If its step took `step_s`, and cards did nothing but the products that no plan is without, at
  /// their peak: below what any plan comes to. `watts` is that of idle cards.
  DesignOutcome bound(std::size_t offer, double step_s, const PriceFactors& = {}) const;
  /// Of the fastest plan.
  DesignOutcome outcome(std::size_t offer, const StepReport&, const PriceFactors& = {}) const;
  std::int64_t racks(std::size_t offer) const;
  /// With a quote's price, where the offer is that.
  Bill bill(std::size_t offer, Watts gpu, const PriceFactors& = {}) const;

 private:
  struct Known {
    double at_least_s = 0;  // of its fastest plan
    std::optional<FastestPlan> plan{};
    std::optional<FastestPlan> so_far{};  // a plan that may not be the fastest
    bool asked = false;
    const FastestPlan* any() const { return plan ? &*plan : so_far ? &*so_far : nullptr; }
    bool open = false;  // its search ended early
    std::size_t legal = 0, too_large = 0;
  };
  struct Static {  // of an offer, without a simulation
    std::int64_t racks = 0;
    double capital = 0;
  };
  std::optional<Fate> static_fate(std::size_t offer, const DesignLimits&) const;
  DesignOutcome outcome_from(const Scenario& priced, const Offer&, const StepFigures&,
                             const Band& goodput, Watts gpu) const;
  DesignOutcome bound_of(const Scenario& priced, const Offer&, double step_s) const;
  /// The longest step with which it keeps to the limits and reaches `value`.
  double longest_step(std::size_t offer, Aim, const DesignLimits&, double value,
                      const PriceFactors&) const;
  void ask(std::size_t machine, double above_s, SearchDepth);
  std::optional<DesignChoice> best_known(Aim, const DesignLimits&, const PriceFactors&) const;
  const Machine& machine_of_offer(std::size_t offer) const;

  const Machines& machines_;
  const PartList& parts_;
  PlanFinder find_;
  const std::atomic<bool>& stop_;
  std::vector<Known> known_;     // by machine
  std::vector<double> peak_s_;   // likewise
  std::vector<Static> statics_;  // by offer
  std::size_t searched_ = 0, simulated_ = 0, open_ = 0;
  double least_open_ = 0;
};

bool keeps_to(const DesignOutcome&, const DesignLimits&);

}  // namespace stepcast::sim
