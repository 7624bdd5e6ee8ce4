// What a row of what_ran.csv leaves to the name of its model and to its layout, filled in.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "validate/published/model.hpp"
#include "validate/rows/row.hpp"

namespace stepcast::validate {

struct CompletedRow {
  PublishedRow row;
  std::vector<std::string> assumed;  // sentences
};

/// The shape of the catalogue's model that the row names, and a batch of one micro-batch a replica
/// where none is stated. Rows of other tables stay as they are.
CompletedRow completed(const PublishedRow& row, const PublishedModels& models,
                       const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
