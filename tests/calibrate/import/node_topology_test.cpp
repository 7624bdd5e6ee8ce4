#include "calibrate/import/node_topology.hpp"

#include <algorithm>

#include "calibrate/import/topology_matrix.hpp"
#include "calibrate/import/topology_xml.hpp"
#include "sim/network/search/graph.hpp"
#include "tests/calibrate/mutations.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;
using Catch::Contains;

namespace {

std::string toml_of(const NodeTopology& topology, const std::string& gpu, Ignored& ignored) {
  const NodeImport import{.name = "mine", .gpu = gpu, .date = "2026-11-21", .node_bandwidth = {}};
  return node_toml(topology, import, catalogue(), ignored);
}

topology::NodeSpec node_of(const NodeTopology& topology, const std::string& gpu = {}) {
  Ignored ignored;
  const std::string path = std::string(STEPCAST_BINARY_DIR) + "/imported-node.toml";
  write_bytes(path, toml_of(topology, gpu, ignored));
  const sim::Catalogue fresh(catalogue().directory());  // the shared one has read an earlier file
  topology::NodeSpec node = fresh.node(sim::toml_text(path, "test"));
  node.reference = {};  // an imported node is no entry of the catalogue
  return node;
}

topology::NodeSpec imported(const std::string& name, const std::string& gpu = {}) {
  Ignored ignored;
  return node_of(read_topology(fixture(name), ignored), gpu);
}

topology::NodeSpec known(const std::string& name) {
  topology::NodeSpec node = catalogue().node(sim::toml_text(name, "test"));
  node.name = "mine";
  node.reference = {};
  return node;
}

NodeTopology xml(const std::string& text) {
  Ignored ignored;
  return parse_topology_xml("damaged", text, ignored);
}

NodeTopology matrix(const std::string& text) {
  Ignored ignored;
  return parse_topology_matrix(parse_text("damaged", text), ignored);
}

std::string all_replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("NCCL's topology of a DGX is the catalogue's node, and NCCL's graph on it") {
  for (const char* name : {"dgx-1v", "dgx-a100", "dgx-h100"}) {
    INFO(name);
    const auto mine = imported(std::string(name) + ".xml"), theirs = known(name);
    CHECK(mine == theirs);
    const sim::GroupShape four_nodes{.ranks = 32, .nodes = 4, .ranks_per_node = 8};
    const auto a = sim::nccl_machine(mine, four_nodes), b = sim::nccl_machine(theirs, four_nodes);
    CHECK(a.ring.channels == b.ring.channels);
    CHECK(a.ring.between_nodes == b.ring.between_nodes);
    CHECK(a.nic_bandwidth == b.nic_bandwidth);
  }
}

TEST_CASE("nvidia-smi's matrix of a DGX and the GPU's name are the catalogue's node") {
  CHECK(imported("dgx-1v.topo", "v100-sxm2-32gb") == known("dgx-1v"));
  CHECK(imported("dgx-a100.topo", "a100-sxm4-80gb") == known("dgx-a100"));
  CHECK(imported("dgx-h100.topo", "h100") == known("dgx-h100"));
  CHECK_THROWS_WITH(imported("dgx-h100.topo"), Contains("dgx-h100.topo:1") && Contains("--gpu"));
}

TEST_CASE("a virtual machine hides the switches: how many is the catalogue's") {
  const auto node = imported("hgx-h200-vm.xml");
  CHECK(node.nvswitches == 4);
  CHECK(node.gpu.name == "h200-sxm-141gb");
  CHECK(node.nics == 8);
}

TEST_CASE("a cloud's own file shows no NVLinks and no speeds: those are the catalogue's") {
  const std::string cloud = R"(<system version="1"><cpu numaid="0" vendor="GenuineIntel">
    <pci busid="ffff:ff:01.0" class="0x060400">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci></cpu></system>)";
  const auto node = node_of(xml(cloud), "h100");
  CHECK((node.gpus == 1 && node.nics == 1 && node.pcie_switches == 1 && node.sockets == 1));
  CHECK(node.kind == topology::NodeKind::nvswitch);
  CHECK(node.nic == 400_Gbps);
  CHECK_THROWS_WITH(node_of(xml(cloud)), Contains("--gpu"));
}

