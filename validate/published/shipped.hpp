// The tables of published runs that are shipped, and what is scored of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "validate/published/scenario.hpp"

namespace stepcast::validate {

/// The first are the rows that rules were made on; the others stand beside them, so that their
/// means stay comparable.
struct ShippedTable {
  const char *name, *file, *title;
  Bucket bucket;  // what is scored; none: all
};
std::span<const ShippedTable> shipped_tables();
/// The table of that name; null: there is none.
const ShippedTable* shipped_table(const std::string& name);

std::string path_of(const ShippedTable& table, const sim::Catalogue& catalogue);

/// Of modern: also the rows of the first table in low precision, but those that stand in both.
std::vector<PublishedRow> rows_of(const ShippedTable& table, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
