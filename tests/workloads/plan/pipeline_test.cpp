#include "workloads/plan/pipeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <tuple>

using namespace stepcast::workloads;

namespace {

constexpr std::int64_t forward_time = 1, backward_time = 2;

PipelineShape one_f_one_b(std::int64_t stages, std::int64_t micro_batches,
                          std::int64_t chunks = 1) {
  return {Schedule::one_f_one_b, stages, micro_batches, chunks};
}

std::string text(const std::vector<Turn>& turns) {
  std::string out;
  for (const Turn& t : turns) {
    out += (t.pass == Pass::forward ? "F" : "B") + std::to_string(t.micro_batch);
    if (t.chunk > 0) out += "." + std::to_string(t.chunk);
    out += " ";
  }
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

/// Runs the turns of all stages when the forward of a chunk takes 1 and its backward 2 and nothing
/// else counts: a turn starts after the one before it on its stage and after the turn whose output
/// it takes.
class Clockwork {
 public:
  explicit Clockwork(const PipelineShape& shape) : shape_(shape) {
    const auto stages = static_cast<std::size_t>(shape.stages);
    for (std::int64_t r = 0; r < shape.stages; ++r) turns_.push_back(turns_of_stage(shape, r));
    const std::vector<std::int64_t> none(static_cast<std::size_t>(shape.micro_batches), -1);
    const std::size_t parts = stages * static_cast<std::size_t>(shape.chunks);
    forward_.assign(parts, none);
    backward_.assign(parts, none);
    next_.assign(stages, 0);
    clock_.assign(stages, 0);
  }

  /// End of the last turn; -1 when the stages wait for each other.
  std::int64_t makespan() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t r = 0; r < turns_.size(); ++r)
        while (next_[r] < turns_[r].size() && advance(r)) progress = true;
    }
    for (std::size_t r = 0; r < turns_.size(); ++r)
      if (next_[r] != turns_[r].size()) return -1;
    return *std::max_element(clock_.begin(), clock_.end());
  }

 private:
  bool advance(std::size_t r) {
    const Turn turn = turns_[r][next_[r]];
    const auto mb = static_cast<std::size_t>(turn.micro_batch);
    const std::size_t part = static_cast<std::size_t>(turn.chunk) * turns_.size() + r;
    const bool forward = turn.pass == Pass::forward;
    std::int64_t ready = 0;
    if (forward && part > 0) ready = forward_[part - 1][mb];
    if (!forward)
      ready = part + 1 < backward_.size() ? backward_[part + 1][mb] : forward_[part][mb];
    if (ready < 0) return false;
    clock_[r] = std::max(clock_[r], ready) + (forward ? forward_time : backward_time);
    (forward ? forward_ : backward_)[part][mb] = clock_[r];
    ++next_[r];
    return true;
  }

  PipelineShape shape_;
  std::vector<std::vector<Turn>> turns_;
  std::vector<std::vector<std::int64_t>> forward_, backward_;  // ends, by part and micro-batch
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> clock_;
};

}  // namespace

TEST_CASE("GPipe runs all forwards, then all backwards in reverse") {
  for (std::int64_t stage = 0; stage < 4; ++stage)
    CHECK(text(turns_of_stage({Schedule::gpipe, 4, 3, 1}, stage)) == "F0 F1 F2 B2 B1 B0 ");
}

