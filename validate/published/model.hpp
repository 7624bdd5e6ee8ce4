// From a published row to a [model] table: sizes from the columns, blocks from the model's name
// (published_models.toml), and whether both give the parameters that the source counts; or all of
// it from the catalogue's model of that name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "validate/rows/pattern.hpp"
#include "validate/rows/row.hpp"

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

  /// The catalogue's model that the row's name means; empty: none, or one that is refused.
  std::string catalogue_name(const PublishedRow& row) const;

  /// `vocab_multiple`: the vocabulary is padded to a multiple of it.
  PublishedModel of(const PublishedRow& row, std::int64_t vocab_multiple) const;

 private:
  struct Family {
    std::string name, refused;
    std::string named_alone;  // why a row is refused that gives sizes in the place of the name
    std::vector<std::string> match;
    bool activation_from_parameters = false;
    std::int64_t vocab = 0;
    bool dense = true;
    sim::TomlValue members;  // of [model]
  };
  struct Named {
    Pattern name;
    std::string model;  // of the catalogue
  };
  const Family& family_of(const PublishedRow& row) const;
  void read_family(const sim::TomlValue& item);
  void read_named(const sim::TomlValue& item);

  std::vector<Family> families_;
  std::vector<Named> named_;
};

}  // namespace stepcast::validate
