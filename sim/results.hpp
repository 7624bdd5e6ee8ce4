// What a command has to show: a study and the answers to its points, and where they go.
#pragma once

#include <string>
#include <vector>

#include "sim/answer.hpp"
#include "sim/sweep.hpp"

namespace stepcast::sim {

struct Results {
  Study study;
  std::vector<std::optional<Answer>> answers;  // one per point; empty where stopped before
  bool interrupted = false;
};

}  // namespace stepcast::sim
