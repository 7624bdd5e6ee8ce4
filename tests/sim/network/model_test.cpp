#include "sim/network/model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"
#include "tests/sim/collective_rows.hpp"
#include "topology/cluster.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto RS = CollectiveKind::reduce_scatter;
constexpr CollectiveKind kinds[] = {AR,
                                    AG,
                                    RS,
                                    CollectiveKind::broadcast,
                                    CollectiveKind::reduce,
                                    CollectiveKind::all_to_all,
                                    CollectiveKind::send_receive};

const NcclFacts& tuning(const std::string& version = "2.20") { return catalogue().nccl(version); }
GroupShape whole_nodes(std::int64_t nodes) { return {8 * nodes, nodes, 8, 1}; }

std::vector<CollectiveRow> all_rows() {
  auto rows = rows_of(study_all_reduce());
  const auto more = rows_of(single_node_curves());
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Errors of the model without curves, from 1 MiB up; printed with `print`.
std::vector<double> errors(const MeasuredCurve& curve, bool print) {
  const CollectiveTimes times(dgx_of(curve), tuning());
  std::vector<double> out;
  for (const auto& [mib, busbw] : curve.mib_and_busbw) {
    const CollectiveTime t = times.time_of(kind_of(curve), Bytes(mib << 20), shape_of(curve));
    const double nccl = bus_factor(kind_of(curve), curve.ranks) * static_cast<double>(mib << 20) /
                        seconds(t.nccl_estimate) * 1e-9;
    out.push_back(seconds(t.duration) / seconds(measured_time(curve, mib, busbw)) - 1);
    if (print)
      std::printf(
          "%-14s %-13s %4lld nodes %6lld MiB  measured %5.1f  ours %5.1f  NCCL's own %5.1f GB/s  "
          "%s/%s\n",
          curve.gpu.c_str(), curve.collective.c_str(), static_cast<long long>(curve.nodes),
          static_cast<long long>(mib), busbw, t.busbw.value / 1e9, nccl,
          std::string(name_of(t.algorithm)).c_str(), std::string(name_of(t.protocol)).c_str());
  }
  return out;
}

std::vector<double> magnitudes(const std::vector<MeasuredCurve>& curves, bool print) {
  std::vector<double> out;
  for (const MeasuredCurve& curve : curves)
    for (const double e : errors(curve, print)) out.push_back(std::abs(e));
  return out;
}

}  // namespace

TEST_CASE("the model alone meets the study's AllReduce table within 8 % at the median") {
  CHECK(median(magnitudes(study_all_reduce(), false)) < 0.05);
  // From 32 MiB on every point of 4 to 256 nodes lies within 20 %.
  for (const MeasuredCurve& curve : study_all_reduce()) {
    const std::vector<double> all = errors(curve, false);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(curve.nodes << " nodes, " << curve.mib_and_busbw[i].first << " MiB");
      if (curve.mib_and_busbw[i].first >= 32) CHECK(std::abs(all[i]) < 0.20);
    }
  }
}

TEST_CASE("the model alone meets single-node curves within 12 % at the median") {
  CHECK(median(magnitudes(single_node_curves(), false)) < 0.12);
}

TEST_CASE("the study's table is printed", "[.table]") {
  const auto study = magnitudes(study_all_reduce(), true);
  const auto single = magnitudes(single_node_curves(), true);
  std::printf("median error: study %.3f, single node %.3f\n", median(study), median(single));
}

TEST_CASE("more bytes are never faster, with and without measured curves") {
  std::mt19937_64 random(1);
  for (const auto architecture :
       {NcclGeneration::volta, NcclGeneration::ampere, NcclGeneration::hopper})
    for (const bool measured : {false, true}) {
      const CollectiveTimes times(dgx(architecture), tuning(),
                                  measured ? all_rows() : std::vector<CollectiveRow>{});
      for (const GroupShape shape : {GroupShape{8, 1, 8, 1}, GroupShape{4, 1, 4, 1}, whole_nodes(4),
                                     whole_nodes(13), whole_nodes(64), GroupShape{16, 16, 1, 1}})
        for (const CollectiveKind kind : kinds) {
          if (kind == CollectiveKind::send_receive && shape.ranks != 2) continue;
          Duration last{};
          for (double bytes = 16; bytes < 3e10;
               bytes *= 1.05 + 0.4 * std::generate_canonical<double, 32>(random)) {
            const auto size = Bytes(static_cast<std::int64_t>(bytes));
            const Duration now = times.time_of(kind, size, shape).duration;
            INFO(shape.ranks << "/" << shape.nodes << " kind " << static_cast<int>(kind) << " "
                             << size.value << " bytes, curves " << measured);
            CHECK(now >= last);
            last = now;
          }
        }
    }
}

