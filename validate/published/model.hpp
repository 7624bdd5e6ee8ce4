// From a published row to a [model] table: sizes from the columns, blocks from the model's name
// (published_models.toml), and whether both give the parameters that the source counts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "validate/published/row.hpp"

namespace stepcast::validate {

struct PublishedModel {
  std::string refused;               // why no scenario can be made, else empty
  sim::TomlValue table;              // [model]
  std::vector<std::string> assumed;  // sentences: what the row does not state
};

class PublishedModels {
 public:
  /// Throws InputError with file:line on an unknown or missing key.
  explicit PublishedModels(const std::string& file);

  /// `vocab_multiple`: the vocabulary is padded to a multiple of it.
  PublishedModel of(const PublishedRow& row, std::int64_t vocab_multiple) const;

 private:
  struct Family {
    std::string name, refused;
    std::vector<std::string> match;
    bool activation_from_parameters = false;
    std::int64_t vocab = 0;
    bool dense = true;
    sim::TomlValue members;  // of [model]
  };
  const Family& family_of(const PublishedRow& row) const;

  std::vector<Family> families_;
};

}  // namespace stepcast::validate
