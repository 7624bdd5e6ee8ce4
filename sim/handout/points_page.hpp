// Points of a sweep, kept results and sides of a comparison as pages to hand on.
#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison.hpp"
#include "sim/handout/handout.hpp"
#include "sim/study/results.hpp"

namespace stepcast::sim {

struct NamedRow {
  std::string name;
  const PointRow* row;  // borrowed
};

/// For whoever pays, of one row; where its time goes, of each. What a row does not hold is named.
std::vector<ToldSection> rows_sections(const std::vector<NamedRow>& rows);

/// Kept results: what they hold; `printed` is what was printed with them, may be empty.
Told results_page(const std::string& title, const std::vector<NamedRow>& rows,
                  const std::string& printed, const Origin& origin);

/// The points of a sweep.
Told sweep_page(const Results& results, const TextTable& table, const Catalogue& catalogue,
                const Origin& origin);

Told comparison_page(const Comparison& comparison, const Catalogue& catalogue,
                     const Origin& origin);

}  // namespace stepcast::sim
