// A logged step as a timeline with its critical path: the very calls that the path goes through.
#pragma once

#include "sim/run/timeline.hpp"
#include "sim/why/named_path.hpp"

namespace stepcast::sim {

/// Of the ranks that `asked` names; those on the path are always shown.
Timeline path_timeline(const LoggedStep& step, const NamedPath& path, const RankChoice& asked = {});

}  // namespace stepcast::sim
