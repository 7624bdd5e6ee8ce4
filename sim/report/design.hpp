// The answer to a goal, as text, as a table of bills and as JSON.
#pragma once

#include <string>

#include "sim/design/study.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::sim {

/// What the three borrow to be told.
struct DesignTold {
  const DesignGoal& goal;
  const Machines& machines;
  const PartList& parts;
  const Designer& designer;
  const DesignAnswer& answer;
};

/// The lines of each bill, of answers that are the same machine once.
TextTable bill_table(const DesignTold&);
/// `bills` is that, as it is to be shown.
std::string design_text(const DesignTold&, const std::string& bills);
std::string design_json(const DesignTold&);

/// "2.00T tokens of llama3-70b in 30.0 days, for at most 5.00 million USD"
std::string goal_words(const DesignGoal&, const Machines&);
/// What holds of the answer beside its figures: placement, fabric, plans, prices.
std::vector<std::string> design_assumptions(const DesignTold&);
/// "64 x dgx-h100, rail-only, 8 NICs, own"
std::string offer_words(const DesignTold&, std::size_t offer);
/// The share of kernel time that rests on datasheets alone.
double datasheet_share(const StepReport&);

}  // namespace stepcast::sim
