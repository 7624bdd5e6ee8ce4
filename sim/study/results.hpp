// What a command has to show: a study and what became of its points.
#pragma once

#include <optional>

#include "sim/confidence/order.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/point_row.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {

struct Results {
  explicit Results(Study asked) : study(std::move(asked)), rows(study.num_points()) {}

  Study study;
  PointRows rows;                    // one per finished point
  std::optional<Answer> single;      // in full where there is no [sweep]
  std::vector<Scenario> unanswered;  // of a sweep without an answer: what it would have run with
  std::optional<Order> order;        // how sure it is which of two plans is faster
  bool interrupted = false;
};

}  // namespace stepcast::sim
