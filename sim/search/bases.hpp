// What a search over plans starts from: a document's scenario once for each framework that may run
// it, and what such a framework cannot be told to run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/search/space.hpp"

namespace stepcast::sim {

/// The scenario once per framework, its plan left open: where the document names none, for what
/// plans of today run on.
std::vector<Scenario> search_bases(TomlValue document, const Catalogue& catalogue);

/// What a framework's launch cannot say is no plan of it: where it can say the first plan of the
/// space, the plainest. Where it cannot, it has no form at all, and nothing is refused. The space
/// is borrowed.
std::function<std::string(const Scenario&)> refusal_by_launch(const SearchSpace& space);

}  // namespace stepcast::sim
