// NCCL's variables as a user writes them: what they mean, what they refuse, what they leave.
#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/network/nccl/variables.hpp"
#include "tests/session.hpp"
#include "tests/sim/nccl_machines.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using topology::NcclGeneration;
using workloads::CollectiveKind;

namespace {

NcclOverrides set(const std::string& name, const std::string& value) {
  return nccl_overrides({{name, value, "my.toml:7"}});
}

void check(const std::string& name, const std::string& value, const std::string& version) {
  check_nccl_variables({{name, value, "my.toml:7"}}, tuning_of(version));
}

CollectiveTimes times(const NcclOverrides& overrides, const std::string& version = "2.20",
                      NcclGeneration architecture = NcclGeneration::hopper) {
  return {dgx(architecture), catalogue().nccl(version), {}, overrides};
}

const NcclMachine h100s = machine_of(NcclGeneration::hopper, whole_nodes(4));

NcclOption chosen(const NcclOverrides& overrides, CollectiveKind kind,
                  const std::string& version = "2.28.9") {
  return nccl_choice(tuning_of(version), h100s, {kind, 64_MiB}, overrides);
}

}  // namespace

TEST_CASE(
    "a pinned algorithm or protocol is taken; one that cannot serve leaves Ring before 2.24") {
  const NcclTuning t = tuning_of("2.20");
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(256));
  CHECK(
      nccl_choice(t, on, {AG, 64_MiB}, {.algorithm = {}, .protocol = Protocol::simple}).protocol ==
      Protocol::simple);
  CHECK(
      nccl_choice(t, on, {AR, 64_MiB}, {.algorithm = Algorithm::ring, .protocol = {}}).algorithm ==
      Algorithm::ring);
  CHECK(
      nccl_choice(t, on, {AG, 64_MiB}, {.algorithm = Algorithm::tree, .protocol = {}}).algorithm ==
      Algorithm::ring);
}

TEST_CASE("a list of algorithms leaves those, with a caret all others, in any case") {
  const NcclOverrides two = set("NCCL_ALGO", "Ring,tree");
  CHECK(two.allows(AR, Algorithm::ring));
  CHECK(two.allows(AR, Algorithm::tree));
  CHECK_FALSE(two.allows(AR, Algorithm::nvls_tree));
  const NcclOverrides rest = set("NCCL_ALGO", "^NVLSTree,nvls");
  CHECK(rest.allows(AG, Algorithm::ring));
  CHECK(rest.allows(AG, Algorithm::collnet_direct));
  CHECK_FALSE(rest.allows(AG, Algorithm::nvls));
  CHECK(chosen({}, AR).algorithm == Algorithm::nvls_tree);
  CHECK(chosen(rest, AR).algorithm != Algorithm::nvls_tree);
}

TEST_CASE("lists by function touch theirs alone, after one for all") {
  const NcclOverrides one = set("NCCL_ALGO", "allreduce:tree");
  CHECK(chosen(one, AR).algorithm == Algorithm::tree);
  CHECK(chosen(one, AG) == chosen({}, AG));
  const NcclOverrides both = set("NCCL_PROTO", "LL;AllGather:^LL");
  CHECK(chosen(both, RS).protocol == Protocol::ll);
  CHECK(chosen(both, AG).protocol != Protocol::ll);
}

TEST_CASE("lists by function are known since 2.24") {
  CHECK_NOTHROW(check("NCCL_ALGO", "allreduce:tree", "2.24"));
  CHECK_NOTHROW(check("NCCL_ALGO", "tree", "2.20"));
  CHECK_THROWS_WITH(check("NCCL_ALGO", "allreduce:tree", "2.23"), Catch::Contains("2.24"));
}