TEST_CASE("at one algorithm and protocol more bytes are never faster") {
  const NcclTuning& t = tuning().tuning;
  const NetworkConstants constants = catalogue().network_constants();
  for (const char* name : {"dgx-h100", "aws-p5", "aws-p4d", "dgx-1v"})
    for (const std::int64_t nodes : {1, 2, 8, 64}) {
      const auto on =
          nccl_machine(catalogue().node(toml_text(name, "node")), {8 * nodes, nodes, 8, 1});
      for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
        std::map<std::pair<Algorithm, Protocol>, Duration> last;
        for (std::int64_t b = 8; b <= std::int64_t{1} << 34; b *= 2)
          for (const NcclOption& o : nccl_options(t, on, {kind, Bytes(b)})) {
            const Duration now = nccl_time(t, on, kind, Bytes(b), o, constants).total();
            INFO(name << ", " << nodes << " nodes, " << b << " B, " << name_of(o.algorithm) << " "
                      << name_of(o.protocol));
            CHECK(now >= last[std::pair(o.algorithm, o.protocol)]);
            last[std::pair(o.algorithm, o.protocol)] = now;
          }
      }
    }
}

TEST_CASE("a ring of Simple between nodes is its start, its hops and its bytes") {
  const NcclTuning& t = tuning().tuning;
  const NetworkConstants c = catalogue().network_constants();
  auto node = catalogue().node(toml_text("aws-p5", "node"));
  node.low_latency_protocols = false;
  for (const std::int64_t nodes : {2, 8, 64}) {
    const auto on = nccl_machine(node, {8 * nodes, nodes, 8, 1});
    const auto n = static_cast<double>(8 * nodes);
    const NcclOption o = nccl_choice(t, on, {CollectiveKind::all_gather, 256_MiB});
    REQUIRE(o.protocol == Protocol::simple);
    const NcclTime time = nccl_time(t, on, CollectiveKind::all_gather, 256_MiB, o, c);
    // n - 1 steps, of which one in eight leaves a node; a hop is 1.4 times NCCL's, "plateau".
    const double crossings = std::ceil((n - 1) / 8);
    const double step = 1.4 * seconds(c.generation[2].ring_step);
    const double hop = 1.4 * 14e-6 + seconds(c.transport[2].hop[2]);
    CHECK(seconds(time.latency()) == Approx(8.4e-6 + seconds(c.generation[2].start) +
                                            (n - 1 - crossings) * step + crossings * hop));
    const double nics = 400e9 * c.shared.nic_ring * c.transport[2].bandwidth;
    const double bus = std::min(nics, on.in_node_bus.value * c.generation[2].ring_simple);
    CHECK(seconds(time.transfer - time.messages) == Approx((n - 1) / n * 256 * 1048576 / bus));
    CHECK(time.messages > Duration(0));
  }
}

TEST_CASE("more nodes are never faster for a ring of the same protocol") {
  for (const auto protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning(), {},
                                {.algorithm = Algorithm::ring, .protocol = protocol});
    for (const CollectiveKind kind : {AR, AG, RS})
      for (const Bytes bytes : {1_KiB, 1_MiB, 64_MiB, 1_GiB}) {
        Duration last{};
        for (std::int64_t nodes = 3; nodes <= 512; nodes += nodes / 3) {
          const Duration now = times.time_of(kind, bytes, whole_nodes(nodes)).duration;
          CHECK(now > last);
          last = now;
        }
      }
  }
}

TEST_CASE(
    "more nodes are never faster for what NCCL chooses, with the measured curves in between") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning(), all_rows());
  for (const CollectiveKind kind : {AR, AG, RS})
    for (std::int64_t mib = 1; mib <= 16384; mib *= 4) {
      Duration last{};
      for (const std::int64_t nodes : {4, 8, 16, 32, 64, 128, 256, 512}) {
        const Duration now = times.time_of(kind, Bytes(mib << 20), whole_nodes(nodes)).duration;
        INFO("kind " << static_cast<int>(kind) << ", " << mib << " MiB, " << nodes << " nodes");
        CHECK(seconds(now) >= 0.98 * seconds(last));  // NCCL's next choice may be a little better
        last = now;
      }
    }
}

