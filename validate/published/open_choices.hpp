// What a row of what_ran.csv leaves open, recompute and compiler: each that its framework offers is
// a row of its own, and the reported peak chooses among their forecasts.
#pragma once

#include <string>
#include <vector>

#include "validate/published/defaults.hpp"
#include "validate/rows/row.hpp"
#include "workloads/memory/figures.hpp"

namespace stepcast::validate {

struct OpenChoice {
  std::string name;         // "none", "full, compiled"
  PublishedRow row;         // as if it stated that
  bool is_default = false;  // what the framework does unasked
  bool tokens = false;      // how many tokens a GPU has at once is among what is open
};

/// Least recompute first, without a compiler first; a single one where nothing is open. Beside them
/// what a plan's size hangs on may be open: the sequence length, the micro-batch, the number of
/// GPUs, the expert degree.
std::vector<OpenChoice> open_choices(const PublishedRow& row, const FrameworkDefaults& framework);
/// "recompute and the micro-batch are not stated: "
std::string told_open(const PublishedRow& row, const FrameworkDefaults& framework);

/// In GiB, of the figure that a row reports; where it does not say which, what the card must have.
double figure_of(const workloads::MemoryFigures& figures, const std::string& figure);

/// The forecast of a choice.
struct ChoiceForecast {
  const OpenChoice* choice = nullptr;
  double figure_gib = 0;  // of the figure that the row reports
  bool fits = false;
};

struct TakenChoice {
  std::size_t index = 0;
  std::string told;
};

/// Of a run with a peak the nearest; of one without the default where that fits, else the first
/// that does; of a run that died the default, or where its tokens are open the least that has what
/// was allocated when it did. `forecasts` has one or more.
TakenChoice taken_choice(const PublishedRow& row, const std::vector<ChoiceForecast>& forecasts);

}  // namespace stepcast::validate
