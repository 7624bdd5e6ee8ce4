// The answer to a goal, as text, as tables and as JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/design/study.hpp"
#include "sim/files/text_table.hpp"
#include "sim/form/form.hpp"

namespace stepcast::sim {

/// What the three borrow to be told.
struct DesignTold {
  const DesignGoal& goal;
  const Machines& machines;
  const PartList& parts;
  const Designer& designer;
  const DesignAnswer& answer;
};

/// An answer and all that it is: "cheapest, greenest".
struct NamedAnswer {
  std::string name;
  const AimAnswer* answer;  // borrowed
};
/// Answers that are the same offer stand once.
std::vector<NamedAnswer> named_answers(const DesignAnswer&);

TextTable answers_table(const DesignTold&);
/// Days, USD, power, racks and energy of each.
TextTable choices_table(const DesignTold&, const std::vector<DesignChoice>&);
/// The lines of each bill.
TextTable bill_table(const DesignTold&);
/// Without the column that names the answer; with low and high, source and date of each price.
TextTable one_bill_table(const Bill&);

/// Where a price comes from: "dgx-b200", "derived 2026-11: ...".
struct PriceSource {
  std::string item, source;
};
/// Each once.
std::vector<PriceSource> price_sources(const DesignTold&);

/// "deadline", "42.8 days", and what becomes of the two.
struct MovedLimit {
  std::string limit, to, cheapest, fastest;
  bool matters;  // either changes
};
std::vector<MovedLimit> moved_limits(const DesignTold&);

/// "rent", -0.2, and the cheapest then.
struct MovedPrice {
  std::string price;
  double by = 0;
  std::string usd, machine;      // an empty machine: the same
  std::optional<double> change;  // of the USD, a share; none: nothing meets the goal
};
std::vector<MovedPrice> moved_prices(const DesignTold&);
/// Of each way to come by a machine the cheapest, with what is paid when.
TextTable ways_table(const DesignTold&);
/// Renting beside owning; empty where only one meets the goal.
std::string rent_or_own_words(const DesignTold&);

/// How many offers, and what became of them; machines that were no offer last.
std::vector<std::pair<std::size_t, std::string>> what_became(const DesignTold&);
/// How many were searched, what is not proven: a sentence each.
std::vector<std::string> proof_words(const DesignTold&);
/// Which machine meets the goal in 90 % of cases; empty where that is not known.
std::string odds_words(const DesignTold&);

/// `bills` is that, as it is to be shown.
std::string design_text(const DesignTold&, const std::string& bills);
std::string design_json(const DesignTold&);
nlohmann::ordered_json design_schema();

/// "2.00T tokens of llama3-70b in 30.0 days, for at most 5.00 million USD"
std::string goal_words(const DesignGoal&, const Machines&);
/// What holds of the answer beside its figures: placement, fabric, plans, prices.
std::vector<std::string> design_assumptions(const DesignTold&);
/// "64 x dgx-h100, rail-only, 8 NICs, own"
std::string offer_words(const DesignTold&, std::size_t offer);
/// The share of kernel time that rests on datasheets alone.
double datasheet_share(const StepReport&);

}  // namespace stepcast::sim
