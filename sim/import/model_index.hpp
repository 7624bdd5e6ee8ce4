// Models under their ids at Hugging Face, without a net: scenarios/hub/models.toml.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

struct IndexedModel {
  std::string id;         // "Qwen/Qwen3-8B"
  TomlValue entry;        // as a file of scenarios/models says it; empty where another key does
  std::string catalogue;  // the entry with the same shape
  std::string unlike;     // what it has that no layer of ours is near to
  std::string nearest;    // another id
  double published = 0;   // parameters, billions; 0: not stated
  std::string explained;  // why ours are more than 1 % away
};

/// Without owner, case, hyphens and what changes no shape: "-Instruct", dates, quantised weights.
std::string plain_model_name(std::string_view name);

class ModelIndex {
 public:
  ModelIndex() = default;
  /// Throws InputError where an entry is no table or two have one name.
  explicit ModelIndex(const TomlValue& document);

  const IndexedModel* find(std::string_view name) const;  // null: unknown
  /// Of a model of text and images, of which the entry is the text alone.
  bool leaves_images_out(std::string_view name) const;
  const std::vector<IndexedModel>& models() const { return models_; }

 private:
  std::vector<IndexedModel> models_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::set<std::string, std::less<>> of_images_;  // plain names
};

}  // namespace stepcast::sim
