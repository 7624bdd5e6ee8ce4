#include "validate/trainer/ranks/communicator.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>
#include <numeric>
#include <vector>

#include "engine/check.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::validate {
namespace {

using Rank = std::unique_ptr<Communicator>;

/// What every rank answers, by rank; Catch2's assertions belong to one thread.
template <class Answer>
std::vector<Answer> answers(std::int64_t ranks, const std::function<Answer(Rank)>& body,
                            Duration limit = to_duration(20.0)) {
  std::vector<Answer> all(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  run_ranks(
      ranks,
      [&](Rank comm) {
        const auto rank = static_cast<std::size_t>(comm->rank());
        Answer answer = body(std::move(comm));
        const std::lock_guard lock(mutex);
        all[rank] = std::move(answer);
      },
      limit);
  return all;
}

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("an all-reduce leaves the sum on every rank, or the largest") {
  for (const auto& sum : answers<Floats>(3, [](Rank comm) {
         Floats values{static_cast<float>(comm->rank()), 10.0F};
         comm->all_reduce(values);
         return values;
       }))
    CHECK(sum == Floats{3.0F, 30.0F});
  for (const auto& largest : answers<std::vector<double>>(3, [](Rank comm) {
         std::vector<double> values{-static_cast<double>(comm->rank())};
         comm->all_reduce(values, Reduction::max);
         return values;
       }))
    CHECK(largest == std::vector<double>{0.0});
}

TEST_CASE("gathering what was scattered of a sum is the sum") {
  const auto all = answers<Floats>(4, [](Rank comm) {
    Floats whole(8), mine(2), again(8);
    std::iota(whole.begin(), whole.end(), static_cast<float>(comm->rank()));
    comm->reduce_scatter(whole, mine);
    comm->all_gather(mine, again);
    return again;
  });
  for (const auto& values : all)  // sum over r of (i + r) = 4 i + 6
    CHECK(values == Floats{6, 10, 14, 18, 22, 26, 30, 34});
}

TEST_CASE("an all-to-all brings each rank what the others have for it, however much") {
  // Rank r sends s + 2 r numbers 10 r + s to rank s; rank 0 nothing to itself.
  const auto size_of = [](std::size_t from, std::size_t to) { return to + 2 * from; };
  for (const std::size_t ranks : {1U, 2U, 4U}) {
    const auto all = answers<Floats>(static_cast<std::int64_t>(ranks), [&](Rank comm) {
      const auto rank = static_cast<std::size_t>(comm->rank());
      Floats mine;
      std::vector<std::size_t> to, from;
      std::size_t comes = 0;
      for (std::size_t s = 0; s < ranks; ++s) {
        to.push_back(size_of(rank, s));
        mine.insert(mine.end(), to.back(), static_cast<float>(10 * rank + s));
        from.push_back(size_of(s, rank));
        comes += from.back();
      }
      Floats theirs(comes);
      comm->all_to_all(mine, to, theirs, from);
      return theirs;
    });
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Floats expected;
      for (std::size_t s = 0; s < ranks; ++s)
        expected.insert(expected.end(), size_of(s, rank), static_cast<float>(10 * s + rank));
      CHECK(all[rank] == expected);
    }
  }
}

TEST_CASE("a broadcast gives everybody the root's values") {
  for (const auto& values : answers<Floats>(3, [](Rank comm) {
         Floats mine{static_cast<float>(comm->rank()) + 1};
         comm->broadcast(mine, 1);
         return mine;
       }))
    CHECK(values == Floats{2.0F});
}

TEST_CASE("two stages that send to each other first do not wait for each other") {
  const auto all = answers<Floats>(2, [](Rank comm) {
    const std::int64_t peer = 1 - comm->rank();
    Floats first(100000, static_cast<float>(comm->rank())), second{7.0F}, got(100000), more(1);
    comm->send(first, peer);
    comm->send(second, peer);
    first.assign(first.size(), -1.0F);  // the message has left
    comm->receive(got, peer);
    comm->receive(more, peer);
    return Floats{got.front(), got.back(), more[0]};
  });
  CHECK(all[0] == Floats{1.0F, 1.0F, 7.0F});
  CHECK(all[1] == Floats{0.0F, 0.0F, 7.0F});
}

TEST_CASE("a split has the ranks of a color in order, and none for a rank without") {
  using Place = std::vector<std::int64_t>;
  const auto all = answers<Place>(5, [](Rank comm) {
    const auto part = comm->rank() == 4 ? comm->split(std::nullopt) : comm->split(comm->rank() % 2);
    if (!part) return Place{};
    Floats sum{static_cast<float>(comm->rank())};
    part->all_reduce(sum);
    return Place{part->rank(), part->size(), static_cast<std::int64_t>(sum[0])};
  });
  CHECK(all == std::vector<Place>{{0, 2, 2}, {0, 2, 4}, {1, 2, 2}, {1, 2, 4}, {}});
}

TEST_CASE("the groups of a rank are those of the plan") {
  workloads::ParallelPlan plan;
  plan.data_degree = 2;
  plan.tensor = 2;
  plan.pipeline = 3;
  using workloads::GroupKind;
  const auto sums = answers<Floats>(plan.ranks(), [&](Rank comm) {
    const Groups groups = make_groups(std::move(comm), plan);
    const auto sum = [&](Communicator* group) {
      if (group == nullptr) return -1.0F;
      Floats value{static_cast<float>(groups.world->rank())};
      group->all_reduce(value);
      return value[0];
    };
    return Floats{sum(groups.tensor.get()), sum(groups.data.get()), sum(groups.embedding.get()),
                  static_cast<float>(groups.pipeline->rank())};
  });
  const auto sum_of_group = [&](GroupKind kind, std::int64_t rank) {
    for (const auto& group : workloads::groups(plan, kind))
      if (std::ranges::find(group, rank) != group.end())
        return static_cast<float>(std::accumulate(group.begin(), group.end(), std::int64_t{0}));
    return -1.0F;
  };
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    const Floats& mine = sums[static_cast<std::size_t>(rank)];
    CHECK(mine[0] == sum_of_group(GroupKind::tensor, rank));
    CHECK(mine[1] == sum_of_group(GroupKind::data, rank));
    CHECK(mine[2] == sum_of_group(GroupKind::embedding, rank));
    CHECK(mine[3] == static_cast<float>(workloads::coordinates_of(plan, rank).pipeline));
  }
}

TEST_CASE("a rank that fails ends the others at once, and its error is the one thrown") {
  const auto failing = [](Rank comm) {
    if (comm->rank() == 1) throw InputError("row 7", "cannot be read");
    comm->barrier();
  };
  CHECK_THROWS_WITH(run_ranks(3, failing), Catch::Contains("row 7"));
}

TEST_CASE("a rank that never comes is given up after the limit") {
  const auto absent = [](Rank comm) {
    if (comm->rank() == 0) comm->barrier();
  };
  CHECK_THROWS_AS(run_ranks(2, absent, to_duration(0.1)), PeerLost);
}

}  // namespace stepcast::validate