TEST_CASE("an unknown word, function or variable is refused with a suggestion") {
  CHECK_THROWS_WITH(set("NCCL_ALGO", "Rign"), Catch::Contains("Ring"));
  CHECK_THROWS_WITH(set("NCCL_ALGO", "allredcue:ring"), Catch::Contains("AllReduce"));
  CHECK_THROWS_WITH(set("NCCL_ALGO", ""), Catch::Contains("knows no ''"));
  CHECK_THROWS_WITH(set("NCCL_ALGO", "ring;tree"), Catch::Contains("names no function"));
  CHECK_THROWS_WITH(set("NCCL_PROTO", "LL182"), Catch::Contains("LL128"));
  CHECK_THROWS_WITH(set("NCCL_ALOG", "Ring"), Catch::Contains("NCCL_ALGO"));
  CHECK_THROWS_WITH(set("NCCL_CROSS_NIC", "1"), Catch::Contains("changes nothing"));
  CHECK_THROWS_WITH(set("NCCL_CTA_POLICY", "ONE"), Catch::Contains("ZERO"));
  CHECK_THROWS_AS(set("NCCL_MAX_CTAS", "many"), InputError);
  CHECK_THROWS_AS(set("NCCL_MAX_CTAS", "0"), InputError);
  CHECK_THROWS_AS(set("NCCL_MAX_CTAS", "65"), InputError);
  CHECK_THROWS_AS(set("NCCL_NVLS_ENABLE", "yes"), InputError);
  try {
    set("NCCL_ALGO", "Rign");
  } catch (const InputError& error) {
    CHECK(error.where() == "my.toml:7");
  }
}

TEST_CASE("what leaves nothing stops NCCL since 2.24 and runs Ring before") {
  const NcclOverrides tree = set("NCCL_ALGO", "Tree");
  CHECK(chosen(tree, AG, "2.20").algorithm == Algorithm::ring);
  CHECK(chosen(tree, AG, "2.23").algorithm == Algorithm::ring);
  CHECK_THROWS_WITH(chosen(tree, AG, "2.24"),
                    Catch::Contains("my.toml:7") && Catch::Contains("all_gather"));
  CHECK_THROWS_AS(chosen(set("NCCL_ALGO", "NVLS"), AR, "2.28.9"), InputError);  // 4 nodes
}

TEST_CASE("CollNet without SHARP leaves Ring and Tree to AllReduce before 2.24") {
  const NcclOverrides collnet = set("NCCL_ALGO", "CollnetDirect");
  bool tree = false;
  for (const NcclOption& o : nccl_options(tuning_of("2.20"), h100s, {AR, 1_MiB}, collnet))
    tree = tree || o.algorithm == Algorithm::tree;
  CHECK(tree);
  CHECK_THROWS_AS(chosen(collnet, AR, "2.24"), InputError);
}

TEST_CASE("warnings say what settings do not do") {
  const auto node = dgx(NcclGeneration::hopper);
  const auto warnings = [&](const NcclOverrides& o, const std::string& version) {
    return nccl_warnings(tuning_of(version), node, 4, o);
  };
  CHECK(warnings({}, "2.20").empty());
  CHECK(warnings(set("NCCL_ALGO", "Tree"), "2.20").size() == 1);
  CHECK(warnings(set("NCCL_ALGO", "Tree"), "2.24").empty());  // an error there
  CHECK(warnings(set("NCCL_COLLNET_ENABLE", "1"), "2.20").size() == 1);
  NcclOverrides sharp;
  sharp.fabric_has_sharp = true;
  CHECK(warnings(sharp, "2.20").size() == 1);
  sharp.collnet = true;
  CHECK(warnings(sharp, "2.20").empty());
  CHECK(warnings(set("NCCL_CTA_POLICY", "ZERO"), "2.27").size() == 1);
  CHECK(warnings(set("NCCL_PAT_ENABLE", "1"), "2.20").size() == 1);
  CHECK(
      nccl_warnings(tuning_of("2.20"), dgx(NcclGeneration::ampere), 1, set("NCCL_NVLS_ENABLE", "1"))
          .size() == 1);
}

