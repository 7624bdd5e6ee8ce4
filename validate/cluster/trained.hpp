// A point trained in a box: the trainer's ranks as processes, one on each node.
#pragma once

#include <string>
#include <vector>

#include "validate/cluster/box.hpp"
#include "validate/command/points.hpp"

namespace stepcast::validate {

/// Results and timeline go to the point's files. `options`: further words for stepcast-trainer. The
/// exit code of the first rank that failed, after its message.
int train_in_box(const Box& box, const Point& point, const std::vector<std::string>& options);

}  // namespace stepcast::validate
