#include "validate/trainer/device/thread_lanes.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <numeric>
#include <stdexcept>

#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {
namespace {

using namespace std::chrono_literals;
using workloads::compute;
using workloads::copy_lane;
using workloads::data_lane;

void nobody_waits(const std::exception_ptr&) {}

TEST_CASE("a lane does its work in order, two lanes theirs beside each other") {
  ThreadLanes lanes(nobody_waits);
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) lanes.put([&order, i] { order.push_back(i); }, false);
  // Each waits for the other: one after the other they would never end.
  std::promise<void> here, there;
  lanes.put([&] { here.set_value(), there.get_future().wait(); }, false);
  lanes.take(data_lane);
  lanes.put([&] { there.set_value(), here.get_future().wait(); }, false);
  lanes.synchronize();
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
}

TEST_CASE("a lane that waits for a mark goes on when the mark is passed") {
  ThreadLanes lanes(nobody_waits);
  for (int round = 0; round < 200; ++round) {
    lanes.start();
    int value = 0;  // no atomic: the marks order the lanes
    lanes.take(data_lane);
    lanes.put([&] { value = 1; }, false);
    const Lanes::Mark made = lanes.mark();
    lanes.take(compute);
    lanes.wait(made);
    lanes.put([&] { value = 2 * value + 1; }, false);
    const Lanes::Mark changed = lanes.mark();
    lanes.take(copy_lane);
    lanes.wait(made);
    lanes.wait(changed);
    lanes.put([&] { value *= 10; }, false);
    const Lanes::Mark last = lanes.mark();
    lanes.synchronize();
    CHECK(value == 30);
    CHECK(lanes.time_of(made) <= lanes.time_of(changed));
    CHECK(lanes.time_of(changed) <= lanes.time_of(last));
  }
}

TEST_CASE("what a lane throws ends the others' work and reaches the host") {
  std::promise<void> woken;
  std::atomic<int> told = 0;
  ThreadLanes lanes([&](const std::exception_ptr&) { ++told, woken.set_value(); });
  lanes.take(data_lane);
  lanes.put([&] { woken.get_future().wait(); }, true);  // a collective whose peer never comes
  const Lanes::Mark never = lanes.mark();
  bool done = false;
  lanes.take(compute);
  lanes.put([] { throw std::runtime_error("no memory"); }, false);
  lanes.wait(never);
  lanes.put([&] { done = true; }, false);
  CHECK_THROWS_WITH(lanes.synchronize(), "no memory");
  CHECK_THROWS_WITH(lanes.synchronize(), "no memory");
  CHECK(told == 1);
  CHECK(!done);
}

TEST_CASE("lanes that are stopped leave out what is not done, and wake what waits") {
  std::promise<void> woken, waits;
  bool done = false;
  {
    ThreadLanes lanes([&](const std::exception_ptr&) { woken.set_value(); });
    lanes.put([&] { waits.set_value(), woken.get_future().wait(); }, true);
    lanes.put([&] { done = true; }, false);
    waits.get_future().wait();
  }
  CHECK(!done);
}

TEST_CASE("a rank whose lane fails ends all ranks with the cause") {
  CHECK_THROWS_WITH(run_ranks(2,
                              [](std::unique_ptr<Communicator> world) {
                                ThreadLanes lanes([&](const std::exception_ptr& cause) {
                                  world->give_up(cause);
                                });
                                const bool fails = world->rank() == 1;
                                lanes.put([&] { world->barrier(); }, true);
                                lanes.take(data_lane);
                                if (fails) lanes.put([] { throw std::runtime_error("why"); }, true);
                                lanes.take(compute);
                                lanes.put([&] { world->barrier(), world->barrier(); }, true);
                                lanes.synchronize();
                              }),
                    "why");
}

}  // namespace
}  // namespace stepcast::validate
