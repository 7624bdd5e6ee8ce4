// What is computed in two ways comes to one answer.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <string>

#include "sim/scenario/file.hpp"
#include "tests/laws/law.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

/// A rate of the machine: as a what-if and as a key, and what it is.
struct Rate {
  const char* what_if;
  const char* key;
  std::string (*twice)(const Scenario&);
};

template <class Q>
std::string twice(Q rate, const char* unit) {
  return fmt::format("{} {}", 2 * rate.value, unit);
}

const Rate rates[] = {
    {"gpu.tensor_peak x2", "cluster.node.gpu.tensor_peak",
     [](const Scenario& s) { return twice(s.node.gpu.tensor_peak, "FLOP/s"); }},
    {"gpu.memory_bandwidth x2", "cluster.node.gpu.memory_bandwidth",
     [](const Scenario& s) { return twice(s.node.gpu.memory_bandwidth, "B/s"); }},
    {"gpu.nvlink x2", "cluster.node.gpu.nvlink",
     [](const Scenario& s) { return twice(s.node.gpu.nvlink, "B/s"); }},
};

}  // namespace

TEST_CASE("law: a rate doubled by a what-if and by its key is one step") {
  CHECK(holds({"what-if", 60}, [](const TomlValue& document) {
    const Scenario base = read_scenario(document, catalogue());
    for (const Rate& rate : rates) {
      const std::string value = rate.twice(base);
      if (value.starts_with("0 ")) continue;  // a node without NVLink
      const TomlValue asked = with(document, "what_if", toml_text(rate.what_if, "law"));
      const StepReport by_factor = step_of(asked);
      const StepReport by_key = step_of(with(document, rate.key, toml_text(value, "law")));
      RC_ASSERT(by_factor.step_time.count() == by_key.step_time.count());
      RC_ASSERT(by_factor.energy.value == by_key.energy.value);
    }
  }));
}

// The test's own session has been asked all that other laws drew, and keeps machines, kernel times,
// programs and curves of it.
TEST_CASE("law: a session that was asked other questions before answers as a fresh one") {
  CHECK(holds({"session", 60}, [](const TomlValue& document) {
    const Scenario s = read_scenario(document, catalogue());
    Session fresh(catalogue());
    const std::string alone = bits_of(fresh.step(s));
    RC_ASSERT(bits_of(session().step(s)) == alone);
    RC_ASSERT(bits_of(session().step(s)) == alone);
  }));
}

}  // namespace stepcast::sim::laws
