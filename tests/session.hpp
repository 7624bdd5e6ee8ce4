// The shipped catalogue and a session on it, which the tests of one program share.
#pragma once

#include "sim/run/session.hpp"

namespace stepcast {

inline sim::Session& session() {
  static const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  static sim::Session shared(catalogue);
  return shared;
}

inline const sim::Catalogue& catalogue() { return session().catalogue(); }

}  // namespace stepcast