TEST_CASE("1F1B warms up with p-1-r forwards and then alternates") {
  const auto stage = [](std::int64_t r) { return turns_of_stage(one_f_one_b(4, 5), r); };
  CHECK(text(stage(0)) == "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4 ");
  CHECK(text(stage(2)) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 ");
  CHECK(text(stage(3)) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ");
  CHECK(text(turns_of_stage(one_f_one_b(4, 2), 0)) == "F0 F1 B0 B1 ");  // m < p
}

TEST_CASE("interleaved 1F1B takes groups of p micro-batches through one chunk after the other") {
  CHECK(text(turns_of_stage(one_f_one_b(2, 4, 2), 1)) ==
        "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3 ");
  CHECK(text(turns_of_stage(one_f_one_b(2, 4, 2), 0)) ==
        "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3 ");
}

TEST_CASE("both schedules idle (p-1)(F+B) per rank; 1F1B holds min(p-r, m), GPipe m") {
  for (const std::int64_t p : {1, 2, 4, 8})
    for (const std::int64_t m : {1, 2, 4, 8, 32})
      for (const Schedule s : {Schedule::gpipe, Schedule::one_f_one_b}) {
        const PipelineShape shape{s, p, m, 1};
        CHECK(Clockwork(shape).makespan() == (forward_time + backward_time) * (m + p - 1));
        for (std::int64_t r = 0; r < p; ++r) {
          const std::int64_t expected = s == Schedule::gpipe ? m : std::min(p - r, m);
          CHECK(peak_of(turns_of_stage(shape, r)) == expected);
          CHECK(peak_in_flight(shape, r, {1}) == expected);
        }
      }
}

TEST_CASE("v chunks divide the idle time (p-1)(F+B) by v") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t rounds : {1, 2, 4})
      for (const std::int64_t v : {2, 3, 5}) {
        const std::int64_t m = p * rounds;  // a chunk's turn takes 1 / v of a stage's
        const std::int64_t busy = (forward_time + backward_time) * m * v;
        CHECK(Clockwork(one_f_one_b(p, m, v)).makespan() ==
              busy + (forward_time + backward_time) * (p - 1));
      }
}

TEST_CASE("interleaving holds p + (p-1)/v stages of activations, 1 + (p-1)/(pv) times 1F1B's") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t v : {2, 3}) {
      const PipelineShape shape = one_f_one_b(p, 4 * p, v);
      const std::vector<std::int64_t> one_each(static_cast<std::size_t>(v), 1);
      CHECK(peak_in_flight(shape, 0, one_each) == p * v + p - 1);
      for (std::int64_t r = 0; r < p; ++r)
        CHECK(peak_in_flight(shape, r, one_each) == 2 * (p - 1 - r) + (v - 1) * p + 1);
    }
}

TEST_CASE("most in flight is the most that any turn leaves, also where chunks weigh differently") {
  for (const std::int64_t p : {2, 3, 4, 7})
    for (const std::int64_t m : {1, 2, 4, 6, 12, 28})
      for (const std::int64_t v : {1, 2, 5}) {
        if (v > 1 && m > p && m % (m / p) != 0) continue;
        const std::vector<std::int64_t> weights{3, 7, 1, 0, 5};
        for (std::int64_t r = 0; r < p; ++r) {
          std::int64_t alive = 0, peak = 0;
          for (const Turn& turn : turns_of_stage(one_f_one_b(p, m, v), r)) {
            const std::int64_t w = weights[static_cast<std::size_t>(turn.chunk)];
            alive += turn.pass == Pass::forward ? w : -w;
            peak = std::max(peak, alive);
          }
          INFO(p << " stages, " << m << " micro-batches, " << v << " chunks, stage " << r);
          CHECK(peak_in_flight(one_f_one_b(p, m, v), r, weights) == peak);
        }
      }
}

TEST_CASE("every micro-batch passes every chunk once each way, and no stage waits for ever") {
  for (const std::int64_t p : {2, 3, 4})
    for (const std::int64_t m : {1, 2, 3, 4, 6, 8, 12})
      for (const std::int64_t v : {1, 2, 4}) {
        const std::int64_t rounds = std::max<std::int64_t>(1, m / p);
        if (v > 1 && m % rounds != 0) continue;
        for (std::int64_t r = 0; r < p; ++r) {
          auto turns = turns_of_stage(one_f_one_b(p, m, v), r);
          CHECK(std::ssize(turns) == 2 * m * v);
          std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
            return std::tuple(a.pass, a.chunk, a.micro_batch) <
                   std::tuple(b.pass, b.chunk, b.micro_batch);
          });
          CHECK(std::unique(turns.begin(), turns.end()) == turns.end());
        }
        CHECK(Clockwork(one_f_one_b(p, m, v)).makespan() > 0);
      }
}