TEST_CASE("a chip with fewer NVLinks is slower by them") {
  // Every GPU shows NV8 instead of NV12: 8 x 25 GB/s.
  const auto text = all_replaced(read_bytes(fixture("dgx-a100.topo")), "NV12", "NV8");
  const auto node = node_of(matrix(text), "a100-sxm4-80gb");
  CHECK(node.kind == topology::NodeKind::nvswitch);
  CHECK(node.gpu.nvlink_links == 8);
  CHECK(node.gpu.nvlink == 200_GBps);
}

TEST_CASE("four GPUs that are joined directly are a mesh, none joined a PCIe node") {
  const std::string four =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
      "GPU0\t X \tNV4\tNV4\tNV4\t0\nGPU1\tNV4\t X \tNV4\tNV4\t0\n"
      "GPU2\tNV4\tNV4\t X \tNV4\t0\nGPU3\tNV4\tNV4\tNV4\t X \t0\n";
  const auto mesh = node_of(matrix(four), "a100-sxm4-40gb");
  CHECK(mesh.kind == topology::NodeKind::hybrid_cube_mesh);
  CHECK((mesh.gpus == 4 && mesh.nvlinks[0][3] == 4));
  const auto pcie = node_of(matrix(all_replaced(four, "NV4", "PHB")), "a100-sxm4-40gb");
  CHECK(pcie.kind == topology::NodeKind::pcie);
}

TEST_CASE("every key of an imported node says where it comes from") {
  Ignored ignored;
  const auto text = toml_of(read_topology(fixture("dgx-a100.xml"), ignored), "", ignored);
  CHECK_THAT(text, Contains("nics = \"imported from dgx-a100.xml (NCCL topology), 2026-11-21\""));
  CHECK_THAT(text, Contains("nic_latency = \"not in dgx-a100.xml; as node dgx-a100 of the catal"));
  CHECK_THAT(ignored.text("f"), Contains("f:5: ignored a NIC that shares no PCIe switch"));
}

namespace {

/// A GPU and a NIC under one switch; `nic` are the attributes and children of the NIC.
std::string small_node(const std::string& nic) {
  return R"(<system version="1"><cpu numaid="0" vendor="GenuineIntel">
    <pci busid="ffff:ff:01.0" class="0x060400">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" )" +
         nic + "</pci></pci></cpu></system>";
}

struct Imported {
  topology::NodeSpec node;
  std::string notes, text;
};

Imported with_nic(const std::string& nic, const std::string& gpu = "a100-sxm4-80gb") {
  Ignored ignored;
  Imported out;
  const NodeTopology topology = xml(small_node(nic));
  out.text = toml_of(topology, gpu, ignored);
  out.notes = ignored.text("f");
  out.node = node_of(topology, gpu);
  return out;
}

}  // namespace

TEST_CASE("an NVLink of a GPU to itself is left aside") {
  const std::string mesh = read_bytes(fixture("dgx-1v.xml"));
  const std::size_t link = mesh.find("<nvlink");
  const std::string busid = "0000:20:00.0";  // of the first GPU
  REQUIRE(mesh.find("busid=\"" + busid) < link);
  Ignored ignored;
  const std::string with_loop = mesh.substr(0, link) + "<nvlink target=\"" + busid +
                                "\" count=\"2\" tclass=\"0x030200\"/>" + mesh.substr(link);
  const auto topology = parse_topology_xml("damaged", with_loop, ignored);
  CHECK(node_of(topology) == known("dgx-1v"));
  CHECK_THAT(ignored.text("f"), Contains("an NVLink of a GPU to itself"));
}

TEST_CASE("AWS's PCI vendor is EFA, 100 Gbit/s a port where the file shows no speed") {
  const auto efa = with_nic(R"(class="0x020000" vendor="0x1d0f" device="0xefa0">)");
  CHECK(efa.node.network == topology::Network::efa);
  CHECK(efa.node.nic == 100_Gbps);
  CHECK_THAT(efa.notes, Contains("12.5 GB/s each is assumed, as a port of EFA"));
  CHECK_THAT(efa.text, Contains("nic = \"not in damaged; assumed, as a port of EFA\""));
  const auto named = with_nic(R"(class="0x020000" vendor="0x1d0f" device="0xefa1"><nic>
      <net name="rdmap82s0" dev="0" speed="400000"/></nic>)");
  CHECK((named.node.network == topology::Network::efa && named.node.nic == 400_Gbps));
  CHECK_THAT(named.notes, !Contains("assumed"));
}

