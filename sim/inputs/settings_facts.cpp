// Which framework's configuration it is.
#include "sim/inputs/formats.hpp"

namespace stepcast::sim {

void add_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
               const std::string& source) {
  if (const InputFormat* format = format_of(settings))
    format->add(facts, settings, catalogue, source);
}

}  // namespace stepcast::sim
