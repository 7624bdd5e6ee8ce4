// A model's name as files have it: an id, a folder, a flavour.
#include <algorithm>
#include <utility>

#include "sim/inputs/formats.hpp"

namespace stepcast::sim {

void set_model_name(Facts& facts, const std::string& said, const Catalogue& catalogue,
                    const std::string& source) {
  std::string name = said;
  while (name.ends_with("/")) name.pop_back();
  const std::string last = name.substr(name.rfind('/') + 1);
  for (const std::string& one : {name, last})
    if (!one.empty() && !is_file_name(one) && catalogue.has("models", one))
      return facts.set("model.name", toml_text(one, ""), source);
  facts.set("model.name", toml_text(said, ""), source);
  facts.notes.push_back("No entry is near the model '" + said + "': --model says one.");
}

}  // namespace stepcast::sim
