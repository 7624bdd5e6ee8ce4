// Measured beside predicted as a page to hand on.
#pragma once

#include <string>
#include <vector>

#include "sim/handout/handout.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/compare/run_comparison.hpp"

namespace stepcast::validate {

struct BesideRow {
  std::string what, source;            // sources differ by their marks
  double measured = 0, predicted = 0;  // in the unit of the axes
  std::string measured_text{}, predicted_text{};
};

/// What such a page says. Rows of nothing stand in its table alone.
struct BesidePage {
  std::string title, summary;
  std::string quantity;  // "time [us]"
  sim::KeyFigures figures{};
  std::vector<std::string> notes{};
  std::vector<BesideRow> rows{};
  std::string text{};  // all of it, as it is printed
};

/// Predicted against measured as a picture with every row as its table, then the text.
sim::Told page_of(const BesidePage& page, const sim::Origin& origin);

sim::Told comparison_page(const Comparison& comparison, const sim::Origin& origin);
/// Of the trainer's runs: steps, and of a single one its parts, kernels and collectives.
sim::Told runs_page(const std::string& title, const std::vector<RunComparison>& runs,
                    const std::string& text, const sim::Origin& origin);

/// The picture of such pages. Its points are the rows.
sim::Chart scatter_chart(const std::string& title, const std::string& svg, sim::TextTable rows);

}  // namespace stepcast::validate
