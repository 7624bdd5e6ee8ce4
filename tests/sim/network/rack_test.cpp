// Racks in NCCL's eyes: one NVLink domain over many trays is one node. Rows: NVIDIA/nccl-tests on
// 8 x B200 and GB200 NVL72 with NCCL 2.26 to 2.30, and contrib/custom_algos/alltoall/README.md of
// NVIDIA/nccl at 5067397 (NCCL 2.30, in a CUDA graph).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/files/toml_value.hpp"
#include "sim/network/nccl/network.hpp"
#include "tests/session.hpp"
#include "topology/rack.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;

namespace {

constexpr auto AR = CollectiveKind::all_reduce;
constexpr auto A2A = CollectiveKind::all_to_all;

topology::NodeSpec node_named(const std::string& name) {
  return catalogue().node(toml_text(name, "test"));
}

GroupShape whole(const topology::NodeSpec& node, std::int64_t nodes) {
  return {node.gpus * nodes, nodes, node.gpus, 1};
}

CollectiveTime time_on(const topology::NodeSpec& node, CollectiveKind kind, Bytes bytes,
                       const GroupShape& shape, const std::string& nccl = "2.28.9",
                       const NcclOverrides& pinned = {}) {
  return CollectiveTimes(node, catalogue().nccl(nccl), {}, pinned).time_of(kind, bytes, shape);
}

double gbps(BytesPerSecond value) { return value.value / 1e9; }

}  // namespace

TEST_CASE("a rack is one node: NVLS sums over all of it") {
  const topology::NodeSpec rack = node_named("gb200-nvl72");
  const auto cluster =
      topology::Cluster::build(rack, 2, catalogue().fabric(toml_text("quantum-2", "test")));
  std::vector<std::int64_t> ranks(72);
  std::iota(ranks.begin(), ranks.end(), 0);
  CHECK(shape_of(cluster, ranks) == GroupShape{72, 1, 72, 1});
  for (const char* nccl : {"2.25", "2.27", "2.28.9", "2.30"})
    CHECK(time_on(rack, AR, 8_GiB, {72, 1, 72, 1}, nccl).algorithm == Algorithm::nvls);
}

TEST_CASE("AllReduce on Blackwell reaches what is published") {
  const topology::NodeSpec rack = node_named("gb200-nvl72"), box = node_named("dgx-b200");
  for (const char* nccl : {"2.25", "2.27", "2.28.9", "2.30"}) {
    INFO(nccl);
    CHECK(gbps(time_on(rack, AR, 8_GiB, whole(rack, 1), nccl).busbw) == Approx(841).epsilon(0.02));
    CHECK(gbps(time_on(box, AR, 16_GiB, whole(box, 1), nccl).busbw) == Approx(838).epsilon(0.02));
  }
  NcclOverrides ring;
  ring.algorithm = Algorithm::ring;
  CHECK(gbps(time_on(box, AR, 16_GiB, whole(box, 1), "2.27", ring).busbw) ==
        Approx(682).epsilon(0.03));
  // Two racks: 792 at 8 GiB, 810 to 820 at 16 GiB.
  CHECK(gbps(time_on(rack, AR, 8_GiB, whole(rack, 2), "2.26").busbw) == Approx(806).epsilon(0.08));
}

TEST_CASE("small AlltoAll in a rack: rows of NCCL 2.30 within a fifth, half within a tenth") {
  struct Row {
    std::int64_t ranks, per_pair;
    double us;
  };
  const Row rows[] = {{8, 16, 11.75}, {8, 128, 12.08},  {8, 1024, 12.27},  {8, 4096, 13.1},
                      {32, 16, 28.2}, {32, 128, 28.46}, {32, 1024, 29.28}, {32, 4096, 34.66}};
  const topology::NodeSpec rack = node_named("gb200-nvl72");
  std::vector<double> errors;
  for (const Row& row : rows) {
    const CollectiveTime time =
        time_on(rack, A2A, Bytes(row.ranks * row.per_pair), {row.ranks, 1, row.ranks, 1}, "2.30");
    const double error = seconds(time.duration) * 1e6 / row.us - 1;
    INFO(row.ranks << " ranks, " << row.per_pair << " bytes a pair: " << error);
    CHECK(std::abs(error) < 0.2);
    errors.push_back(std::abs(error));
  }
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < 0.1);
}

TEST_CASE("the policy EFFICIENCY spares no CTAs across trays") {
  NcclOverrides spare;
  spare.cta_policy = CtaPolicy::efficiency;
  spare.registered_buffers = true;
  const topology::NodeSpec rack = node_named("gb200-nvl72"), box = node_named("dgx-b200");
  const auto algorithm = [&](const topology::NodeSpec& node, const NcclOverrides& overrides) {
    return time_on(node, CollectiveKind::all_gather, 16_MiB, whole(node, 1), "2.30", overrides)
        .algorithm;
  };
  CHECK(algorithm(rack, spare) == algorithm(rack, {}));
  CHECK(algorithm(box, spare) == Algorithm::nvls);
}