TEST_CASE("SHARP runs where the fabric has it and NCCL_COLLNET_ENABLE asks for it") {
  NcclOverrides asked = set("NCCL_COLLNET_ENABLE", "1");
  CHECK_FALSE(planned_machine(dgx(NcclGeneration::hopper), whole_nodes(4), asked).sharp);
  asked.fabric_has_sharp = true;
  CHECK(planned_machine(dgx(NcclGeneration::hopper), whole_nodes(4), asked).sharp);
  CHECK_FALSE(planned_machine(dgx(NcclGeneration::hopper), whole_nodes(1), asked).sharp);
  asked.collnet = false;
  CHECK_FALSE(planned_machine(dgx(NcclGeneration::hopper), whole_nodes(4), asked).sharp);
}

TEST_CASE("without NVLS AllReduce in a node is a ring or tree") {
  CHECK(times({}).time_of(AR, 1_GiB, whole_nodes(1)).algorithm == Algorithm::nvls);
  const CollectiveTime off = times(set("NCCL_NVLS_ENABLE", "0")).time_of(AR, 1_GiB, whole_nodes(1));
  CHECK(off.algorithm == Algorithm::ring);
  CHECK(times(set("NCCL_NVLS_ENABLE", "2")).time_of(AR, 1_GiB, whole_nodes(1)).algorithm ==
        Algorithm::nvls);
}

TEST_CASE("without peer-to-peer a node is as slow as PCIe") {
  const CollectiveTime with = times({}).time_of(AG, 1_GiB, whole_nodes(1));
  const CollectiveTime without =
      times(set("NCCL_P2P_DISABLE", "1")).time_of(AG, 1_GiB, whole_nodes(1));
  CHECK(without.duration > 5 * with.duration);
}

TEST_CASE("fewer CTAs hold fewer SMs and take their share of the bandwidth away") {
  const auto ring = [](const char* most) {
    return times(nccl_overrides({{"NCCL_ALGO", "Ring", "t"},
                                 {"NCCL_PROTO", "Simple", "t"},
                                 {"NCCL_MAX_CTAS", most, "t"}}))
        .time_of(AG, 4_GiB, whole_nodes(1));
  };
  const CollectiveTime all = ring("24"), half = ring("12"), few = ring("6");
  CHECK(all.ctas == 24);
  CHECK(half.ctas == 12);
  CHECK(few.ctas == 6);
  CHECK(seconds(half.transfer) == Approx(2 * seconds(all.transfer)));
  CHECK(seconds(few.transfer) == Approx(4 * seconds(all.transfer)));
  CHECK(ring("64").duration == all.duration);
}

TEST_CASE("fewer CTAs share the NICs of several nodes no worse than in proportion") {
  const auto ring = [](const char* most) {
    return times(nccl_overrides({{"NCCL_ALGO", "Ring", "t"},
                                 {"NCCL_PROTO", "Simple", "t"},
                                 {"NCCL_MAX_NCHANNELS", most, "t"}}))
        .time_of(AG, 16_GiB, whole_nodes(8));
  };
  CHECK(ring("8").ctas == 8);
  CHECK(ring("8").duration > ring("16").duration);
  CHECK(seconds(ring("8").transfer) <= 2.001 * seconds(ring("16").transfer));
}

TEST_CASE("more CTAs hold more SMs and bring nothing") {
  const CollectiveTime usual =
      times(set("NCCL_NVLS_ENABLE", "0")).time_of(AR, 1_GiB, whole_nodes(1));
  const CollectiveTime more =
      times(nccl_overrides({{"NCCL_NVLS_ENABLE", "0", "t"}, {"NCCL_MIN_CTAS", "32", "t"}}))
          .time_of(AR, 1_GiB, whole_nodes(1));
  CHECK(usual.ctas == 24);
  CHECK(more.ctas == 32);
  CHECK(more.transfer == usual.transfer);
}

