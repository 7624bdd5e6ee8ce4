#include "sim/network/nccl/collective_curves.hpp"

#include <catch2/catch.hpp>

#include "tests/session.hpp"
#include "tests/sim/collective_rows.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

MeasurementConstants measuring() { return catalogue().network_constants().measurement; }

constexpr auto AR = CollectiveKind::all_reduce;

/// Three sizes of an AllReduce over 4 nodes, 10, 20 and 50 us.
std::vector<CollectiveRow> three_rows() {
  CollectiveRow row;
  row.gpu = "H100-SXM5-80GB";
  row.collective = "allreduce";
  row.ranks = 32;
  row.nodes = 4;
  row.fabric = "infiniband";
  row.node_bandwidth = 400_GBps;
  row.source = {"a log", "a log", "high"};
  std::vector<CollectiveRow> rows(3, row);
  rows[0].bytes = 1_MiB, rows[0].duration = 10_us;
  rows[1].bytes = 4_MiB, rows[1].duration = 20_us;
  rows[2].bytes = 16_MiB, rows[2].duration = 50_us;
  return rows;
}

std::vector<CollectiveRow> with(auto change) {
  auto rows = three_rows();
  for (CollectiveRow& row : rows) change(row);
  return rows;
}

bool used(const std::vector<CollectiveRow>& rows) {
  return !CollectiveCurves(rows, dgx(NcclGeneration::hopper), measuring()).all().empty();
}

}  // namespace

TEST_CASE("a curve gives its points and goes straight between them on log-log paper") {
  const CollectiveCurves curves(three_rows(), dgx(NcclGeneration::hopper), measuring());
  const CollectiveCurve* curve = curves.find(AR, {32, 4, 8, 1});
  REQUIRE(curve != nullptr);
  CHECK(curve->at(1_MiB) == 10_us);
  CHECK(curve->at(16_MiB) == 50_us);
  CHECK(curve->has_point(4_MiB));
  CHECK_FALSE(curve->has_point(2_MiB));
  // Halfway between 1 and 4 MiB: the geometric mean of 10 and 20 us.
  CHECK(seconds(curve->at(2_MiB)) == Approx(std::sqrt(10.0 * 20.0) * 1e-6));
  CHECK_FALSE(curve->covers(32_MiB));
  CHECK_THROWS_AS(curve->at(32_MiB), BrokenPromise);
}

TEST_CASE("rows of another machine, fabric or doubtful source do not count") {
  CHECK(used(three_rows()));
  CHECK(used(with([](CollectiveRow& r) { r.gpu = "H100-SXM5"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.gpu = "H100-PCIe"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.gpu = "A100-SXM4-80GB"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.source = r.source.with_confidence("low"); })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.fabric = "efa"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.fabric.clear(); })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.node_bandwidth = 100_GBps; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.node_bandwidth = {}; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.nccl = "2.4.8"; })));
  CHECK(used(with([](CollectiveRow& r) { r.nccl = "2.20"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.bytes = {}; })));
}

TEST_CASE("curves of one node had LL and LL128: a node whose plugin forbids them has none") {
  const auto rows = with([](CollectiveRow& r) {
    r.ranks = 8, r.nodes = 1, r.fabric = "nvlink", r.node_bandwidth = {};
  });
  CHECK(used(rows));
  auto node = dgx(NcclGeneration::hopper);
  node.low_latency_protocols = false;
  CHECK(CollectiveCurves(rows, node, measuring()).all().empty());
}

TEST_CASE("sums of fp8 have curves of their own: NCCL serves no other type as it serves them") {
  const auto narrow = with([](CollectiveRow& r) { r.dtype = "fp8"; });
  const CollectiveCurves curves(narrow, dgx(NcclGeneration::hopper), measuring());
  CHECK(curves.find(AR, {32, 4, 8, 1}) == nullptr);
  CHECK(curves.find(AR, {32, 4, 8, 1}, true) != nullptr);
  CHECK(curves.neighbours(AR, {64, 8, 8, 1}).fewer == nullptr);
  CHECK(curves.neighbours(AR, {64, 8, 8, 1}, true).fewer != nullptr);
  // Bytes that only move have no type.
  const auto gathered = with([](CollectiveRow& r) { r.dtype = "fp8", r.collective = "allgather"; });
  CHECK(CollectiveCurves(gathered, dgx(NcclGeneration::hopper), measuring())
            .find(CollectiveKind::all_gather, {32, 4, 8, 1}) != nullptr);
}

TEST_CASE("a curve knows whether it was measured on this very GPU and bandwidth") {
  const auto here = [](const std::vector<CollectiveRow>& rows) {
    return CollectiveCurves(rows, dgx(NcclGeneration::hopper), measuring()).all().front().here;
  };
  CHECK(here(three_rows()));
  CHECK_FALSE(here(with([](CollectiveRow& r) { r.gpu = "H100-SXM-64GB"; })));
  CHECK_FALSE(here(with([](CollectiveRow& r) { r.node_bandwidth = 390_GBps; })));
  // NICs that their PCIe links cap are not the ones that were measured.
  topology::NodeSpec capped = dgx(NcclGeneration::hopper);
  capped.pcie = 25_GBps;
  CHECK(CollectiveCurves(three_rows(), capped, measuring()).all().empty());
}

