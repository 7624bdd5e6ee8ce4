#include "sim/network/exchange/kernels.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <string>

#include "engine/check.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/network/links/loads.hpp"
#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;
using workloads::Dispatcher;
using workloads::TokenExchange;

namespace {

topology::NodeSpec node_named(const std::string& name, const std::string& gpu = {}) {
  topology::NodeSpec node = catalogue().node(toml_text(name, "test"));
  if (!gpu.empty()) node.gpu = catalogue().gpu(toml_text(gpu, "test"));
  return node;
}

/// DeepSeek-V3's layer: 8 of 256 experts, rows of 7,168 numbers.
TokenExchange v3(std::int64_t tokens, bool combine, bool limited) {
  constexpr std::int64_t hidden = 7168;
  return {.dispatcher = Dispatcher::node_aware,
          .combine = combine,
          .tokens = tokens,
          .row_bytes = combine ? 2 * hidden : hidden + hidden / 32,
          .experts = 256,
          .per_token = 8,
          .groups = 8,
          .group_limit = limited ? 4 : 8,
          .sms = 0,
          .fullest = 1.0};
}

workloads::Collective exchange_of(const TokenExchange& t) {
  workloads::Collective out =
      plain_collective(CollectiveKind::all_to_all, Bytes(t.tokens * t.per_token * t.row_bytes));
  out.tokens = t;
  return out;
}

GroupShape over(std::int64_t ranks, std::int64_t per_node = 8) {
  return {ranks, std::max<std::int64_t>(1, ranks / per_node), std::min(ranks, per_node), 1};
}

std::vector<ExchangeKernels> kernels_named(const std::string& name) {
  return chosen_exchange_kernels(catalogue().exchanges(), name, "test");
}

struct Row {
  std::string kernels, node, gpu;
  std::int64_t ranks;
  bool combine;
  double logical;  // GB/s of the link that bounds, own rank and node counted
  std::int64_t sms;
};

/// deepseek-ai/DeepEP at dd758ca, docs/legacy.md (V1: H800, 4,096 tokens, 4 of 8 groups) and
/// README.md (V2: 8,192 tokens).
const Row rows[] = {{"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 8, false, 153, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 8, true, 158, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 16, false, 43, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 16, true, 43, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 32, false, 58, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 32, true, 57, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 64, false, 51, 20},
                    {"deepep-v1", "dgx-h100", "h800-sxm5-80gb", 64, true, 50, 20},
                    {"deepep-v2", "dgx-h100", "", 16, false, 90, 12},
                    {"deepep-v2", "dgx-h100", "", 16, true, 81, 12},
                    {"deepep-v2", "dgx-h100", "", 32, false, 61, 6},
                    {"deepep-v2", "dgx-h100", "", 32, true, 61, 6},
                    {"deepep-v2", "dgx-b200", "", 16, false, 90, 12},
                    {"deepep-v2", "dgx-b200", "", 16, true, 91, 12},
                    {"deepep-v2", "dgx-b200", "", 8, false, 726, 64},
                    {"deepep-v2", "dgx-b200", "", 8, true, 740, 64},
                    {"deepep-v2", "dgx-b200", "", 8, false, 643, 24},
                    {"deepep-v2", "dgx-b200", "", 8, true, 675, 24}};

/// Predicted over measured, less 1.
double error_of(const Row& row, const std::vector<ExchangeKernels>& kernels) {
  const bool first = row.kernels == "deepep-v1";
  TokenExchange tokens = v3(first ? 4096 : 8192, row.combine, first);
  tokens.sms = row.sms;
  const TokenExchangeTimes times(node_named(row.node, row.gpu), kernels);
  const GroupShape shape = over(row.ranks);
  const double places = distinct_destinations({256, 8, 8, first ? 4 : 8},
                                              shape.nodes > 1 ? shape.nodes : shape.ranks);
  const double bytes =
      static_cast<double>(tokens.tokens) * static_cast<double>(tokens.row_bytes) * places;
  const double measured = bytes / (row.logical * 1e9);
  return seconds(times.time_of(exchange_of(tokens), shape).duration) / measured - 1;
}

/// The rate of the kind of link that bounds this row, from the other rows of its library that it
/// bounds, NVLink by SMs or by its share apart.
double left_out(std::size_t out) {
  const Row& row = rows[out];
  const auto alike = [&](const Row& other) {
    return other.kernels == row.kernels && (other.ranks > 16) == (row.ranks > 16) &&
           (other.ranks == 8) == (row.ranks == 8) && (other.sms == row.sms || row.ranks > 8);
  };
  std::vector<ExchangeKernels> kernels = kernels_named(row.kernels);
  double ratio = 0.0;
  int count = 0;
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (i != out && alike(rows[i])) {
      ratio += std::log1p(error_of(rows[i], kernels));
      ++count;
    }
  REQUIRE(count > 0);
  // Their mean error is what the rates would be moved by; the fixed time is a few percent.
  return (1 + error_of(row, kernels)) / std::exp(ratio / count) - 1;
}

}  // namespace

TEST_CASE("the published rows of DeepEP, each within 14 %, half of them within 3 %") {
  std::vector<double> errors, unseen;
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const Row& row = rows[i];
    const double error = error_of(row, kernels_named(row.kernels));
    INFO(row.kernels << " " << row.ranks << " ranks, " << row.logical << " GB/s: " << error
                     << ", left out " << left_out(i));
    CHECK(std::abs(error) < 0.14);
    CHECK(std::abs(left_out(i)) < 0.14);
    errors.push_back(std::abs(error));
    unseen.push_back(std::abs(left_out(i)));
  }
  std::ranges::sort(errors);
  std::ranges::sort(unseen);
  CHECK(errors[errors.size() / 2] < 0.03);
  CHECK(unseen[unseen.size() / 2] < 0.04);
}

