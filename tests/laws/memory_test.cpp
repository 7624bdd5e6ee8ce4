// Memory is one account: what is shown, what decides and its parts are one figure.
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/run/memory_figures.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/memory_timeline.hpp"
#include "tests/laws/law.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

/// The drawn scenario with any framework of the catalogue; many run nothing of the kind and refuse.
Scenario of_any_framework(const TomlValue& document) {
  static const std::vector<std::string> all = catalogue().names("software");
  const std::size_t i =
      *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, all.size()))
           .as("software.framework");
  const TomlValue name = toml_text(all[i], "drawn");
  return read_scenario(with(document, "software.framework", name), catalogue());
}

Scenario on_card(Scenario s, double share, Bytes of) {
  s.node.gpu.memory = Bytes(static_cast<std::int64_t>(share * static_cast<double>(of.value)));
  return s;
}

}  // namespace

TEST_CASE("law: the parts of memory add up to what decides, whatever the framework") {
  CHECK(holds({"parts of memory", 400, Depth::whole}, [](const TomlValue& document) {
    const Scenario s = of_any_framework(document);
    const workloads::MemoryFigures figures = memory_figures(s);
    RC_ASSERT(figures.total() == figures.needed());
    for (const workloads::MemoryPart& part : figures.parts) RC_ASSERT(part.bytes >= Bytes(0));
    RC_ASSERT(figures.tensors() <= figures.allocated);
    RC_ASSERT(figures.allocated <= figures.held);
    RC_ASSERT(figures.held <= figures.reserved);
  }));
}

// Within 40 MiB: blocks of a model of a few MiB are rounded up by more than a share of them.
TEST_CASE("law: a bound without a replay never contradicts one, on whatever card") {
  CHECK(holds({"bounds of memory", 400, Depth::whole}, [](const TomlValue& document) {
    const Scenario s = of_any_framework(document);
    const workloads::MemoryFigures least = fullest_memory(s), figures = memory_figures(s);
    RC_ASSERT(least.total() <= figures.needed());
    RC_LOG() << figures.held.value << " held of " << least.tensors().value << "\n";
    RC_ASSERT(static_cast<double>(figures.held.value) <=
              (1 + workloads::most_fragmentation) * static_cast<double>(least.tensors().value) +
                  40.0 * (1 << 20));
    for (const double share : {0.7, 0.95, 0.999, 1.0, 1.05, 1.5}) {
      const Scenario carded = on_card(s, share, figures.needed());
      const bool fit = share >= 1.0;
      RC_ASSERT(fits(carded) == fit);
      RC_ASSERT(fits(carded, figures) == fit);
    }
  }));
}

// The timeline is of the second step. The allocator may hand out larger blocks in the first.
TEST_CASE("law: memory over a step comes to the figure that is shown") {
  CHECK(holds({"memory over a step", 60, Depth::whole}, [](const TomlValue& document) {
    const Scenario s = of_any_framework(document);
    if (workloads::allocates_once(s.plan, s.software)) RC_DISCARD();
    const workloads::MemoryFigures figures = memory_figures(s);
    const auto stages = memory_timeline(s);
    std::int64_t tensors = 0, allocated = 0;
    for (const MemorySample& sample : stages.at(static_cast<std::size_t>(figures.stage)).samples) {
      tensors = std::max(
          tensors, std::accumulate(sample.of_kind.begin(), sample.of_kind.end(), std::int64_t{0}));
      allocated = std::max(allocated, sample.allocated);
    }
    RC_LOG() << tensors << " over the step, " << figures.tensors().value << " shown\n"
             << allocated << " allocated, " << figures.allocated.value << " shown\n";
    RC_ASSERT(tensors == figures.tensors().value);
    RC_ASSERT(allocated >= tensors);
    RC_ASSERT(allocated <= figures.allocated.value);
  }));
}

}  // namespace stepcast::sim::laws
