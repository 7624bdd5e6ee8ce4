#include "validate/trace/intervals.hpp"

#include <algorithm>

namespace stepcast::validate {

Intervals::Intervals(std::vector<Interval> any) {
  std::erase_if(any, [](const Interval& i) { return i.end <= i.begin; });
  std::ranges::sort(any, {}, &Interval::begin);
  for (const Interval& i : any) {
    if (list_.empty() || i.begin > list_.back().end)
      list_.push_back(i);
    else
      list_.back().end = std::max(list_.back().end, i.end);
  }
}

Intervals Intervals::minus(const Intervals& other) const {
  Intervals out;
  auto hole = other.list_.begin();
  for (Interval rest : list_) {
    while (hole != other.list_.end() && hole->end <= rest.begin) ++hole;
    for (auto h = hole; h != other.list_.end() && h->begin < rest.end; ++h) {
      if (h->begin > rest.begin) out.list_.push_back({rest.begin, h->begin});
      rest.begin = std::min(rest.end, h->end);
    }
    if (rest.begin < rest.end) out.list_.push_back(rest);
  }
  return out;
}

Duration Intervals::within(Interval window) const {
  Duration sum{};
  auto at =
      std::ranges::partition_point(list_, [&](const Interval& i) { return i.end <= window.begin; });
  for (; at != list_.end() && at->begin < window.end; ++at)
    sum += std::min(at->end, window.end) - std::max(at->begin, window.begin);
  return sum;
}

}  // namespace stepcast::validate