TEST_CASE("limits that contradict each other are refused, the narrower of two counts") {
  CHECK_THROWS_AS(nccl_overrides({{"NCCL_MIN_CTAS", "16", "t"}, {"NCCL_MAX_CTAS", "8", "t"}}),
                  InputError);
  const NcclOverrides both =
      nccl_overrides({{"NCCL_MAX_NCHANNELS", "12", "t"}, {"NCCL_MAX_CTAS", "8", "t"}});
  CHECK(both.most_ctas == 8);
}

TEST_CASE("channels between two peers are limited on their own") {
  const auto pair = [](const NcclOverrides& o) {
    return times(o).time_of(CollectiveKind::send_receive, 1_GiB, {2, 1, 2, 1});
  };
  const CollectiveTime usual = pair({});
  const CollectiveTime few = pair(set("NCCL_MAX_P2P_NCHANNELS", "4"));
  CHECK(usual.ctas == 16);
  CHECK(few.ctas == 4);
  CHECK(seconds(few.transfer) == Approx(4 * seconds(usual.transfer)));
  CHECK(pair(set("NCCL_MAX_CTAS", "4")).ctas == 16);
}

TEST_CASE("the copy engines gather and exchange in a node without a CTA since 2.28.3") {
  const NcclOverrides zero = set("NCCL_CTA_POLICY", "ZERO");
  for (const CollectiveKind kind : {AG, CollectiveKind::all_to_all}) {
    CHECK(times(zero, "2.27").time_of(kind, 64_MiB, whole_nodes(1)).ctas > 0);
    const CollectiveTime copied = times(zero, "2.28.3").time_of(kind, 64_MiB, whole_nodes(1));
    CHECK(copied.ctas == 0);
    CHECK(copied.algorithm == Algorithm::copy_engine);
    CHECK(times(zero, "2.28.9").time_of(kind, 64_MiB, whole_nodes(2)).ctas > 0);
  }
  for (const CollectiveKind kind : {AR, RS})
    CHECK(times(zero, "2.28.9").time_of(kind, 64_MiB, whole_nodes(1)).ctas > 0);
}

TEST_CASE("EFFICIENCY moves gathers of registered buffers to NVLS since 2.27") {
  const auto on = machine_of(NcclGeneration::hopper, whole_nodes(1));
  const NcclOverrides efficient =
      nccl_overrides({{"NCCL_CTA_POLICY", "EFFICIENCY", "t"}, {"registered_buffers", "true", "t"}});
  const auto choice = [&](const char* version, const NcclOverrides& o) {
    return nccl_choice(tuning_of(version), on, {AG, 1_GiB}, o).algorithm;
  };
  CHECK(choice("2.28.9", {}) == Algorithm::ring);
  CHECK(choice("2.28.9", efficient) == Algorithm::nvls);
  CHECK(choice("2.25", efficient) == Algorithm::ring);
  CHECK(choice("2.28.9", set("NCCL_CTA_POLICY", "EFFICIENCY")) == Algorithm::ring);
}

TEST_CASE("nothing pinned leaves measured curves in use, anything pinned does not") {
  CHECK_FALSE(NcclOverrides{}.pins_anything());
  NcclOverrides sharp;
  sharp.fabric_has_sharp = true;
  CHECK_FALSE(sharp.pins_anything());
  for (const auto& [name, value] : {std::pair{"NCCL_ALGO", "Ring"},
                                    {"NCCL_PROTO", "LL"},
                                    {"NCCL_MAX_CTAS", "8"},
                                    {"NCCL_NVLS_ENABLE", "0"},
                                    {"NCCL_P2P_DISABLE", "1"},
                                    {"NCCL_CTA_POLICY", "ZERO"}})
    CHECK(set(name, value).pins_anything());
  CHECK_FALSE(set("NCCL_NVLS_ENABLE", "2").pins_anything());
}
