#include "engine/time_queue.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace stepcast;
using namespace stepcast::engine;

namespace {
Time at(std::int64_t ps) { return Time(Duration(ps)); }
}  // namespace

TEST_CASE("entries of an instant leave together, in the order in which they came") {
  TimeQueue queue;
  queue.push(at(5), 1, 0);
  queue.push(at(3), 2, 0);
  queue.push(at(5), 3, 7);
  std::vector<TimeQueue::Entry> out;
  CHECK(queue.next() == at(3));
  queue.take(out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].id == 2);
  out.clear();
  queue.take(out);
  REQUIRE(out.size() == 2);
  CHECK(out[0].id == 1);
  CHECK(out[1].id == 3);
  CHECK(out[1].version == 7);
  CHECK(queue.empty());
}

TEST_CASE("an instant that is pushed again after it was taken comes again") {
  TimeQueue queue;
  std::vector<TimeQueue::Entry> out;
  queue.push(at(5), 1, 0);
  queue.take(out);
  queue.push(at(5), 2, 0);
  CHECK(queue.next() == at(5));
  queue.take(out);
  CHECK(out.back().id == 2);
}

TEST_CASE("any mix of pushes and takes leaves in the order of a stable sort") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    TimeQueue queue;
    std::vector<std::pair<std::int64_t, std::uint32_t>> left;
    std::uint32_t id = 0;
    for (int i = 0; i < 300; ++i) {
      if (left.empty() || random() % 3 != 0) {
        const auto time = static_cast<std::int64_t>(random() % 40);
        queue.push(at(time), id, 0);
        left.emplace_back(time, id++);
        continue;
      }
      std::ranges::stable_sort(left, {}, &std::pair<std::int64_t, std::uint32_t>::first);
      std::vector<TimeQueue::Entry> out;
      REQUIRE(queue.next() == at(left.front().first));
      queue.take(out);
      for (const TimeQueue::Entry& entry : out) {
        REQUIRE(entry.id == left.front().second);
        left.erase(left.begin());
      }
      REQUIRE((left.empty() || at(left.front().first) != queue.next() || !out.empty()));
    }
  }
}
