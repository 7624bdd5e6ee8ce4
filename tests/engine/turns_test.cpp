// Repeats: a program that stands once and runs many times against the same one written out, and
// turns passed at once against turn by turn, to the picosecond.
#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "engine/fold.hpp"
#include "engine/run.hpp"
#include "systems.hpp"

using namespace stepcast;
using namespace stepcast::engine;
using namespace stepcast::engine::testing;

namespace {

enum PipelineLane : std::uint8_t {
  next_lane = 1,
  previous_lane,
  from_previous_lane,
  from_next_lane,
  gradient_lane,
  copies_lane,
  num_pipeline_lanes
};
enum PipelineSlot : std::uint32_t {
  to_next,
  from_previous,
  to_previous,
  from_next,
  tensor,
  gradients,
  world
};

/// What a random pipeline does in every micro-batch.
struct Habits {
  std::uint32_t stages = 2, micro_batches = 20;
  std::uint32_t first_turn = 1;  // micro-batches in a turn of the first stage; of the others one
  bool tensor = false, host_waits = false, gradients = false, copies = false;
  std::uint64_t seed = 0;
};

/// A stage of 1F1B: forwards, turns of a forward and a backward, backwards.
class Stage {
 public:
  Stage(const Habits& habits, std::uint32_t stage)
      : habits_(habits), stage_(stage), b_(num_pipeline_lanes) {}

  Program write() {
    const std::uint32_t ahead = habits_.stages - 1 - stage_;
    for (std::uint32_t i = 0; i < ahead; ++i) forward();
    const std::uint32_t both = habits_.micro_batches - ahead;
    const std::uint32_t in_turn = stage_ == 0 ? habits_.first_turn : 1, turns = both / in_turn;
    for (std::uint32_t i = 0; i < both - (turns - 1) * in_turn; ++i) turn();
    const std::uint32_t first = b_.size(), events = b_.num_events();
    for (std::uint32_t i = 0; i < in_turn; ++i) turn();
    const std::uint32_t more = turns - 2, each = b_.num_events() - events;
    b_.repeat(first, more, each);
    if (sent_) *sent_ += more * each;
    if (reduced_) *reduced_ += more * each;
    for (std::uint32_t i = 0; i < ahead; ++i) backward();
    if (reduced_) b_.wait(compute_lane, *reduced_);
    if (sent_) b_.wait(compute_lane, *sent_);
    b_.join(compute_lane, world, 3, launch_cost);
    b_.mark();
    b_.work(compute_lane, 4, launch_cost);
    if (habits_.host_waits) b_.host_wait(b_.record(compute_lane));
    return b_.take();
  }

 private:
  void works(std::uint8_t lane, std::uint64_t salt) {
    std::mt19937_64 random(habits_.seed * 64 + stage_ * 8 + salt);
    for (std::uint64_t k = 1 + random() % 4; k > 0; --k)
      b_.work(lane, static_cast<std::uint32_t>(random() % 4), random() % 2 ? launch_cost : no_cost);
  }
  std::uint32_t receive(std::uint8_t lane, std::uint32_t slot) {
    b_.wait(lane, b_.record(compute_lane));
    b_.join(lane, slot, 1, launch_cost);
    const std::uint32_t event = b_.record(lane);
    b_.wait(compute_lane, event);
    return event;
  }
  void send(std::uint8_t lane, std::uint32_t slot) {
    b_.wait(lane, b_.record(compute_lane));
    b_.join(lane, slot, 1, launch_cost);
    sent_ = b_.record(lane);
  }
  void pass(std::uint64_t salt) {
    works(compute_lane, salt);
    if (habits_.tensor) b_.join(compute_lane, tensor, 0, launch_cost);
    if (habits_.copies) works(copies_lane, salt + 1);
    works(compute_lane, salt + 2);
  }
  void forward() {
    if (stage_ > 0) {
      const std::uint32_t event = receive(from_previous_lane, from_previous);
      if (habits_.host_waits) {
        b_.host_wait(event);
        if (sent_) b_.host_wait(*sent_);
        sent_.reset();
      }
    }
    pass(0);
    if (stage_ + 1 < habits_.stages) send(next_lane, to_next);
  }
  void backward() {
    if (stage_ + 1 < habits_.stages) receive(from_next_lane, from_next);
    pass(4);
    if (stage_ > 0) send(previous_lane, to_previous);
    if (!habits_.gradients) return;
    if (reduced_) b_.wait(compute_lane, *reduced_);
    b_.wait(gradient_lane, b_.record(compute_lane));
    b_.join(gradient_lane, gradients, 2, launch_cost);
    reduced_ = b_.record(gradient_lane);
  }
  void turn() {
    forward();
    backward();
  }

