#include "engine/event_heap.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <tuple>

using namespace stepcast;
using namespace stepcast::engine;

TEST_CASE("events leave by time and, at equal times, by sequence") {
  EventHeap heap;
  heap.push(Time(5_ps), 1, 10);
  heap.push(Time(3_ps), 2, 20);
  heap.push(Time(5_ps), 0, 30);
  CHECK(heap.top().id == 20);
  heap.pop();
  CHECK(heap.top().id == 30);
  heap.pop();
  CHECK(heap.top().id == 10);
  heap.pop();
  CHECK(heap.empty());
}

TEST_CASE("a heap that moves events both ways agrees with an ordered set") {
  std::mt19937 random(3);
  EventHeap heap;
  std::set<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>> reference;
  std::vector<std::int64_t> time_of(64, -1);  // by id; -1: not in the heap
  std::vector<std::uint32_t> sequence_of(64);
  std::uint32_t sequence = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto id = static_cast<std::uint32_t>(random() % 64);
    const auto time = static_cast<std::int64_t>(random() % 100);
    if (time_of[id] < 0) {
      sequence_of[id] = sequence++;
      heap.push(Time(Duration(time)), sequence_of[id], id);
    } else if (i % 3 == 0) {
      const auto least = *reference.begin();
      REQUIRE(heap.top().id == std::get<2>(least));
      REQUIRE(heap.top().time_ps == std::get<0>(least));
      heap.pop();
      reference.erase(reference.begin());
      time_of[std::get<2>(least)] = -1;
      continue;
    } else {
      heap.move(id, Time(Duration(time)));
      reference.erase({time_of[id], sequence_of[id], id});
    }
    time_of[id] = time;
    reference.insert({time, sequence_of[id], id});
    REQUIRE(heap.size() == reference.size());
  }
}
