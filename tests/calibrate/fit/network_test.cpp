#include "calibrate/fit/network.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "engine/check.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;

namespace {

/// Rows that the model itself would have measured with these constants, with relative noise.
std::vector<sim::CollectiveRow> made_with(const sim::NetworkConstants& truth, double noise) {
  const sim::Catalogue& catalogue = stepcast::catalogue();
  const CollectiveCases cases(catalogue);
  const sim::NcclTuning tuning = sim::nccl_tuning_of(catalogue.directory() + "/nccl", "2.20");
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0.0, 1.0);
  std::vector<sim::CollectiveRow> rows;
  for (const char* collective : {"allreduce", "allgather"})
    for (const std::int64_t ranks : {2, 4, 8})
      for (std::int64_t bytes = 4096; bytes <= std::int64_t{1} << 32; bytes *= 4) {
        sim::CollectiveRow row;
        row.gpu = "A100-SXM4-80GB";
        row.collective = collective;
        row.ranks = ranks;
        row.nodes = 1;
        row.bytes = Bytes(bytes);
        row.fabric = "nvlink";
        row.source = {"made up", "test", "high"};
        const CollectiveCase question = cases.case_of(row);
        const auto machine = sim::nccl_machine(question.node, question.shape);
        const auto option = sim::nccl_choice(tuning, machine, {question.kind, row.bytes});
        const Duration time =
            sim::nccl_time(tuning, machine, question.kind, row.bytes, option, truth).total();
        row.duration = to_duration(seconds(time) * std::exp(noise * normal(random)));
        rows.push_back(row);
      }
  return rows;
}

double after(const NetworkFit& fit, const std::string& name) {
  for (const FittedConstant& c : fit.fitted)
    if (c.name == name) return c.after;
  throw BrokenPromise("no constant " + name);
}

}  // namespace

TEST_CASE("a fit finds the constants that made the rows") {
  sim::NetworkConstants truth = catalogue().network_constants();
  truth.generation[1].start = to_duration(17e-6);
  truth.generation[1].ring_step = to_duration(6e-6);
  truth.generation[1].ring_simple = 0.9;
  const NetworkFit fit =
      fit_network({made_with(truth, 0.0), {}}, catalogue(), catalogue().network_constants());
  CHECK(fit.objective_after < 0.1 * fit.objective_before);
  CHECK(after(fit, "ampere.start") == Approx(17).epsilon(0.05));
  CHECK(after(fit, "ampere.ring_step") == Approx(6).epsilon(0.1));
  CHECK(after(fit, "ampere.ring_simple") == Approx(0.9).epsilon(0.05));
}

TEST_CASE("noise of 5 % moves constants little, and constants without rows not at all") {
  sim::NetworkConstants truth = catalogue().network_constants();
  truth.generation[1].ring_simple = 0.9;
  const NetworkFit fit =
      fit_network({made_with(truth, 0.05), {}}, catalogue(), catalogue().network_constants());
  CHECK(after(fit, "ampere.ring_simple") == Approx(0.9).epsilon(0.08));
  CHECK(fit.constants.generation[2].ring_step ==
        catalogue().network_constants().generation[2].ring_step);
  CHECK(fit.objective_after < 0.06);
  for (const FittedConstant& c : fit.fitted)
    if (c.name == "hopper.ring_step") CHECK(c.held);
}

TEST_CASE("rows of low confidence set no constant") {
  const sim::NetworkConstants shipped = catalogue().network_constants();
  auto rows = made_with(shipped, 0.0);
  const std::size_t good = rows.size();
  sim::NetworkConstants slow = shipped;
  slow.generation[1].start = to_duration(60e-6);
  for (sim::CollectiveRow row : made_with(slow, 0.0)) {
    row.source = {"with arrival skew", "another", "low"};
    rows.push_back(row);
  }
  const NetworkFit fit = fit_network({rows, {}}, catalogue(), shipped);
  CHECK(fit.rows == good);
  CHECK(after(fit, "ampere.start") == Approx(seconds(shipped.generation[1].start) * 1e6));
}

