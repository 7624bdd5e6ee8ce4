// A comparison as a page to hand on.
#pragma once

#include "sim/handout/handout.hpp"
#include "validate/compare/comparison.hpp"

namespace stepcast::validate {

/// Predicted against measured as a picture with every scored row as its table; the tables of
/// report_text().
sim::Page comparison_page(const Comparison& comparison, const sim::Origin& origin);

/// The section that such pages begin with. `points` in the order of `rows`.
sim::Chart scatter_chart(const std::string& title, const std::string& svg, sim::TextTable rows);

}  // namespace stepcast::validate