TEST_CASE("a collective whose algorithm or protocol was forced is not what NCCL would run") {
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.algorithm = "ring"; })));
  CHECK_FALSE(used(with([](CollectiveRow& r) { r.protocol = "ll"; })));
  CHECK(used(with([](CollectiveRow& r) { r.timing = "event"; })));
}

TEST_CASE("a slower fabric than the one measured gets no curve") {
  auto node = dgx(NcclGeneration::hopper);
  node.nic = 200_Gbps;
  CHECK(CollectiveCurves(three_rows(), node, measuring()).all().empty());
}

TEST_CASE("one or two figures are no curve") {
  auto rows = three_rows();
  rows.pop_back();
  CHECK_FALSE(used(rows));
}

TEST_CASE("a point that cannot be read off its plot is left out") {
  // 1 MiB in 419 us is 5 GB/s on 512 ranks, read to 3 GB/s.
  const CollectiveCurves curves(rows_of(study_all_reduce()), dgx(NcclGeneration::hopper),
                                measuring());
  const CollectiveCurve* curve = curves.find(AR, {512, 64, 8, 1});
  REQUIRE(curve != nullptr);
  CHECK(curve->smallest() == 8_MiB);
  CHECK(curve->largest() == 16_GiB);
  CHECK(curves.all().size() == 4);
}

TEST_CASE("a dip in a measurement does not make more bytes faster") {
  auto rows = three_rows();
  rows[1].duration = 5_us;
  const CollectiveCurves curves(rows, dgx(NcclGeneration::hopper), measuring());
  CHECK(curves.find(AR, {32, 4, 8, 1})->at(4_MiB) == 10_us);
}

TEST_CASE("of two logs the one of the very GPU wins, then the one with more sizes") {
  auto rows = three_rows();
  for (CollectiveRow& row : rows) row.ranks = 8, row.nodes = 1, row.fabric = "nvlink";
  auto sibling = rows;
  for (CollectiveRow& row : sibling)
    row.gpu = "H100-SXM5-96GB", row.source = {"another", "another", "high"};
  sibling.push_back(sibling.back());
  sibling.back().bytes = 64_MiB;
  rows.insert(rows.end(), sibling.begin(), sibling.end());
  const CollectiveCurves curves(rows, dgx(NcclGeneration::hopper), measuring());
  REQUIRE(curves.all().size() == 1);
  CHECK(curves.all().front().gpu == "H100-SXM5-80GB");
}

TEST_CASE("two-node figures say nothing about more nodes") {
  auto rows = with([](CollectiveRow& r) { r.ranks = 16, r.nodes = 2; });
  const CollectiveCurves curves(rows, dgx(NcclGeneration::hopper), measuring());
  CHECK(curves.find(AR, {16, 2, 8, 1}) != nullptr);
  CHECK(curves.neighbours(AR, {32, 4, 8, 1}).fewer == nullptr);
}

TEST_CASE("neighbours are the nearest measured node counts with as many ranks a node") {
  const CollectiveCurves curves(rows_of(study_all_reduce()), dgx(NcclGeneration::hopper),
                                measuring());
  const auto near = curves.neighbours(AR, {256, 32, 8, 1});
  REQUIRE(near.fewer != nullptr);
  REQUIRE(near.more != nullptr);
  CHECK(near.fewer->nodes == 16);
  CHECK(near.more->nodes == 64);
  CHECK(curves.neighbours(AR, {4096, 512, 8, 1}).more == nullptr);
  CHECK(curves.neighbours(AR, {32, 32, 1, 1}).fewer == nullptr);
  CHECK(curves.neighbours(CollectiveKind::all_gather, {256, 32, 8, 1}).fewer == nullptr);
}

TEST_CASE("points more than 16 times apart leave a hole that a straight line does not cross") {
  auto rows = three_rows();
  const Bytes low = rows[1].bytes;
  rows[2].bytes = low * 32;
  const CollectiveCurves curves(rows, dgx(NcclGeneration::hopper), measuring());
  const CollectiveCurve& curve = *curves.find(AR, {32, 4, 8, 1});
  CHECK(curve.hole_at(low * 4).has_value());
  CHECK_FALSE(curve.hole_at(low).has_value());
  CHECK_FALSE(curve.hole_at(curve.largest()).has_value());
  rows[2].bytes = low * 16;
  CHECK_FALSE(CollectiveCurves(rows, dgx(NcclGeneration::hopper), measuring())
                  .find(AR, {32, 4, 8, 1})
                  ->hole_at(low * 4)
                  .has_value());
}

TEST_CASE("curves of one node are not those of a what-if node with faster NVLinks") {
  auto rows = three_rows();
  for (CollectiveRow& row : rows) row.ranks = 8, row.nodes = 1, row.fabric = "nvlink";
  topology::NodeSpec node = dgx(NcclGeneration::hopper);
  node.gpu.relatives = {{node.gpu.name, node.gpu.tensor_peak, node.gpu.nvlink}};
  CHECK(CollectiveCurves(rows, node, measuring()).all().size() == 1);
  node.gpu.nvlink = node.gpu.nvlink * 2.0;
  CHECK(CollectiveCurves(rows, node, measuring()).all().empty());
}
