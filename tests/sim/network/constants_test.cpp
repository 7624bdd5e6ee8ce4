#include "sim/network/constants.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/check.hpp"
#include "sim/scenario/catalogue.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;

namespace {

std::string shipped() {
  std::ifstream file(catalogue().directory() + "/network/fitted.toml");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What reading `text` as a file of constants says.
std::string refusal(const std::string& text) {
  const std::string path = "network_constants_test.toml";
  std::ofstream(path) << text;
  std::string message;
  try {
    read_network_constants(path);
  } catch (const InputError& error) {
    message = error.what();
  }
  std::remove(path.c_str());
  return message;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the shipped constants are physical") {
  const NetworkConstants& c = catalogue().network_constants();
  for (const GenerationConstants& g : c.generation) {
    CHECK(g.start > Duration(0));
    // NCCL plans NVLink at four fifths of what it carries.
    CHECK(g.ring_simple <= 1.25);
    CHECK(g.ring_ll < g.ring_ll128);
    CHECK(g.ring_ll128 < g.ring_simple);
    CHECK(g.p2p_nvlink <= 1.0);
  }
  CHECK(c.shared.nic_ll < c.shared.nic_ll128);
  CHECK(c.shared.nic_ll128 < c.shared.nic_ring);
  CHECK(c.shared.nic_ring <= 1.0);
  // AWS's transport costs more per hop than InfiniBand. Its plugin sends, receives and flushes on
  // p4d and writes on p5 (aws-ofi-nccl, net_flush_required): a message costs less there.
  CHECK(c.extra_hop(topology::Network::efa, NcclGeneration::hopper) >
        c.extra_hop(topology::Network::infiniband, NcclGeneration::hopper));
  CHECK(c.message(topology::Network::efa, NcclGeneration::hopper) <
        c.message(topology::Network::efa, NcclGeneration::ampere));
}

TEST_CASE("Blackwell's NICs are Hopper's, its NVLink and switches its own") {
  const NetworkConstants& c = catalogue().network_constants();
  for (const topology::Network network : {topology::Network::infiniband, topology::Network::efa})
    CHECK(c.extra_hop(network, NcclGeneration::blackwell) ==
          c.extra_hop(network, NcclGeneration::hopper));
  CHECK(c.of(NcclGeneration::blackwell).nvls_bus > 0.0);
  CHECK(c.of(NcclGeneration::hopper).nvls_bus == 0.0);
}

TEST_CASE("a file of constants must have every key and no other") {
  CHECK(refusal(shipped()).empty());
  CHECK_THAT(refusal(replaced(shipped(), "ring_step", "ring_stap")), Catch::Contains("ring_st"));
  CHECK_THAT(refusal(replaced(shipped(), "[shared]", "[shored]")), Catch::Contains("shared"));
  CHECK_THAT(refusal(replaced(shipped(), "[residuals]", "extra = 1\n[residuals]")),
             Catch::Contains("extra"));
}
