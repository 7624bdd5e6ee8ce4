// Where a tuner leaves one protocol for the next: read, and asked of the model.
#include "calibrate/import/crossovers.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "calibrate/fit/network.hpp"
#include "engine/check.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using Catch::Matchers::Contains;

namespace {

constexpr const char* header =
    "platform,gpu,kind,from_protocol,to_protocol,ranks,gpus_per_node,bytes,source,how_obtained,"
    "scored\n";

std::vector<Crossover> read(const std::string& rows) {
  return read_crossovers(sim::parse_csv("rows.csv", header + rows), catalogue());
}

std::string refusal(const std::string& rows) {
  try {
    read(rows);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::vector<Crossover> shipped() {
  return read_crossovers(
      sim::read_csv(catalogue().directory() + "/../calibrate/fit/protocol_crossovers.csv"),
      catalogue());
}

CrossoverCase case_of(const Crossover& one) {
  return {one, std::make_shared<const sim::NcclTuning>(
                   sim::nccl_tuning_of(catalogue().directory() + "/nccl", "2.23"))};
}

}  // namespace

TEST_CASE("a crossover is read with its node, its group and its two protocols") {
  const auto one = read("aws-p5en,H200,allgather,ll,ll128,16,8,786432,a tuner,read,yes\n").at(0);
  CHECK(one.node.name == "aws-p5en");
  CHECK((one.shape.ranks == 16 && one.shape.nodes == 2));
  CHECK((one.from == sim::Protocol::ll && one.to == sim::Protocol::ll128));
  CHECK(one.scored);
  CHECK_FALSE(read("aws-p5en,H200,allgather,ll,ll128,16,8,786432,a tuner,read,no\n").at(0).scored);
}

TEST_CASE("what is no crossover is refused at its line") {
  CHECK_THAT(refusal("aws-p9,H200,allgather,ll,ll128,16,8,1,s,r,yes\n"), Contains("rows.csv:2"));
  CHECK_THAT(refusal("aws-p5en,H200,allgather,ll,ll256,16,8,1,s,r,yes\n"), Contains("ll256"));
  CHECK_THAT(refusal("aws-p5en,H200,allgather,ll,ll128,12,8,1,s,r,yes\n"), Contains("12 ranks"));
  CHECK_THAT(refusal("aws-p5en,H200,sendrecv,ll,ll128,16,8,1,s,r,yes\n"), Contains("sendrecv"));
  CHECK_THAT(refusal(""), Contains("holds no row"));
}

TEST_CASE(
    "at the predicted size the two protocols take equally long, and below the first is faster") {
  const sim::NetworkConstants constants = catalogue().network_constants();
  for (const Crossover& one : shipped()) {
    const CrossoverCase asked = case_of(one);
    const auto at = asked.predicted(constants);
    REQUIRE(at);
    CHECK(asked.ratio(*at, constants) == Approx(1.0).margin(0.01));
    CHECK(asked.ratio(Bytes(at->value / 8), constants) < 1.0);
  }
}

TEST_CASE("the shipped constants leave LL and LL128 where a vendor's tuner does") {
  const sim::NetworkConstants constants = catalogue().network_constants();
  std::size_t scored = 0, close = 0;
  for (const Crossover& one : shipped()) {
    if (!one.scored) continue;
    ++scored;
    close += std::abs(*case_of(one).predicted(constants) / one.bytes - 1) <= 0.25;
  }
  CHECK(scored == 17);
  CHECK(close >= 15);
}

TEST_CASE("a fit on crossovers alone moves the constants that they show") {
  sim::NetworkConstants off = catalogue().network_constants();
  off.shared.nic_ll128 = 0.7;
  const auto mean = [&](const sim::NetworkConstants& c) {
    double sum = 0;
    for (const Crossover& one : shipped())
      if (one.scored) sum += std::abs(std::log(case_of(one).ratio(one.bytes, c)));
    return sum;
  };
  const NetworkFit fit = fit_network({{}, shipped()}, catalogue(), off);
  CHECK(fit.rows == 17);
  CHECK(mean(fit.constants) < 0.5 * mean(off));
}
