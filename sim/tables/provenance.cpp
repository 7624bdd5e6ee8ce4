#include "sim/tables/provenance.hpp"

namespace stepcast::sim {

std::string_view name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::interpolated:
      return "interpolated";
    case Provenance::extrapolated:
      return "extrapolated";
    case Provenance::derived:
      return "derived";
    case Provenance::model:
      return "model";
    case Provenance::datasheet:
      return "datasheet";
  }
  return "unknown";
}

}  // namespace stepcast::sim
