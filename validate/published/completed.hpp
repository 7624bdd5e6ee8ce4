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
  bool uneven = false;  // sequences are of several lengths, of which only the mean is known
};

/// Where no batch is stated: what tokens and steps a second tell, else one micro-batch a replica
/// and stage. False if a step's time is stated and nobody knows of how many micro-batches.
bool take_batch(PublishedRow& row, std::vector<std::string>& assumed);

/// The shape of the catalogue's model that the row names; the mean of lengths that are uneven, in
/// parts that its ranks divide. Rows of other tables stay as they are.
CompletedRow completed(const PublishedRow& row, const PublishedModels& models,
                       const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