TEST_CASE("a row of Simple alone is a question to a node whose plugin allows nothing else") {
  const CollectiveCases cases(catalogue());
  sim::CollectiveRow row = made_with(catalogue().network_constants(), 0.0).front();
  CHECK(cases.case_of(row).node.low_latency_protocols);
  row.protocol = "simple";
  CHECK_FALSE(cases.case_of(row).node.low_latency_protocols);
}

TEST_CASE("a protocol that a source infers from its times is evidence, and was not forced") {
  const CollectiveCases cases(catalogue());
  sim::CollectiveRow row = made_with(catalogue().network_constants(), 0.0).front();
  CHECK_FALSE(cases.case_of(row).protocol);
  row.protocol = "ll128 (by plateau)";
  CHECK(cases.case_of(row).protocol == sim::Protocol::ll128);
  CHECK_FALSE(was_forced(row));
  row.protocol = "ll128";
  CHECK(was_forced(row));
}

TEST_CASE("trays of one rack are one node, and racks are joined by what the row says") {
  const CollectiveCases cases(catalogue());
  sim::CollectiveRow row;
  row.gpu = "GB200";
  row.collective = "alltoall";
  row.bytes = Bytes(1 << 20);
  row.duration = to_duration(1e-3);
  row.ranks = 32;
  row.nodes = 8;
  row.gpus_per_node = 4;
  row.fabric = "nvlink";
  CHECK(cases.case_of(row).shape.nodes == 1);
  row.ranks = 144;
  row.nodes = 36;
  CHECK_THROWS_AS(cases.case_of(row), Unpredictable);  // nothing joins the racks
  row.fabric = "roce";
  CHECK(cases.case_of(row).shape.nodes == 2);
  CHECK(cases.case_of(row).node.network == topology::Network::roce);
  row.ranks = 100;
  row.nodes = 25;
  CHECK_THROWS_AS(cases.case_of(row), Unpredictable);  // no whole racks
}

TEST_CASE("no constant leaves what wires can carry") {
  auto rows = made_with(catalogue().network_constants(), 0.0);
  for (sim::CollectiveRow& row : rows) row.duration = row.duration / 3;  // faster than NVLink
  const NetworkFit fit = fit_network({rows, {}}, catalogue(), catalogue().network_constants());
  CHECK(after(fit, "ampere.ring_simple") <= 1.25 + 1e-9);
  CHECK(after(fit, "ampere.start") >= 0.0);
}

TEST_CASE("rows without a machine cannot be fitted") {
  auto rows = made_with(catalogue().network_constants(), 0.0);
  for (sim::CollectiveRow& row : rows) row.gpu = "TPU v4";
  CHECK_THROWS_AS(fit_network({rows, {}}, catalogue(), catalogue().network_constants()),
                  InputError);
}

TEST_CASE("a row that cannot be predicted says why") {
  const CollectiveCases cases(catalogue());
  sim::CollectiveRow row = made_with(catalogue().network_constants(), 0.0).front();
  const auto why = [&] {
    try {
      cases.case_of(row);
    } catch (const Unpredictable& reason) {
      return reason.reason;
    }
    return std::string("predicted");
  };
  CHECK(why() == "predicted");
  row.fabric = "";
  CHECK(why() == "fabric not stated");
  row.fabric = "nvlink";
  row.bytes = Bytes(0);
  CHECK(why() == "a peak without a size (max)");
  row.bytes = Bytes(1024);
  row.nodes = 0;
  CHECK(why() == "number of nodes not stated (multi)");
}

TEST_CASE("a row's network picks the node: AWS's for EFA, the DGX for InfiniBand") {
  const CollectiveCases cases(catalogue());
  sim::CollectiveRow row = made_with(catalogue().network_constants(), 0.0).front();
  row.nodes = 2;
  row.ranks = 16;
  row.fabric = "efa";
  row.node_bandwidth = BytesPerSecond(50e9);
  CHECK(cases.case_of(row).node.name == "aws-p4de");
  CHECK(cases.case_of(row).node.nics == 4);
  row.fabric = "infiniband";
  row.node_bandwidth = BytesPerSecond(200e9);
  CHECK(cases.case_of(row).node.name == "dgx-a100");
  CHECK_FALSE(cases.case_of(row).assumed);
  row.node_bandwidth = {};
  CHECK(cases.case_of(row).assumed);
}
