#include "validate/diagnose/attribution.hpp"

#include <catch2/catch.hpp>

#include "validate/diagnose/report.hpp"

using namespace stepcast::validate;
using stepcast::workloads::CollectiveKind;

namespace {

constexpr ExchangeKind gradients{CollectiveKind::all_reduce, 8};

/// A step of 1 s: 0.8 s of products and norms, 0.1 s of an all-reduce, 0.05 s of waiting and gaps.
RankParts usual(std::int64_t rank) {
  RankParts out;
  out.rank = rank;
  out.step = 1;
  out.compute = 0.8;
  out.transfer = 0.1;
  out.wait = 0.05;
  out.gaps = 0.03;
  out.boundary = 0.02;
  out.kernels[TraceKind::gemm] = {100, 0.6};
  out.kernels[TraceKind::attention_forward] = {10, 0.1};
  out.kernels[TraceKind::norm] = {100, 0.1};
  out.exchanges[gradients].calls = 10;
  out.exchanges[gradients].seconds = 0.3;
  out.exchanges[gradients].exposed = 0.1;
  out.under_compute = 0.6;
  out.behind_a_gap = 0.2;
  out.waited_for[0] = 0.05;
  return out;
}

std::vector<RankParts> ranks(std::int64_t count) {
  std::vector<RankParts> out;
  for (std::int64_t r = 0; r < count; ++r) out.push_back(usual(r));
  return out;
}

ExpectedStep expected() {
  ExpectedStep out;
  out.parts = {usual(0)};
  out.report.step_time = stepcast::to_duration(1.0);
  return out;
}

Attribution attributed(const std::vector<RankParts>& measured) {
  return attribute(measured, expected(), [](const auto&, const auto&) { return std::nullopt; });
}

double sum_of_causes(const Attribution& found) {
  double sum = 0;
  for (const Cause& cause : found.causes) sum += cause.seconds;
  return sum;
}

}  // namespace

TEST_CASE("a step as expected has no cause") {
  const Attribution found = attributed(ranks(8));
  REQUIRE(found.causes.size() == 1);
  CHECK(found.causes[0].kind == CauseKind::not_explained);
  CHECK(found.causes[0].seconds == Approx(0).margin(1e-12));
}

TEST_CASE("a slow GPU: the others wait, it does not") {
  std::vector<RankParts> all = ranks(8);
  for (RankParts& rank : all) rank.step = 1.2, rank.wait = 0.25;
  all[5].wait = 0.05;
  all[5].compute = 1.0;
  for (auto& [kind, tally] : all[5].kernels) tally.seconds *= 1.25;
  const Attribution found = attributed(all);
  CHECK(found.causes[0].kind == CauseKind::slow_rank);
  CHECK(found.causes[0].ranks == std::vector<std::int64_t>{5});
  CHECK(found.causes[0].seconds == Approx(0.2));
  CHECK(sum_of_causes(found) == Approx(0.2));
}

TEST_CASE("each idle time has its cause, and causes add up to the gap") {
  const auto with = [](double RankParts::*part) {
    std::vector<RankParts> all = ranks(8);
    for (RankParts& rank : all) rank.step += 0.3, rank.*part += 0.3;
    return attributed(all);
  };
  CHECK(with(&RankParts::boundary).causes[0].kind == CauseKind::data_loader);
  CHECK(with(&RankParts::pauses).causes[0].kind == CauseKind::host_pause);
  CHECK(with(&RankParts::gaps).causes[0].kind == CauseKind::host_bound);
  CHECK(with(&RankParts::gaps).causes[0].seconds == Approx(0.3));
  CHECK(with(&RankParts::gaps).causes[0].ranks.empty());
}