// busbw <= b (N - 1) / (N - L) with a NIC of b for each of L GPUs of a node: what stays in the node
// needs no NIC.
TEST_CASE("AlltoAll is no faster than the NICs let it, whatever the shape") {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72", "l40s-8"}) {
    const topology::NodeSpec node = node_named(name);
    const double per_gpu =
        std::min(node.nic, node.pcie).value *
        std::min(1.0, static_cast<double>(node.nics) / static_cast<double>(node.gpus));
    for (const std::int64_t nodes : {2, 4, 16})
      for (const std::int64_t in_node : {std::int64_t{1}, std::int64_t{2}, node.gpus}) {
        const GroupShape shape{nodes * in_node, nodes, in_node, 1};
        const auto n = static_cast<double>(shape.ranks), l = static_cast<double>(in_node);
        // Fewer members than NICs may each use the NICs that lie idle.
        const double share = name == std::string("l40s-8") && in_node < node.gpus ? 2.0 : 1.0;
        INFO(name << " " << nodes << " x " << in_node);
        CHECK(time_on(node, A2A, 4_GiB, shape).busbw.value <=
              share * per_gpu * (n - 1) / (n - l) * 1.001);
      }
  }
}

TEST_CASE("AlltoAll between nodes holds the channels that its peers share, not one peer's two") {
  const topology::NodeSpec box = node_named("dgx-h100");
  CHECK(time_on(box, A2A, 64_MiB, whole(box, 4)).ctas == 16);
  CHECK(time_on(box, A2A, 64_MiB, {2, 2, 1, 1}).ctas == 2);
  CHECK(time_on(box, CollectiveKind::send_receive, 64_MiB, {2, 2, 1, 1}).ctas == 2);
}

TEST_CASE("faster wires never slow a rack down") {
  NcclOverrides pinned;
  pinned.algorithm = Algorithm::ring;
  pinned.protocol = Protocol::simple;
  for (const auto kind : {AR, CollectiveKind::all_gather, A2A, CollectiveKind::send_receive})
    for (const std::int64_t racks : {1, 2, 8})
      for (const Bytes bytes : {64_KiB, 16_MiB, 4_GiB}) {
        const topology::NodeSpec rack = node_named("gb200-nvl72");
        topology::NodeSpec wider = rack;
        wider.nvlink_per_link = 2.0 * wider.nvlink_per_link;
        wider.gpu.nvlink = 2.0 * wider.gpu.nvlink;
        wider.nic = 2.0 * wider.nic;
        wider.pcie = 2.0 * wider.pcie;
        const bool pair = kind == CollectiveKind::send_receive;
        const GroupShape shape =
            pair ? GroupShape{2, std::min<std::int64_t>(2, racks), racks > 1 ? 1 : 2, 1}
                 : whole(rack, racks);
        INFO(static_cast<int>(kind) << " over " << racks << " racks, " << bytes.value);
        CHECK(time_on(wider, kind, bytes, shape, "2.28.9", pinned).duration <=
              time_on(rack, kind, bytes, shape, "2.28.9", pinned).duration);
      }
}

TEST_CASE("domains of 8 to 576: more GPUs in one domain never make AlltoAll over 576 slower") {
  Duration before = Duration::max();
  for (const std::int64_t gpus : {8, 16, 32, 64, 72, 144, 288, 576}) {
    const topology::NodeSpec node = topology::with_gpus(node_named("gb200-nvl72"), gpus, "test");
    const std::int64_t nodes = 576 / gpus;
    const Duration now = time_on(node, A2A, 1_GiB, {nodes * gpus, nodes, gpus, 1}).duration;
    INFO(gpus);
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("AlltoAll over racks moves each pair's part once, on rails") {
  const topology::NodeSpec rack = topology::with_gpus(node_named("gb200-nvl72"), 64, "test");
  const auto cluster =
      topology::Cluster::build(rack, 4, catalogue().fabric(toml_text("quantum-2", "test")));
  const topology::StaticRouter router(cluster);
  const LinkLoads loads(cluster, router);
  std::vector<std::int64_t> ranks(256);
  std::iota(ranks.begin(), ranks.end(), 0);
  double up = 0.0, down = 0.0, spine_up = 0.0, spine_down = 0.0;
  for (const LinkLoad& load : loads.of({A2A, Algorithm::p2p}, ranks)) {
    const topology::Link& link = cluster.links()[load.link];
    const auto from = cluster.devices()[link.from].kind, to = cluster.devices()[link.to].kind;
    if (from == topology::DeviceKind::nic) up += load.bytes_per_byte;
    if (to == topology::DeviceKind::nic && link.kind == topology::LinkKind::injection)
      down += load.bytes_per_byte;
    if (to == topology::DeviceKind::spine) spine_up += load.bytes_per_byte;
    if (from == topology::DeviceKind::spine) spine_down += load.bytes_per_byte;
  }
  CHECK(up / 2 == Approx(256 * 192.0 / 256).epsilon(0.01));  // PCIe and cable
  CHECK(down == Approx(256 * 192.0 / 256).epsilon(0.01));
  CHECK(spine_up == Approx(spine_down).epsilon(0.01));
  // Racks 0 and 1 share their leaves, and racks 2 and 3: 128 of the other 192 are beyond a spine.
  CHECK(spine_up == Approx(256 * 128.0 / 256).epsilon(0.01));
}
