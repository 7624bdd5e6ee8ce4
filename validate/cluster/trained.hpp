// Points trained in a box: the trainer's ranks as processes, one on each node of their job.
#pragma once

#include <string>
#include <vector>

#include "validate/cluster/box.hpp"

namespace stepcast::validate {

/// One run of the trainer: ranks by their nodes, the files that it writes.
struct TrainedJob {
  std::vector<std::int64_t> nodes;
  std::string results, timeline;
};

/// All jobs of one scenario file at once. `options`: further words for stepcast-trainer. The exit
/// code of the first rank that failed, after its message.
int train_in_box(const Box& box, const std::string& scenario, const std::vector<TrainedJob>& jobs,
                 const std::vector<std::string>& options);

}  // namespace stepcast::validate
