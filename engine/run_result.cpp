// What a run came to: whether its steps repeat, how long they are, where they went.
#include <algorithm>

#include "engine/runner.hpp"

namespace stepcast::engine {

Duration RankAccount::total() const {
  Duration sum = compute + bubble + wait + host;
  for (const Duration d : exposed) sum += d;
  return sum;
}

RankAccount& RankAccount::operator+=(const RankAccount& other) {
  compute += other.compute;
  interference += other.interference;
  bubble += other.bubble;
  wait += other.wait;
  host += other.host;
  for (std::size_t t = 0; t < exposed.size(); ++t) {
    exposed[t] += other.exposed[t];
    communication[t] += other.communication[t];
  }
  return *this;
}

void RankAccount::repeat_since(const RankAccount& before, std::int64_t n) {
  const auto repeat = [n](Duration& now, Duration then) { now += n * (now - then); };
  repeat(compute, before.compute);
  repeat(interference, before.interference);
  repeat(bubble, before.bubble);
  repeat(wait, before.wait);
  repeat(host, before.host);
  for (std::size_t t = 0; t < exposed.size(); ++t) {
    repeat(exposed[t], before.exposed[t]);
    repeat(communication[t], before.communication[t]);
  }
}

RankAccount RankAccount::divided_by(std::int64_t n) const {
  RankAccount out = *this;
  out.compute /= n;
  out.interference /= n;
  out.bubble /= n;
  out.wait /= n;
  out.host /= n;
  for (Duration& d : out.exposed) d /= n;
  for (Duration& d : out.communication) d /= n;
  return out;
}

/// Whether every rank left the last two steps in the same state, relative to the steps' boundaries.
bool Runner::steps_end_alike() const {
  if (wraps_.size() < 2) return false;
  const std::size_t last = wraps_.size() - 1;
  const auto relative = [&](std::size_t step, std::size_t rank, std::size_t lane) {
    const bool marked = !role_of(static_cast<std::uint32_t>(rank)).mark.empty();
    Time boundary{};
    if (!marked) boundary = boundaries_[step][rank];
    if (marked && step > 0) boundary = boundaries_[step - 1][rank];
    const Duration d = wraps_[step][rank * (num_lanes_ + 1) + lane] - boundary.time_since_epoch();
    return lane == num_lanes_ ? d : std::max(d, Duration{});
  };
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    for (std::size_t l = 0; l <= num_lanes_; ++l)
      if (relative(last, r, l) != relative(last - 1, r, l)) return false;
  return true;
}

RunResult Runner::result() {
  RunResult out = counters_;
  out.queued = queue_.pushed();
  out.steps = static_cast<int>(last_step_) + 1;
  for (const RankState& r : ranks_) out.ranks.push_back(r.last_account);
  const auto last_of = [&](std::size_t step) {
    return *std::ranges::max_element(boundaries_[step]);
  };
  const std::size_t n = boundaries_.size();
  if (options_.cold) {
    out.step = last_of(n - 1) - Time{};
    for (std::size_t r = 0; r < out.ranks.size(); ++r)  // early finishers wait for the last
      out.ranks[r].wait += out.step - out.ranks[r].total();
    return out;
  }
  if (options_.measured > 0) return mean_of_measured(std::move(out));
  out.step = n > 1 ? last_of(n - 1) - last_of(n - 2) : last_of(n - 1) - Time{};
  const bool same_state = steps_end_alike();
  const bool same_period = n > 2 && out.step == last_of(n - 2) - last_of(n - 3);
  out.steady = same_state || same_period;
  return out;
}

RunResult Runner::mean_of_measured(RunResult out) const {
  const int n = options_.measured;
  const std::vector<Time>& first = boundaries_.front();
  const std::vector<Time>& last = boundaries_[static_cast<std::size_t>(n)];
  // The mean over ranks of the mean over steps, without a sum that could overflow.
  const Duration of_rank_0 = last[0] - first[0];
  Duration rest{};
  for (std::size_t r = 0; r < ranks_.size(); ++r) rest += (last[r] - first[r]) - of_rank_0;
  out.step = (of_rank_0 + rest / static_cast<std::int64_t>(ranks_.size())) / n;
  for (std::size_t s = 1; s < boundaries_.size(); ++s)
    out.measured.push_back(*std::ranges::max_element(boundaries_[s]) -
                           *std::ranges::max_element(boundaries_[s - 1]));
  for (RankAccount& account : out.ranks) account = account.divided_by(n);
  return out;
}

}  // namespace stepcast::engine