TEST_CASE("a NIC of a RoCE name or on an Ethernet port is no InfiniBand") {
  for (const char* name : {"rocep23s0f0", "mlx5_bond_0", "bnxt_re0", "mlx5_3"}) {
    INFO(name);
    const auto roce = with_nic(R"(class="0x020000"><nic><net name=")" + std::string(name) +
                               R"(" dev="0" speed="200000"/></nic>)");
    CHECK(roce.node.network == topology::Network::roce);
    CHECK_THAT(roce.notes, !Contains("assumed"));
  }
  const auto silent = with_nic(R"(class="0x020000">)");
  CHECK(silent.node.network == topology::Network::roce);
  CHECK_THAT(silent.notes, Contains("roce is assumed, as they are Ethernet; efa on AWS"));
  CHECK_THAT(silent.notes, Contains("25.0 GB/s each is assumed, as in node dgx-a100"));
  CHECK(with_nic(R"(class="0x020700">)").node.network == topology::Network::infiniband);
}

TEST_CASE("nvidia-smi's matrix knows its NICs by rdma-core's names, and says what it assumes") {
  const std::string table = all_replaced(read_bytes(fixture("dgx-a100.topo")), "mlx5_", "rocep5s");
  CHECK(node_of(matrix(table), "a100-sxm4-80gb").network == topology::Network::roce);
  Ignored ignored;
  toml_of(read_topology(fixture("dgx-a100.topo"), ignored), "a100-sxm4-80gb", ignored);
  CHECK_THAT(ignored.text("f"), Contains("NICs speak: infiniband is assumed, as in node dgx-a100"));
}

TEST_CASE("a GPU that no node of the catalogue holds is put into its usual one") {
  Ignored ignored;
  const auto text =
      toml_of(read_topology(fixture("dgx-h100.topo"), ignored), "h100-sxm-96gb-hbm2e", ignored);
  CHECK_THAT(text, Contains("gpu = \"h100-sxm-96gb-hbm2e\""));
  CHECK_THAT(ignored.text("f"), Contains("it is put into dgx-h100"));
}

TEST_CASE("a topology that contradicts itself or the GPU is refused with its line") {
  const std::string mesh = read_bytes(fixture("dgx-1v.xml"));
  const auto swapped = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK_THROWS_WITH(xml(swapped(mesh, "count=\"1\"", "count=\"2\"")), Contains("disagree"));
  CHECK_THROWS_WITH(xml(swapped(mesh, "count=\"1\"", "count=\"x\"")), Contains("damaged:6"));
  CHECK_THROWS_WITH(xml(swapped(mesh, "target=\"0000:21", "target=\"0000:99")),
                    Contains("where no other GPU is"));
  CHECK_THROWS_WITH(xml(mesh.substr(0, 900)), Contains("damaged:") && Contains("not XML"));
  CHECK_THROWS_WITH(xml("<graphs version=\"1\"/>"), Contains("damaged:1: is no NCCL topology"));
  CHECK_THROWS_WITH(xml(swapped(mesh, "version=\"1\"", "version=\"7\"")), Contains("version '7'"));
  CHECK_THROWS_WITH(node_of(xml(mesh), "a100-sxm4-80gb"), Contains("--gpu"));

  const std::string table = read_bytes(fixture("dgx-1v.topo"));
  CHECK_THROWS_WITH(matrix(swapped(table, "NV2", "NV1")), Contains("back it is"));
  CHECK_THROWS_WITH(matrix(swapped(table, "NV2", "NVX")), Contains("damaged:3: unknown cell"));
  CHECK_THROWS_WITH(matrix(table.substr(0, table.find("GPU5\tSYS"))), Contains("GPU5 is missing"));
  CHECK_THROWS_WITH(node_of(matrix(all_replaced(table, "NV2", "NV4")), "v100-sxm2-32gb"),
                    Contains("NVLinks at a GPU"));
}

TEST_CASE("damaged topologies are refused, never a crash") {
  for (const char* name : {"dgx-1v.xml", "dgx-h100.xml"})
    survives_damage(read_bytes(fixture(name)), [](const std::string& text) {
      Ignored ignored;
      toml_of(xml(text), "", ignored);
    });
  for (const char* name : {"dgx-1v.topo", "dgx-a100.topo"})
    survives_damage(read_bytes(fixture(name)), [&](const std::string& text) {
      Ignored ignored;
      toml_of(matrix(text),
              std::string(name) == "dgx-1v.topo" ? "v100-sxm2-32gb" : "a100-sxm4-80gb", ignored);
    });
}
