#include "workloads/plan/routing.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

namespace stepcast::workloads {
namespace {

ExpertShape of(std::int64_t count, std::int64_t per_token, std::int64_t groups = 1,
               std::int64_t limit = 1) {
  ExpertShape e;
  e.count = count;
  e.per_token = per_token;
  e.groups = groups;
  e.group_limit = limit;
  return e;
}

Routing routing(RoutingKind kind, std::uint64_t seed = 1) {
  Routing r;
  r.kind = kind;
  r.seed = seed;
  return r;
}

/// Token by token: k of the experts of `group_limit` random groups.
std::vector<double> brute_force(const ExpertShape& e, std::int64_t tokens, std::mt19937& random) {
  std::vector<double> rows(static_cast<std::size_t>(e.count), 0.0);
  const std::int64_t in_group = e.count / e.groups;
  std::vector<std::int64_t> groups(static_cast<std::size_t>(e.groups));
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::iota(groups.begin(), groups.end(), 0);
    std::shuffle(groups.begin(), groups.end(), random);
    std::vector<std::int64_t> open;
    for (std::int64_t g = 0; g < e.group_limit; ++g)
      for (std::int64_t i = 0; i < in_group; ++i)
        open.push_back(groups[static_cast<std::size_t>(g)] * in_group + i);
    std::shuffle(open.begin(), open.end(), random);
    for (std::int64_t i = 0; i < e.per_token; ++i)
      rows[static_cast<std::size_t>(open[static_cast<std::size_t>(i)])] += 1;
  }
  return rows;
}

double largest_part(const std::vector<double>& rows, std::int64_t parts) {
  const std::ptrdiff_t each = std::ssize(rows) / parts;
  double most = 0.0;
  for (auto at = rows.begin(); at != rows.end(); at += each)
    most = std::max(most, std::accumulate(at, at + each, 0.0));
  return most * static_cast<double>(parts) / std::accumulate(rows.begin(), rows.end(), 0.0);
}

}  // namespace

