#include "sim/compare/changes.hpp"

#include <catch2/catch.hpp>

#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

Scenario scenario(const std::string& more, const std::string& node = "dgx-h100") {
  return read_scenario(read_toml("[model]\nname = \"llama2-7b\"\n[cluster]\nnode = \"" + node +
                                     "\"\nnodes = 2\n[batch]\nglobal = 32\n" + more,
                                 "a.toml"),
                       catalogue());
}

std::vector<Change> between(const Scenario& a, const Scenario& b) {
  return changes_between(documents_of(a, b));
}

}  // namespace

TEST_CASE("a scenario does not differ from itself, nor from what it resolves to") {
  const Scenario a = scenario("[plan]\npipeline = 2\n");
  CHECK(between(a, a).empty());
  CHECK(between(a, read_scenario(resolved_document(a), catalogue())).empty());
}

TEST_CASE("a key is one change, with what both say; what follows from it is none") {
  // Stages, who reduces when and micro-batches follow from the degree.
  const auto changes = between(scenario(""), scenario("[plan]\npipeline = 2\n"));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].key == "plan.pipeline");
  CHECK((changes[0].from == "1" && changes[0].to == "2"));
}

TEST_CASE("another entry of the catalogue is one change, whatever it brings") {
  const auto changes = between(scenario(""), scenario("", "dgx-a100"));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].key == "cluster.node");
  CHECK((changes[0].from == "dgx-h100" && changes[0].to == "dgx-a100"));
  CHECK(changes[0].keys.size() > 10);
}

TEST_CASE("keys of the same entries are changes of their own") {
  Scenario b = scenario("");
  b.node.nic = BytesPerSecond(25e9);
  b.software.host.launch_kernel = Duration(9'000'000);
  const auto changes = between(scenario(""), b);
  REQUIRE(changes.size() == 2);
  CHECK((changes[0].key == "software.launch_kernel" && changes[0].to == "9 us"));
  CHECK((changes[1].key == "cluster.node.nic" && changes[1].to == "25 GB/s"));
}

TEST_CASE("a table that only one of them has is one change") {
  const auto changes = between(scenario(""), scenario("[noise]\ngpu_sigma = 0.01\n"));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].key == "noise");
  CHECK((changes[0].from.empty() && changes[0].to == "[noise]"));
}

TEST_CASE("all changes made lead to the other scenario, and back") {
  const Scenario a = scenario("[plan]\ndata = \"zero3\"\nprefetch = 2\n");
  const Scenario b = scenario(
      "[plan]\ndata = \"zero1\"\ntensor = 4\nsequence_parallel = true\n[run]\nseed = 3\n"
      "[software]\nframework = \"megatron-core\"\n[noise]\nkernel_sigma = 0.01\n",
      "dgx-a100");
  const DocumentPair there = documents_of(a, b), back = documents_of(b, a);
  for (const DocumentPair& pair : {there, back}) {
    TomlValue document = pair.from;
    for (const Change& change : changes_between(pair)) make(change, document);
    CHECK(changes_between({document, pair.to}).empty());
    CHECK(
        between(read_scenario(document, catalogue()), read_scenario(pair.to, catalogue())).empty());
  }
}
