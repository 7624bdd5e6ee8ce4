// Sets of time as sorted, disjoint intervals.
#pragma once

#include <vector>

#include "engine/units.hpp"

namespace stepcast::validate {

struct Interval {
  Time begin{}, end{};
  friend bool operator==(const Interval&, const Interval&) = default;
};

class Intervals {
 public:
  Intervals() = default;
  /// The union; empty intervals vanish.
  explicit Intervals(std::vector<Interval> any);

  Intervals minus(const Intervals& other) const;
  Duration within(Interval window) const;
  const std::vector<Interval>& list() const { return list_; }

 private:
  std::vector<Interval> list_;
};

}  // namespace stepcast::validate
