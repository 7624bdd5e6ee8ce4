// A goal's whole answer: three machines with their bills, what a little more or less of each limit
// and price would change, and what was ruled out.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/design/design.hpp"
#include "sim/design/goal.hpp"

namespace stepcast::sim {

/// One limit as it might be.
struct LimitMove {
  std::string limit;        // "deadline"
  double from = 0, to = 0;  // days, USD, W, racks
  std::optional<DesignChoice> cheapest, fastest;
};

/// One price as it might be.
struct PriceMove {
  std::string price;  // "rent"
  double factor = 1;
  std::optional<DesignChoice> cheapest;
};

struct AimAnswer {
  Aim aim{};
  std::optional<DesignChoice> choice;
  std::optional<double> odds;  // that it keeps to deadline and budget
  Bill bill;
  bool proven = true;
  std::size_t open = 0;
  double least_open = 0;  // the least that what was left open can come to
};

/// The cheapest that is come by in one way; none: nothing meets the goal so.
struct WayAnswer {
  Acquisition way;
  std::optional<DesignChoice> choice;
  bool above_budget = false;  // it meets the goal but for budget and capital
};

struct DesignAnswer {
  std::array<AimAnswer, 3> answers;  // in the order of `aims`
  std::vector<DesignChoice> front;   // simulated, in days, USD and MWh beaten by none of them
  std::vector<LimitMove> limits;
  std::vector<PriceMove> prices;
  std::vector<WayAnswer> by_way;     // of each way that is offered
  std::optional<DesignChoice> sure;  // cheapest that meets the goal in 90 % of cases
  std::optional<double> sure_odds;
  /// Where nothing meets the goal: the cheapest without these limits.
  std::optional<DesignChoice> nearest;
  std::string without;
  std::vector<std::pair<Fate, std::size_t>> fates;
  std::size_t searched = 0, simulated = 0;
  bool ended = false;  // early: not all was asked
  bool met() const { return answers.front().choice.has_value(); }
  /// The cheapest by the lists, or none.
  const DesignChoice* cheapest_to(Tenure) const;
};

inline constexpr double moved_limit = 0.05, moved_price = 0.2, wanted_odds = 0.9;

/// `judge` fills in the error bar of a step; may be empty. `ended`: no further question is asked.
DesignAnswer study_design(Designer&, const Machines&, const DesignLimits&,
                          const std::function<void(StepReport&)>& judge,
                          const std::function<bool()>& ended);

}  // namespace stepcast::sim