  const Habits habits_;
  std::uint32_t stage_;
  ProgramBuilder b_;
  std::optional<std::uint32_t> sent_, reduced_;
};

/// Two replicas of a pipeline; links of their own and one that all share.
System pipeline(std::uint64_t seed, std::uint32_t first_turn = 1) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  const Habits habits{.stages = 1 + static_cast<std::uint32_t>(pick(4)),
                      .micro_batches = 8 * first_turn + static_cast<std::uint32_t>(pick(50)),
                      .first_turn = first_turn,
                      .tensor = pick(2) == 0,
                      .host_waits = pick(2) == 0,
                      .gradients = pick(3) == 0,
                      .copies = pick(3) == 0,
                      .seed = seed};
  const std::uint32_t stages = habits.stages, ranks = 2 * stages;
  std::vector<Program> roles;
  for (std::uint32_t s = 0; s < stages; ++s) roles.push_back(Stage(habits, s).write());
  std::vector<std::vector<std::uint32_t>> forwards, backwards, couples, all(1);
  for (std::uint32_t r = 0; r < ranks; ++r) {  // rank = stage * 2 + replica
    all[0].push_back(r);
    if (r + 2 < ranks) forwards.push_back({r, r + 2});
    if (r + 2 < ranks) backwards.push_back({r + 2, r});
    if (r % 2 == 0) couples.push_back({r, r + 1});
  }
  System s =
      make_system(ranks, std::move(roles), {forwards, {}, backwards, {}, couples, couples, all});
  for (std::uint32_t r = 0; r < ranks; ++r) s.role_of_rank[r] = r / 2;
  for (const std::uint32_t slot : {to_next, to_previous}) {  // senders and receivers apart
    auto &senders = s.communicator_of[slot], &receivers = s.communicator_of[slot + 1];
    std::ranges::fill(senders, no_communicator);
    for (std::uint32_t c = 0; c < s.communicators.size(); ++c) {
      const bool forward = c < forwards.size();
      if (c >= 2 * forwards.size() || forward != (slot == to_next)) continue;
      senders[s.communicators[c].members[0]] = c;
      receivers[s.communicators[c].members[1]] = c;
    }
  }
  for (int w = 0; w < 5; ++w)
    s.works.push_back({Duration(static_cast<std::int64_t>(1000 + pick(20'000'000))),
                       static_cast<std::uint32_t>(pick(3))});
  if (pick(4) == 0)
    s.host_costs[launch_cost] = Duration(static_cast<std::int64_t>(pick(9'000'000)));
  s.stretch.assign(3 * num_states, 1.0);
  for (std::size_t i = num_states; i < s.stretch.size(); ++i)
    if (i % num_states != 0) s.stretch[i] = 1.0 + static_cast<double>(pick(1000)) * 1e-3;
  s.transfers = {transfer(1e5 + static_cast<double>(pick(100'000)), 300, Traffic::tensor, 1),
                 transfer(2e5 + static_cast<double>(pick(900'000)), 60, Traffic::pipeline, 2),
                 transfer(5e5 + static_cast<double>(pick(900'000)), 40), transfer(8, 0.01)};
  s.link_capacity = {BytesPerSecond(1e9 * static_cast<double>(60 + pick(200)))};
  s.link_owner = {no_owner};
  for (Communicator& c : s.communicators)
    if (pick(3) > 0) c.loads.push_back({0, 1.0});
  if (pick(4) == 0) {
    s.slowness.assign(ranks, 1.0);
    s.slowness[pick(ranks)] = 1.25;
  }
  return s;
}

System written_out(System s) {
  for (Program& role : s.roles) role = unrolled(role);
  return s;
}

void check_same(const RunResult& a, const RunResult& b) {
  REQUIRE(a.step == b.step);
  REQUIRE(a.steady == b.steady);
  REQUIRE(a.works == b.works);
  REQUIRE(a.joins == b.joins);
  REQUIRE(a.transfers == b.transfers);
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    INFO("rank " << r);
    REQUIRE(a.ranks[r] == b.ranks[r]);
  }
}

}  // namespace

TEST_CASE("a repeat is its instructions written out, with events of their own each time") {
  ProgramBuilder b(2);
  b.work(compute_lane, 0, no_cost);
  const std::uint32_t first = b.size();
  b.work(compute_lane, 1, no_cost);
  b.wait(async_lane, b.record(compute_lane));
  b.repeat(first, 2, 1);
  b.wait(compute_lane, b.record(async_lane));
  const Program program = b.take();
  ProgramBuilder out(2);
  out.work(compute_lane, 0, no_cost);
  for (int i = 0; i < 3; ++i) {
    out.work(compute_lane, 1, no_cost);
    out.wait(async_lane, out.record(compute_lane));
  }
  out.wait(compute_lane, out.record(async_lane));
  CHECK(unrolled(program) == out.take());
  std::int64_t works = 0;
  each_call(program, [&](const Instruction& i, std::int64_t times) {
    if (i.op == Op::work) works += times;
  });
  CHECK(works == 4);
}

TEST_CASE("alike turns of a pipeline are passed without a picosecond's difference") {
  std::int64_t passed = 0, with_host_waits = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const System s = pipeline(seed);
    const bool cold = seed % 3 == 0;
    INFO("seed " << seed << ", " << s.roles.size() << " stages, "
                 << s.roles.front().repeats.front().count << " turns");
    const RunResult skipping = run(s, {.cold = cold});
    check_same(skipping, run(written_out(s), {.cold = cold}));
    check_same(skipping, run(s, {.skip_turns = false, .cold = cold}));
    check_same(skipping, run(s, {.segments = false, .cold = cold}));
    check_same(skipping, run(s, {.closed_forms = false, .cold = cold}));
    check_same(skipping, run(s, {.last_in_first_out = true, .cold = cold}));
    const System folded = fold(s).system;
    const RunResult of_folded = run(folded, {.cold = cold});
    REQUIRE(of_folded.step == skipping.step);
    check_same(of_folded, run(folded, {.skip_turns = false, .cold = cold}));
    check_same(of_folded, run(folded, {.closed_forms = false, .cold = cold}));
    check_same(of_folded, run(folded, {.segments = false, .cold = cold}));
    passed += skipping.skipped > 0 ? 1 : 0;
    const auto& calls = s.roles.back().instructions;
    const bool waits = std::ranges::count(calls, Op::host_wait, &Instruction::op) > 1;
    with_host_waits += skipping.skipped > 0 && waits ? 1 : 0;
  }
  CHECK(passed > 300);
  CHECK(with_host_waits > 50);
}

TEST_CASE("ranks pass different numbers of turns in one period") {
  std::int64_t passed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const System s = pipeline(seed, 2 + seed % 4);
    INFO("seed " << seed << ", " << s.roles.size() << " stages");
    const RunResult skipping = run(s);
    check_same(skipping, run(written_out(s)));
    check_same(skipping, run(s, {.skip_turns = false}));
    passed += skipping.skipped > 0 && s.roles.size() > 1 ? 1 : 0;
  }
  CHECK(passed > 80);
}

TEST_CASE("a long pipeline costs as many events as a short one") {
  ProgramBuilder b(1);
  const auto micro_batch = [&] {
    b.work(compute_lane, 0, no_cost);
    b.join(compute_lane, 0, 0, no_cost);
  };
  micro_batch();
  const std::uint32_t first = b.size();
  micro_batch();
  b.repeat(first, 998, 0);
  System s = make_system(2, {b.take()}, {{{0, 1}}});
  s.works = {{10_us, 0}};
  s.transfers = {transfer(1e6, 100)};
  const RunResult r = run(s, {.cold = true});
  CHECK(r.step == 20_ms);
  CHECK(r.ranks[1].compute == 10_ms);
  CHECK(r.works == 2000);
  CHECK(r.skipped > 1900);
}