// deepseek-ai/DeepEP PR 605: 252 MB received, own rank counted, in 293.5 us.
TEST_CASE("four GPUs of a GB200 tray by 32 SMs") {
  TokenExchange tokens = v3(0, true, false);
  const double places = distinct_destinations({256, 8}, 4);
  tokens.tokens = std::llround(252'328'160 / places / static_cast<double>(tokens.row_bytes));
  tokens.sms = 32;
  const TokenExchangeTimes times(node_named("gb200-nvl72"), kernels_named("deepep-v2"));
  CHECK(seconds(times.time_of(exchange_of(tokens), over(4)).duration) ==
        Approx(293.5e-6).epsilon(0.06));
}

TEST_CASE("the time is that of the busier link, both closed forms") {
  const TokenExchangeTimes times(node_named("dgx-h100"), kernels_named("deepep-v2"));
  const TokenExchange tokens = v3(4096, true, false);
  const ExchangeKernels kernels = kernels_named("deepep-v2").front();
  const double row = 4096.0 * 14336;
  const CollectiveTime far = times.time_of(exchange_of(tokens), over(64));
  const double nic = row * distinct_destinations({256, 8}, 8) * 7 / 8 / (50e9 * kernels.nic);
  CHECK(seconds(far.transfer) == Approx(nic));
  CHECK(far.latency == kernels.fixed);
  CHECK(far.algorithm == Algorithm::node_aware);
  CHECK(far.ctas == kernels.sms);
  CHECK(far.copies.to_nodes == Approx(5.295 / 8).epsilon(1e-3));
  CHECK(far.copies.to_ranks == Approx(7.676 / 8).epsilon(1e-3));
  const CollectiveTime near = times.time_of(exchange_of(tokens), over(8));
  CHECK(seconds(near.transfer) ==
        Approx(row * 5.295 * 7 / 8 / (450e9 * kernels.nvlink)).epsilon(1e-3));
}

TEST_CASE("the fullest rank decides, more SMs are never slower, one rank moves nothing") {
  const TokenExchangeTimes times(node_named("dgx-b200"), kernels_named("deepep-v2"));
  TokenExchange tokens = v3(8192, false, false);
  const CollectiveTime even = times.time_of(exchange_of(tokens), over(8));
  tokens.fullest = 1.25;
  CHECK(seconds(times.time_of(exchange_of(tokens), over(8)).transfer) ==
        Approx(1.25 * seconds(even.transfer)));
  tokens.fullest = 1.0;
  Duration before = Duration::max();
  for (const std::int64_t sms : {4, 8, 16, 24, 32, 64}) {
    tokens.sms = sms;
    const CollectiveTime time = times.time_of(exchange_of(tokens), over(8));
    CHECK(time.duration <= before);
    CHECK(time.ctas == sms);
    before = time.duration;
  }
  CHECK(times.time_of(exchange_of(tokens), over(1)).duration == Duration{});
}

TEST_CASE("a rack exchanges over NVLink what nodes of 8 send over their NICs") {
  TokenExchange tokens = v3(4096, true, false);
  tokens.dispatcher = Dispatcher::nvlink_domain;
  const TokenExchangeTimes rack(node_named("gb200-nvl72"), kernels_named(""));
  const TokenExchangeTimes nodes(node_named("dgx-b200"), kernels_named(""));
  const Duration inside = rack.time_of(exchange_of(tokens), {64, 1, 64, 1}).duration;
  const Duration across = nodes.time_of(exchange_of(tokens), over(64)).duration;
  CHECK(seconds(across) > 5 * seconds(inside));
}

TEST_CASE("an unknown library and a node without NVLink are refused by name") {
  CHECK_THROWS_WITH(kernels_named("deepep-v3"), Catch::Contains("deepep-v"));
  const TokenExchangeTimes cards(node_named("l40s-8"), kernels_named(""));
  CHECK_THROWS_WITH(cards.time_of(exchange_of(v3(64, true, false)), over(8)),
                    Catch::Contains("needs NVLink"));
}

TEST_CASE("links carry what tokens cross them, on rails alone") {
  topology::FabricSpec fabric = catalogue().fabric(toml_text("rail-optimized", "test"));
  const auto cluster = topology::Cluster::build(node_named("dgx-h100"), 4, fabric);
  const topology::StaticRouter router(cluster);
  const NcclNetwork network(cluster, router, catalogue().nccl("2.28.9"));
  std::vector<std::int64_t> ranks(32);
  std::iota(ranks.begin(), ranks.end(), 0);
  const workloads::Collective c = exchange_of(v3(4096, true, false));
  const CollectiveTime time = network.time_of(c, shape_of(cluster, ranks));
  double up = 0.0, nvlink = 0.0;
  for (const LinkLoad& load : network.loads_of(delivery_of(c.kind, time), ranks)) {
    const topology::Link& link = cluster.links()[load.link];
    const auto from = cluster.devices()[link.from].kind;
    if (link.kind == topology::LinkKind::injection && from == topology::DeviceKind::nic)
      up += load.bytes_per_byte;
    if (link.kind == topology::LinkKind::nvlink && from == topology::DeviceKind::gpu)
      nvlink += load.bytes_per_byte;
    CHECK(link.kind != topology::LinkKind::fabric);
  }
  CHECK(up == Approx(32 * 3.614 / 8 * 3 / 4).epsilon(0.01));
  CHECK(nvlink == Approx(32 * 7.267 / 8 * 7 / 8).epsilon(0.02));
}