TEST_CASE("no token is lost, whatever the routing") {
  for (const RoutingKind kind : {RoutingKind::balanced, RoutingKind::uniform, RoutingKind::counts,
                                 RoutingKind::max_violation}) {
    Routing r = routing(kind, 7);
    r.max_violation = 0.8;
    r.counts = {5, 1, 2, 8, 3, 3, 4, 6};
    for (std::uint64_t draw = 0; draw < 5; ++draw) {
      const auto rows = expert_rows(r, of(8, 2), 10'000, draw);
      REQUIRE(rows.size() == 8);
      CHECK(std::accumulate(rows.begin(), rows.end(), 0.0) == Approx(20'000));
    }
  }
}

TEST_CASE("the fullest of many experts is z standard deviations above the mean") {
  // 1 + z_n / sqrt(mean), z_n the expected largest of n normal variables: 256 experts 2.84, 8 ranks
  // 1.42, 64 ranks 2.39.
  const ExpertShape v3 = of(256, 8);
  const Routing uniform = routing(RoutingKind::uniform);
  CHECK(fullest_part(uniform, v3, 256, 8 * 4096, 32) == Approx(1.088).margin(0.006));
  CHECK(fullest_part(uniform, v3, 8, 8 * 4096, 32) == Approx(1.008).margin(0.002));
  CHECK(fullest_part(uniform, v3, 256, 64 * 4096, 32) == Approx(1.031).margin(0.003));
  CHECK(fullest_part(uniform, v3, 64, 64 * 4096, 32) == Approx(1.013).margin(0.003));
}

TEST_CASE("drawn rows have the fullest part of tokens routed one by one") {
  std::mt19937 random(5);
  struct Case {
    ExpertShape shape;
    std::int64_t parts;
  };
  for (const Case& c : {Case{of(8, 2), 8}, Case{of(32, 4), 4}, Case{of(32, 4, 8, 4), 8},
                        Case{of(32, 4, 8, 4), 32}}) {
    double sum = 0.0;
    for (int i = 0; i < 32; ++i) sum += largest_part(brute_force(c.shape, 2000, random), c.parts);
    const double drawn = fullest_part(routing(RoutingKind::uniform), c.shape, c.parts, 2000, 32);
    INFO(c.shape.count << " experts, " << c.parts << " parts");
    CHECK(drawn - 1 == Approx(sum / 32 - 1).epsilon(0.25));
  }
}

TEST_CASE("another seed draws otherwise, the same one the same") {
  const ExpertShape e = of(64, 8);
  const auto rows = [&](std::uint64_t seed, std::uint64_t draw) {
    return expert_rows(routing(RoutingKind::uniform, seed), e, 4096, draw);
  };
  CHECK(rows(1, 0) == rows(1, 0));
  CHECK(rows(1, 0) != rows(1, 1));
  CHECK(rows(1, 0) != rows(2, 0));
}

TEST_CASE("balanced is one, counts are taken as they are, a violation is what it says") {
  const ExpertShape e = of(8, 2);
  CHECK(fullest_part(routing(RoutingKind::balanced), e, 8, 4096, 32) == 1.0);
  Routing counted = routing(RoutingKind::counts);
  counted.counts = {5, 1, 2, 8, 3, 3, 4, 6};
  CHECK(fullest_part(counted, e, 8, 4096, 32) == Approx(8 / 4.0));
  CHECK(fullest_part(counted, e, 4, 4096, 32) == Approx(10 / 8.0));
  Routing violating = routing(RoutingKind::max_violation);
  for (const double v : {0.04, 0.72, 2.5}) {
    violating.max_violation = v;
    CHECK(fullest_part(violating, e, 8, 4096, 32) == Approx(1 + v).epsilon(1e-6));
    CHECK(fullest_part(violating, e, 4, 4096, 32) <= 1 + v);
    CHECK(fullest_part(violating, e, 1, 4096, 32) == 1.0);
  }
}

// Of tokens that each go to 8 of 128 experts a rank sends an expert 512 on average; room for 512
// drops what is above, 0.4 standard deviations of sqrt(512 (1 - 8 / 128)) = 21.9: 1.7 %.
TEST_CASE("experts with room for the mean drop what random tokens send above it") {
  const ExpertShape qwen = of(128, 8);
  const Routing uniform = routing(RoutingKind::uniform);
  const CappedRows capped = capped_rows(uniform, qwen, 8, 8192, 8, 512, 16);
  CHECK(1 - capped.kept == Approx(0.3989 * 21.9 / 512).epsilon(0.1));
  CHECK(capped.fullest < 1.0);
  // The same by tokens routed one by one.
  std::mt19937 random(7);
  double kept = 0.0;
  for (int i = 0; i < 8; ++i)
    for (const double rows : brute_force(qwen, 8192, random)) kept += std::min(rows, 512.0);
  CHECK(1 - capped.kept == Approx(1 - kept / (8 * 8192 * 8)).epsilon(0.1));
}

TEST_CASE("room for all drops none, balanced loads fill room for the mean") {
  const ExpertShape e = of(8, 2);
  const CappedRows all = capped_rows(routing(RoutingKind::uniform), e, 8, 4096, 8, 8192, 16);
  CHECK(all.kept == Approx(1.0));
  CHECK(all.fullest >= 1.0);
  const CappedRows balanced = capped_rows(routing(RoutingKind::balanced), e, 8, 4096, 8, 1024, 16);
  CHECK(balanced.kept == 1.0);
  CHECK(balanced.fullest == 1.0);
  Routing counted = routing(RoutingKind::counts);
  counted.counts = {3, 1, 1, 1, 1, 1, 0, 0};  // of 8,192 rows 3,072, five times 1,024
  CHECK(capped_rows(counted, e, 8, 4096, 8, 1024, 16).kept == Approx(6 * 1024.0 / 8192));
}

}  // namespace stepcast::workloads
