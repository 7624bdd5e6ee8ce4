#include "topology/cluster.hpp"

#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/topology/machines.hpp"
#include "topology/node_layout.hpp"

namespace stepcast::topology {
namespace {

using std::int64_t;

int64_t nvlinks_of(const Cluster& cluster, int64_t gpu) {
  int64_t sum = 0;
  for (const LinkId link : cluster.nvlink_out(gpu)) sum += cluster.links()[link].count;
  return sum;
}

BytesPerSecond nvlink_of(const Cluster& cluster, int64_t gpu) {
  BytesPerSecond sum;
  for (const LinkId link : cluster.nvlink_in(gpu)) sum += cluster.links()[link].bandwidth;
  return sum;
}

TEST_CASE("every GPU of a DGX has all its NVLinks, per direction 150, 300 and 450 GB/s") {
  for (auto [node, links, bandwidth] :
       {std::tuple{dgx_1v(), 6, 150_GBps}, std::tuple{dgx_a100(), 12, 300_GBps},
        std::tuple{dgx_h100(), 18, 450_GBps}}) {
    const auto cluster = Cluster::build(node, 2, rail_optimized());
    for (int64_t gpu = 0; gpu < cluster.num_gpus(); ++gpu) {
      CHECK(nvlinks_of(cluster, gpu) == links);
      CHECK(nvlink_of(cluster, gpu) == bandwidth);
      for (const LinkId link : cluster.nvlink_out(gpu))
        CHECK(cluster.links()[link].from == cluster.gpu(gpu));
    }
  }
}

TEST_CASE("NVLinks spread over the NVSwitches as in the DGX") {
  CHECK(nvlinks_per_switch(12, 6) == std::vector<int64_t>{2, 2, 2, 2, 2, 2});
  CHECK(nvlinks_per_switch(18, 4) == std::vector<int64_t>{5, 4, 4, 5});
  CHECK(nvlinks_per_switch(18, 2) == std::vector<int64_t>{9, 9});
  CHECK(nvlinks_per_switch(18, 18) == std::vector<int64_t>(18, 1));
}

TEST_CASE("GPUs and NICs share PCIe switches as in the DGX") {
  const auto shares = [](const NodeSpec& node, int64_t gpu) {
    const auto cluster = Cluster::build(node, 1, fat_tree());
    std::set<std::string> beside;
    for (const Link& up : cluster.links())
      if (up.kind == LinkKind::pcie && up.from == cluster.gpu(gpu))
        for (const Link& down : cluster.links())
          if (down.kind == LinkKind::pcie && down.from == up.to)
            beside.insert(cluster.name_of(down.to).substr(6));
    return beside;
  };
  CHECK(shares(dgx_1v(), 5) == std::set<std::string>{"gpu4", "gpu5", "nic2", "cpu1"});
  CHECK(shares(dgx_a100(), 5) == std::set<std::string>{"gpu4", "gpu5", "nic4", "nic5", "cpu1"});
  CHECK(shares(dgx_h100(), 5) == std::set<std::string>{"gpu5", "nic5", "cpu1"});
}

TEST_CASE("ids, indexes and names agree") {
  const auto cluster = Cluster::build(dgx_1v(), 40, rail_optimized());
  CHECK(cluster.num_gpus() == 320);
  for (int64_t g = 0; g < cluster.num_gpus(); ++g) {
    const Device& device = cluster.devices()[cluster.gpu(g)];
    REQUIRE(device == Device{.kind = DeviceKind::gpu, .node = g / 8, .index = g % 8});
  }
  for (int64_t n = 0; n < 40; ++n)
    for (int64_t j = 0; j < 4; ++j) {
      REQUIRE(cluster.devices()[cluster.nic(n, j)] ==
              Device{.kind = DeviceKind::nic, .node = n, .index = j});
      const Link& up = cluster.links()[cluster.nic_up(n, j)];
      const Link& down = cluster.links()[cluster.nic_down(n, j)];
      REQUIRE(up.from == cluster.nic(n, j));
      REQUIRE(down.to == cluster.nic(n, j));
      REQUIRE(cluster.devices()[up.to].kind == DeviceKind::leaf);
      REQUIRE(down.from == up.to);
    }
  CHECK(cluster.name_of(cluster.gpu(29)) == "node3/gpu5");
  CHECK(cluster.name_of(cluster.links()[cluster.nic_up(0, 2)].to) == "leaf4");  // 2 units a rail
  std::vector<int64_t> nics;
  for (int64_t g = 0; g < 8; ++g) nics.push_back(cluster.nic_of_gpu(g));
  CHECK(nics == std::vector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK_THROWS_AS(cluster.gpu(320), BrokenPromise);
  CHECK_THROWS_AS(cluster.nic(0, 4), BrokenPromise);
}

TEST_CASE("a link is private exactly when one GPU alone can load it") {
  const auto h100 = Cluster::build(dgx_h100(), 2, rail_optimized());
  const auto dgx1 = Cluster::build(dgx_1v(), 2, rail_optimized());
  for (const LinkId link : h100.nvlink_out(13)) CHECK(h100.private_gpu(link) == 13);
  for (const LinkId link : h100.nvlink_in(13)) CHECK(h100.private_gpu(link) == 13);
  for (const LinkId link : dgx1.nvlink_out(3)) CHECK(dgx1.private_gpu(link) == std::nullopt);
  CHECK(h100.private_gpu(h100.nic_up(1, 5)) == 13);
  CHECK(h100.private_gpu(h100.nic_down(0, 0)) == 0);
  CHECK(dgx1.private_gpu(dgx1.nic_up(1, 2)) == std::nullopt);  // two GPUs to a NIC
  for (LinkId link = 0; link < h100.links().size(); ++link) {
    const LinkKind kind = h100.links()[link].kind;
    if (kind == LinkKind::fabric || kind == LinkKind::socket)
      REQUIRE(h100.private_gpu(link) == std::nullopt);
    REQUIRE(h100.private_gpu(link) == h100.private_gpu(reverse(link)));
  }
}

TEST_CASE("one node has no fabric") {
  const auto cluster = Cluster::build(dgx_h100(), 1, rail_optimized());
  CHECK(cluster.count(DeviceKind::leaf) == 0);
  CHECK(cluster.num_tiers() == 0);
  CHECK_THROWS_AS(cluster.nic_up(0, 0), BrokenPromise);
}

TEST_CASE("a cluster can be moved") {
  auto first = Cluster::build(dgx_h100(), 2, rail_optimized());
  const auto links = first.links().size();
  const Cluster second = std::move(first);
  CHECK(second.links().size() == links);
}

int64_t lines_with(const std::string& text, const std::string& part) {
  std::istringstream in(text);
  int64_t count = 0;
  for (std::string line; std::getline(in, line);)
    if (line.find(part) != std::string::npos) ++count;
  return count;
}

TEST_CASE("graphviz draws every device and cable of one node, and of a cluster when asked") {
  for (const int64_t nodes : {1, 4}) {
    const auto cluster = Cluster::build(dgx_h100(), nodes, rail_optimized());
    const std::string text = cluster.graphviz(nodes > 1);
    CHECK(lines_with(text, "shape=") == static_cast<int64_t>(cluster.devices().size()));
    CHECK(lines_with(text, "--") == static_cast<int64_t>(cluster.links().size() / 2));
    CHECK(lines_with(text, "5 x 25.0 GB/s") == nodes * 8 * 2);
    CHECK(lines_with(text, "subgraph cluster_") == (nodes == 1 ? 1 : nodes + 2));  // leaf, spine
  }
}

TEST_CASE("graphviz writes a name as text, whatever is in it") {
  auto node = dgx_h100();
  node.name = "a\"]; b [label=\\\n\033";
  const std::string text = Cluster::build(node, 1, rail_optimized()).graphviz();
  CHECK(lines_with(text, R"(label="1 x a\"]; b [label=\\";)") == 1);
}

TEST_CASE("graphviz draws one node of a large cluster, and the others and its tiers as counts") {
  const auto cluster = Cluster::build(dgx_h100(), 512, rail_optimized());
  const std::string text = cluster.graphviz();
  // 8 + 4 + 8 + 2 + 8 devices, the other nodes, leaf, spine, core
  CHECK(lines_with(text, "shape=") == 30 + 1 + 3);
  CHECK(lines_with(text, "\"511 x dgx-h100\"") == 1);
  CHECK(lines_with(text, "\"128 x leaf\"") == 1);
  CHECK(lines_with(text, "\"64 x core\"") == 1);
  CHECK(lines_with(text, "\"4096 x 50.0 GB/s\"") == 2);
  CHECK(lines_with(text, "subgraph cluster_") == 1 + 3);
}

TEST_CASE("graphviz never draws more than 40 boxes unasked") {
  NodeSpec wide = dgx_h100();
  wide.gpus = 16, wide.nics = 16, wide.pcie_switches = 16;
  for (const int64_t nodes : {1, 2, 300}) {
    const std::string text = Cluster::build(wide, nodes, rail_optimized()).graphviz();
    INFO(text);
    CHECK(lines_with(text, "shape=") <= 40);
    CHECK(lines_with(text, "\"16 x gpu\"") == 1);
  }
}

TEST_CASE("describe shows tiers, cables, links, injection and bisection with units") {
  const std::string text = describe(Cluster::build(dgx_h100(), 256, rail_optimized()));
  INFO(text);
  for (const char* line :
       {"256 x dgx-h100, each 8 x GPU: 2048 GPUs", "2 tiers of 64-port switches",
        "leaf                64          2048        2048",
        "spine               32          2048           0",
        "injection of a node     400 GB/s per direction, 50.0 GB/s per GPU",
        "bisection of the nodes  51.2 TB/s per direction, 100 % of non-blocking"})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("slow cables are one node's, to and from its leaves, and nothing else changes") {
  const Cluster whole = Cluster::build(dgx_h100(), 4, rail_optimized());
  const Cluster slow = whole.with_slow_cables(2, 4.0);
  std::set<LinkId> slowed;
  for (int64_t nic = 0; nic < whole.node().nics; ++nic)
    slowed.insert({whole.nic_up(2, nic), whole.nic_down(2, nic)});
  for (LinkId l = 0; l < whole.links().size(); ++l) {
    Link expected = whole.links()[l];
    if (slowed.contains(l)) expected.bandwidth = expected.bandwidth / 4.0;
    CHECK(slow.links()[l] == expected);
  }
  CHECK(slow.node().nic == whole.node().nic);
}

}  // namespace
}  // namespace stepcast::topology
