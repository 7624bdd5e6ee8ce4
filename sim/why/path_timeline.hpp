// A logged step as a timeline with its critical path: the very calls that the path goes through.
#pragma once

#include "sim/run/timeline.hpp"
#include "sim/why/named_path.hpp"

namespace stepcast::sim {

Timeline path_timeline(const LoggedStep& step, const NamedPath& path);

}  // namespace stepcast::sim
