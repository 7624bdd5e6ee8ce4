#include "workloads/pipeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

using namespace stepcast::workloads;

namespace {

std::string text(const std::vector<Turn>& turns) {
  std::string out;
  for (const Turn& t : turns)
    out += (t.pass == Pass::forward ? "F" : "B") + std::to_string(t.micro_batch) + " ";
  return out;
}

std::int64_t peak_of(const std::vector<Turn>& turns) {
  std::int64_t alive = 0, peak = 0;
  for (const Turn& t : turns) {
    alive += t.pass == Pass::forward ? 1 : -1;
    peak = std::max(peak, alive);
  }
  return peak;
}

/// End of the pipeline's last turn when forward and backward take 1 and 2 and nothing else counts:
/// a turn starts after the one before it on its stage and after its neighbour's.
std::int64_t makespan(Schedule schedule, std::int64_t p, std::int64_t m) {
  const auto count = static_cast<std::size_t>(p);
  std::vector<std::vector<Turn>> turns;
  for (std::int64_t r = 0; r < p; ++r) turns.push_back(turns_of_stage(schedule, p, r, m));
  const std::vector<std::int64_t> none(static_cast<std::size_t>(m), -1);
  std::vector<std::vector<std::int64_t>> forward(count, none), backward(count, none);
  std::vector<std::size_t> next(count, 0);
  std::vector<std::int64_t> clock(count, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t r = 0; r < count; ++r) {
      if (next[r] == turns[r].size()) continue;
      const Turn turn = turns[r][next[r]];
      const auto mb = static_cast<std::size_t>(turn.micro_batch);
      std::int64_t ready = 0;
      if (turn.pass == Pass::forward && r > 0) ready = forward[r - 1][mb];
      if (turn.pass == Pass::backward) ready = r + 1 < count ? backward[r + 1][mb] : forward[r][mb];
      if (ready < 0) continue;
      clock[r] = std::max(clock[r], ready) + (turn.pass == Pass::forward ? 1 : 2);
      (turn.pass == Pass::forward ? forward : backward)[r][mb] = clock[r];
      ++next[r];
      progress = true;
    }
  }
  for (std::size_t r = 0; r < count; ++r) REQUIRE(next[r] == turns[r].size());
  return *std::max_element(clock.begin(), clock.end());
}

}  // namespace

TEST_CASE("GPipe runs all forwards, then all backwards in reverse") {
  for (std::int64_t stage = 0; stage < 4; ++stage)
    CHECK(text(turns_of_stage(Schedule::gpipe, 4, stage, 3)) == "F0 F1 F2 B2 B1 B0 ");
}

TEST_CASE("1F1B warms up with p-1-r forwards and then alternates") {
  const auto stage = [](std::int64_t r) { return turns_of_stage(Schedule::one_f_one_b, 4, r, 5); };
  CHECK(text(stage(0)) == "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4 ");
  CHECK(text(stage(2)) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 ");
  CHECK(text(stage(3)) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ");
  CHECK(text(turns_of_stage(Schedule::one_f_one_b, 4, 0, 2)) == "F0 F1 B0 B1 ");  // m < p
}

TEST_CASE("both schedules idle (p-1)(F+B) per rank; 1F1B holds min(p-r, m), GPipe m") {
  for (const std::int64_t p : {1, 2, 4, 8})
    for (const std::int64_t m : {1, 2, 4, 8, 32})
      for (const Schedule s : {Schedule::gpipe, Schedule::one_f_one_b}) {
        CHECK(makespan(s, p, m) == 3 * (m + p - 1));
        for (std::int64_t r = 0; r < p; ++r) {
          const std::int64_t expected = s == Schedule::gpipe ? m : std::min(p - r, m);
          CHECK(peak_of(turns_of_stage(s, p, r, m)) == expected);
          CHECK(peak_in_flight(s, p, r, m) == expected);
        }
      }
}
