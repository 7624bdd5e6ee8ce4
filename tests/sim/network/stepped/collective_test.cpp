#include "sim/network/stepped/collective.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "tests/sim/stepped_machine.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;

namespace {

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                    CollectiveKind::reduce,         CollectiveKind::all_to_all,
                                    CollectiveKind::send_receive};

/// Steps of equal size one after another: the two forms are the same sum. Chains, trees and NVLS
/// pass chunks on, which the one-variable form only estimates.
bool equal_in_theory(const SteppedCollective& both, CollectiveKind kind) {
  const bool chained = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  return both.alone.algorithm == Algorithm::p2p || both.alone.algorithm == Algorithm::pat ||
         (both.alone.algorithm == Algorithm::ring && !chained);
}

const SteppedTerm& term(const SteppedCollective& both, const std::string& name) {
  for (const SteppedTerm& t : both.terms)
    if (t.name == name) return t;
  throw std::runtime_error("no term " + name);
}

/// Every claim that holds for any collective.
void check_terms(const SteppedCollective& both) {
  Duration one{}, stepped{};
  for (const SteppedTerm& t : both.terms) {
    one += t.one_variable;
    stepped += t.stepped;
    const double apart = seconds(t.stepped - t.one_variable) / seconds(both.one_variable);
    CHECK((std::abs(apart) < 1e-3 || !t.reason.empty()));
  }
  CHECK(std::abs((one - both.one_variable).count()) <= 100);  // roundings
  CHECK(std::abs((stepped - both.stepped).count()) <= 100);
  CHECK(both.busiest_use > 0);
  CHECK(both.busiest_use <= 1 + 1e-9);
  CHECK(both.step_ends.back() <= both.stepped);
}

}  // namespace

TEST_CASE("up to 64 GPUs rings, PAT, AlltoAll and pairs take the one-variable time within 1 %") {
  int compared = 0;
  for (const std::string node : {"dgx-1v", "dgx-a100", "dgx-h100"})
    for (const std::int64_t nodes : {1, 2, 3, 5, 8}) {
      const SteppedMachine machine(node, nodes, 1.0, only(Algorithm::ring));
      for (const CollectiveKind kind : kinds)
        for (const Bytes bytes : {4_KiB, 64_KiB, 1_MiB, 16_MiB, 256_MiB, 1_GiB}) {
          if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) continue;
          // GPUs of a cube mesh that no NVLink joins send through others.
          if (node == "dgx-1v" && kind != CollectiveKind::all_reduce &&
              kind != CollectiveKind::all_gather && kind != CollectiveKind::reduce_scatter)
            continue;
          const SteppedCollective both = machine.stepped(kind, bytes);
          INFO(node << " x " << nodes << ", " << static_cast<int>(kind) << ", " << bytes.value
                    << " bytes, " << seconds(both.one_variable) << " " << seconds(both.stepped));
          REQUIRE(equal_in_theory(both, kind));
          // A last loop that is not full has as many steps as the others.
          const SteppedTerm& hops = term(both, "hops");
          const double loops = seconds(hops.stepped - hops.one_variable);
          CHECK(loops >= -1e-9);
          CHECK(seconds(both.stepped) - loops == Approx(seconds(both.one_variable)).epsilon(0.01));
          if (nodes > 1) CHECK(both.ratio() == Approx(1).epsilon(0.01));
          check_terms(both);
          ++compared;
        }
    }
  CHECK(compared == (3 + 5 + 5) * 5 * 6);
}

TEST_CASE("chains, trees and NVLS differ by hops and filling alone, and say so") {
  for (const char* node : {"dgx-a100", "dgx-h100"})
    for (const std::int64_t nodes : {1, 2, 3, 8}) {
      for (const Algorithm algorithm : {Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree}) {
        const SteppedMachine machine(node, nodes, 1.0, only(algorithm));
        for (const Bytes bytes : {64_KiB, 4_MiB, 64_MiB}) {
          const SteppedCollective both = machine.stepped(CollectiveKind::all_reduce, bytes);
          INFO(node << " x " << nodes << ", " << name_of(both.alone.algorithm) << ", "
                    << bytes.value);
          check_terms(both);
          CHECK(seconds(term(both, "shared links").stepped) < 0.03 * seconds(both.stepped));
        }
      }
      const SteppedMachine machine(node, nodes);
      for (const Bytes bytes : {64_KiB, 4_MiB, 64_MiB})
        for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
          const SteppedCollective both = machine.stepped(kind, bytes);
          check_terms(both);
          CHECK(term(both, "hops").stepped == term(both, "hops").one_variable);
        }
    }
}

TEST_CASE("uplinks that cannot carry a collective slow both forms, the stepped one more") {
  const Bytes bytes = 256_MiB;
  const auto kind = CollectiveKind::all_to_all;
  const SteppedCollective wide = SteppedMachine("dgx-h100", 8).stepped(kind, bytes);
  const SteppedCollective narrow = SteppedMachine("dgx-h100", 8, 4.0).stepped(kind, bytes);
  CHECK(narrow.stepped > 1.5 * wide.stepped);
  CHECK(narrow.one_variable > 1.5 * wide.one_variable);
  CHECK(narrow.stepped >= narrow.one_variable * 0.99);
  CHECK(narrow.busiest_use > 0.9);
  check_terms(narrow);
}

TEST_CASE("stepped: more bytes are never faster, a narrower fabric neither") {
  std::mt19937 random(20261121);
  const SteppedMachine wide("dgx-h100", 4, 1.0, only(Algorithm::ring)),
      narrow("dgx-h100", 4, 2.0, only(Algorithm::ring));
  for (int i = 0; i < 60; ++i) {
    const CollectiveKind kind = kinds[random() % std::size(kinds)];
    // Of one protocol: NCCL's own changes may be a step down.
    const std::int64_t size = std::int64_t{1} << (24 + random() % 5);
    const Bytes few(size + static_cast<std::int64_t>(random() % 1000)), more(2 * size);
    INFO(static_cast<int>(kind) << " " << few.value);
    const SteppedCollective a = wide.stepped(kind, few), b = wide.stepped(kind, more);
    if (a.alone.protocol == b.alone.protocol) CHECK(a.stepped < b.stepped);
    CHECK(narrow.stepped(kind, few).stepped >= a.stepped - 1_ns);
  }
}

TEST_CASE("the order in which ranks are named changes nothing") {
  SteppedMachine machine("dgx-a100", 2);
  const Duration before = machine.stepped(CollectiveKind::all_gather, 8_MiB).stepped;
  std::reverse(machine.ranks.begin(), machine.ranks.end());
  CHECK(machine.stepped(CollectiveKind::all_gather, 8_MiB).stepped == before);
}

TEST_CASE("one rank has nothing to step") {
  SteppedMachine machine("dgx-a100", 1);
  machine.ranks = {3};
  const SteppedCollective both = machine.stepped(CollectiveKind::all_reduce, 1_MiB);
  CHECK(both.stepped == Duration{});
  CHECK(both.terms.empty());
}