TEST_CASE("a collective takes as long whatever was asked before") {
  const auto hopper = dgx(NcclGeneration::hopper);
  const CollectiveTimes asked_often(hopper, tuning(), all_rows());
  const GroupShape shapes[] = {whole_nodes(1), whole_nodes(2), whole_nodes(16), {16, 16, 1, 1}};
  std::mt19937_64 random(31);
  for (int turn = 0; turn < 200; ++turn) {
    const CollectiveKind kind = kinds[random() % std::size(kinds)];
    const GroupShape shape =
        kind == CollectiveKind::send_receive ? GroupShape{2, 2, 1, 1} : shapes[random() % 4];
    const Bytes bytes(std::int64_t{1} << random() % 34 | static_cast<std::int64_t>(random() % 100));
    const CollectiveTime often = asked_often.time_of(kind, bytes, shape);
    const CollectiveTime once =
        CollectiveTimes(hopper, tuning(), all_rows()).time_of(kind, bytes, shape);
    INFO("kind " << static_cast<int>(kind) << ", " << bytes.value << " bytes, " << shape.ranks
                 << " ranks on " << shape.nodes << " nodes");
    CHECK(often.duration == once.duration);
    CHECK(often.transfer == once.transfer);
    CHECK(often.algorithm == once.algorithm);
  }
}

TEST_CASE("twice the bandwidth halves the bandwidth part and leaves the latency") {
  auto fast = dgx(NcclGeneration::hopper);
  const CollectiveTimes slow_times(fast, tuning(), {},
                                   {.algorithm = Algorithm::ring, .protocol = Protocol::simple});
  fast.nic = fast.nic * 2;
  fast.gpu.nvlink = fast.gpu.nvlink * 2;
  fast.gpu.nvlink_links *= 2;
  fast.pcie = fast.pcie * 2;
  const CollectiveTimes fast_times(fast, tuning(), {},
                                   {.algorithm = Algorithm::ring, .protocol = Protocol::simple});
  const CollectiveTime slow = slow_times.time_of(AG, 1_GiB, whole_nodes(16));
  const CollectiveTime quick = fast_times.time_of(AG, 1_GiB, whole_nodes(16));
  CHECK(seconds(quick.transfer) == Approx(seconds(slow.transfer) / 2).epsilon(0.05));
  CHECK(quick.latency == slow.latency);
}

TEST_CASE("a slower network never speeds anything up") {
  for (const CollectiveKind kind : kinds)
    for (const Bytes bytes : {64_KiB, 16_MiB, 1_GiB}) {
      const GroupShape shape =
          kind == CollectiveKind::send_receive ? GroupShape{2, 2, 1, 1} : whole_nodes(8);
      Duration last{};
      for (const double gbit : {800., 400., 200., 100., 50.}) {
        auto node = dgx(NcclGeneration::hopper);
        node.nic = BytesPerSecond(gbit / 8 * 1e9);
        const Duration now = CollectiveTimes(node, tuning()).time_of(kind, bytes, shape).duration;
        CHECK(seconds(now) >= 0.98 * seconds(last));  // NCCL's next choice may be a little better
        last = now;
      }
    }
}

TEST_CASE("the latency of a ring AllGather grows with its steps, up to 4,096 GPUs") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning(), {},
                              {.algorithm = {}, .protocol = Protocol::simple});
  const auto latency = [&](std::int64_t nodes) {
    return seconds(times.time_of(AG, 404_MiB, whole_nodes(nodes)).latency);
  };
  const double per_node = (latency(128) - latency(64)) / 64;
  CHECK(latency(512) - latency(256) == Approx(256 * per_node).epsilon(0.01));
  const NetworkConstants& c = catalogue().network_constants();
  const double between =
      14e-6 * 1.4 + seconds(c.extra_hop(topology::Network::infiniband, NcclGeneration::hopper));
  CHECK(per_node ==
        Approx(7 * 1.4 * seconds(c.of(NcclGeneration::hopper).ring_step) + between).epsilon(0.01));
}

TEST_CASE("the parts of a collective's time add up and say what they rest on") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning(), all_rows());
  for (const CollectiveKind kind : {AR, AG, RS})
    for (const std::int64_t nodes : {1, 4, 7, 256}) {
      const CollectiveTime t = times.time_of(kind, 100_MiB, whole_nodes(nodes));
      CHECK(t.latency + t.transfer == t.duration);
      CHECK(t.latency > Duration(0));
      CHECK(t.busbw.value == Approx(bus_factor(kind, 8 * nodes) * t.algbw.value).epsilon(1e-9));
      CHECK(t.ctas >= 1);
      CHECK(t.memory_traffic.value > 0);
    }
  CHECK(times.time_of(AR, 64_MiB, whole_nodes(64)).rests_on.find("2411.13055") == 6);
  CHECK(times.time_of(AG, 64_MiB, whole_nodes(64)).rests_on.empty());
}