TEST_CASE("kernels: copies, recompute, fp32, attention, clocks") {
  const auto with = [](auto change, double longer) {
    std::vector<RankParts> all = ranks(8);
    for (RankParts& rank : all) {
      change(rank);
      rank.step += longer, rank.compute += longer;
    }
    const Attribution found = attributed(all);
    CHECK(sum_of_causes(found) == Approx(longer));
    CHECK(found.causes[0].seconds == Approx(longer));
    return found.causes[0].kind;
  };
  CHECK(with(
            [](RankParts& r) {
              r.kernels[TraceKind::copy] = {50, 0.1};
            },
            0.1) == CauseKind::copies);
  CHECK(with(
            [](RankParts& r) {
              r.kernels[TraceKind::gemm] = {133, 0.798};
              r.kernels[TraceKind::attention_forward] = {20, 0.2};
            },
            0.298) == CauseKind::recompute);
  CHECK(with([](RankParts& r) { r.kernels[TraceKind::gemm].seconds = 3; }, 2.4) ==
        CauseKind::fp32_products);
  CHECK(with([](RankParts& r) { r.kernels[TraceKind::attention_forward].seconds = 0.3; }, 0.2) ==
        CauseKind::slow_attention);
  CHECK(with(
            [](RankParts& r) {
              r.kernels[TraceKind::gemm].seconds *= 1.2;
              r.kernels[TraceKind::attention_forward].seconds *= 1.2;
            },
            0.14) == CauseKind::clocks);
  CHECK(with(
            [](RankParts& r) {
              r.kernels[TraceKind::norm] = {300, 0.3};
            },
            0.2) == CauseKind::unfused);
}

TEST_CASE("transfers: slow ones, or those of another setting of NCCL") {
  std::vector<RankParts> all = ranks(8);
  for (RankParts& rank : all) {
    rank.exchanges[gradients].seconds = 0.6;
    rank.exchanges[gradients].exposed = 0.4;
    rank.step += 0.3, rank.transfer += 0.3;
  }
  CHECK(attributed(all).causes[0].kind == CauseKind::slow_link);
  const Attribution found =
      attribute(all, expected(), [&](const std::string& name, const std::string& value) {
        auto out = all[0].exchanges;
        out[gradients].seconds = name + value == "NCCL_PROTOLL" ? 0.61 : 0.3;
        return std::optional(out);
      });
  CHECK(found.causes[0].kind == CauseKind::wrong_protocol);
  CHECK(found.causes[0].how.find("NCCL_PROTO=LL ") != std::string::npos);
  CHECK(found.causes[0].seconds == Approx(0.3));
}

TEST_CASE("launch blocking: every kernel behind a gap, no collective beside compute") {
  std::vector<RankParts> all = ranks(8);
  for (RankParts& rank : all) {
    rank.behind_a_gap = 0.98;
    rank.under_compute = 0;
    rank.gaps += 0.2, rank.transfer += 0.2, rank.step += 0.4;
    rank.exchanges[gradients].exposed = 0.3;
  }
  const Attribution found = attributed(all);
  CHECK(found.causes[0].kind == CauseKind::launch_blocking);
  CHECK(found.causes[0].seconds == Approx(0.4));
}

TEST_CASE("the verdict: beyond the forecast's band, or by a cause that needs no forecast") {
  Diagnosis d;
  d.expected.step_time = stepcast::to_duration(1.0);
  d.expected.step_bar.emplace();
  d.expected.step_bar->low = 0.9;
  d.expected.step_bar->high = 1.2;
  d.found.expected = 1;
  d.found.measured = 1.1;
  CHECK_FALSE(is_slower(d));
  CHECK(verdict_text(d).starts_with("As expected: 1.10 s a step where 1.00 s (900 ms to 1.20 s)"));
  d.found.causes.push_back({CauseKind::slow_rank, 0.1, "", Surety::sure});
  CHECK(is_slower(d));
  d.found.causes.clear();
  d.found.measured = 1.3;
  CHECK(is_slower(d));
  d.mismatch = "405 products against 675";
  CHECK_FALSE(is_slower(d));
}