TEST_CASE("a measured size is returned as measured, and what lies beside it says so") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning(), all_rows());
  const MeasuredCurve& curve = study_all_reduce().front();
  const CollectiveTime at = times.time_of(AR, 64_MiB, whole_nodes(4));
  CHECK(at.provenance == Provenance::measured);
  CHECK(at.duration == measured_time(curve, 64, 217));
  CHECK(times.time_of(AR, 65_MiB, whole_nodes(4)).provenance == Provenance::interpolated);
  CHECK(times.time_of(AR, 32_GiB, whole_nodes(4)).provenance == Provenance::extrapolated);
  CHECK(times.time_of(AR, 64_KiB, whole_nodes(4)).provenance == Provenance::extrapolated);
  // Between measured node counts.
  const CollectiveTime between = times.time_of(AR, 64_MiB, whole_nodes(8));
  CHECK(between.provenance == Provenance::interpolated);
  CHECK(times.time_of(AR, 64_MiB, whole_nodes(512)).provenance == Provenance::model);
  CHECK(between.correction != 1.0);
  CHECK(between.duration > at.duration);
  CHECK(between.duration < times.time_of(AR, 64_MiB, whole_nodes(16)).duration);
  // A strided group of the same size is another thing.
  CHECK(times.time_of(AR, 64_MiB, {32, 32, 1, 1}).correction == 1.0);
}

TEST_CASE("NCCL's own model is as short of the measurements as known") {
  // Ours: model / measured for 8 x A100, superbenchmark log.
  const auto nccl = [](CollectiveKind kind, Bytes bytes) {
    return seconds(CollectiveTimes(dgx(NcclGeneration::ampere), tuning("2.28.9"))
                       .time_of(kind, bytes, {8, 1, 8, 1})
                       .nccl_estimate);
  };
  const auto measured = [](std::size_t curve, std::size_t point) {
    const MeasuredCurve& c = single_node_curves()[curve];
    return seconds(measured_time(c, c.mib_and_busbw[point].first, c.mib_and_busbw[point].second));
  };
  CHECK(nccl(AR, 4_MiB) / measured(1, 2) == Approx(0.66).margin(0.02));
  CHECK(nccl(AR, 64_MiB) / measured(1, 6) == Approx(0.93).margin(0.02));
  CHECK(nccl(AR, 1_GiB) / measured(1, 10) == Approx(0.97).margin(0.02));
  CHECK(nccl(AG, 4_MiB) / measured(2, 2) == Approx(0.44).margin(0.02));
  CHECK(nccl(AG, 64_MiB) / measured(2, 6) == Approx(0.73).margin(0.02));
  CHECK(nccl(AG, 1_GiB) / measured(2, 10) == Approx(0.89).margin(0.02));
  CHECK(nccl(RS, 16_MiB) / measured(3, 4) == Approx(0.61).margin(0.02));
  CHECK(nccl(RS, 8_GiB) / measured(3, 13) == Approx(0.97).margin(0.02));
}

TEST_CASE("two GPUs exchange a message at the speed of what lies between them") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning());
  const auto send = [&](Bytes bytes, GroupShape shape) {
    return times.time_of(CollectiveKind::send_receive, bytes, shape).algbw.value / 1e9;
  };
  // vidur, H100, CUPTI: 105, 280 and 348 GB/s on NVLink; 36 GB/s over one NIC.
  CHECK(send(1_MiB, {2, 1, 2, 1}) == Approx(105).epsilon(0.1));
  CHECK(send(8_MiB, {2, 1, 2, 1}) == Approx(280).epsilon(0.1));
  CHECK(send(64_MiB, {2, 1, 2, 1}) == Approx(348).epsilon(0.1));
  CHECK(send(64_MiB, {2, 2, 1, 1}) == Approx(36).epsilon(0.1));
}

TEST_CASE("one rank, or nothing to move, takes no time") {
  const CollectiveTimes times(dgx(NcclGeneration::hopper), tuning());
  CHECK(times.time_of(AR, 1_GiB, {1, 1, 1, 1}).duration == Duration(0));
  CHECK(times.time_of(AR, Bytes(0), whole_nodes(2)).duration == Duration(0));
}
