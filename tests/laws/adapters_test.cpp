// What adapters may do to a step, whatever the scenario.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <utility>

#include "sim/run/memory_figures.hpp"
#include "sim/scenario/file.hpp"
#include "tests/laws/law.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

TomlValue adapted(TomlValue document, std::int64_t rank) {
  erase_path(document, "precision.recipe");
  erase_path(document, "plan.tensor_overlap");
  return with(std::move(document), "model.lora_rank", {rank, "drawn"});
}

std::int64_t drawn_rank() {
  return *rc::gen::element<std::int64_t>(8, 16, 64).as("model.lora_rank");
}

Bytes tensors_of(const TomlValue& document) {
  return fullest_memory(read_scenario(document, catalogue())).total();
}

}  // namespace

TEST_CASE("law: rank 0 of adapters is what a step is without the key") {
  CHECK(holds({"no adapters", 100}, [](const TomlValue& drawn) {
    TomlValue document = drawn;
    for (const char* key : {"rank", "base", "targets", "dropout"})
      erase_path(document, std::string("model.lora_") + key);
    const StepReport without = step_of(document);
    TomlValue zero = with(document, "model.lora_rank", {std::int64_t{0}, "drawn"});
    zero = with(zero, "model.lora_base", toml_text("nf4", "drawn"));
    const StepReport with_zero = step_of(zero);
    RC_ASSERT(with_zero.step_time.count() == without.step_time.count());
    RC_ASSERT(with_zero.memory.total() == without.memory.total());
  }));
}

TEST_CASE("law: a higher rank of adapters needs no less memory") {
  CHECK(holds({"rank and memory", 200, Depth::whole}, [](const TomlValue& document) {
    const std::int64_t rank = drawn_rank();
    RC_ASSERT(tensors_of(adapted(document, rank)) <= tensors_of(adapted(document, 2 * rank)));
  }));
}

// Without dropout, whose masks can outweigh what cut states spare: zero2 of a 1B over 32 ranks.
TEST_CASE("law: adapters of low rank need no more memory than all that they spare") {
  CHECK(holds({"adapters and memory", 200, Depth::whole}, [](const TomlValue& document) {
    const TomlValue low = with(adapted(document, 8), "model.lora_dropout", {false, "drawn"});
    RC_ASSERT(tensors_of(low) <=
              tensors_of(with(low, "model.lora_rank", {std::int64_t{0}, "drawn"})));
  }));
}

TEST_CASE("law: a narrower frozen base keeps fewer bytes of parameters") {
  CHECK(holds({"frozen base", 120, Depth::whole}, [](const TomlValue& document) {
    const TomlValue wide = adapted(document, 8);
    std::optional<Bytes> before;
    for (const char* base : {"compute", "int8", "nf4", "nf4_double"}) {
      const TomlValue narrow = with(wide, "model.lora_base", toml_text(base, "drawn"));
      const Bytes now = fullest_memory(read_scenario(narrow, catalogue())).of("parameters");
      if (before) RC_ASSERT(now < *before);
      before = now;
    }
  }));
}

// Of ranks that leave every tensor rank a multiple of 64: cuBLAS takes longer for widths of 4 than
// of 32, and so do the kernels' tables.
TEST_CASE("law: a higher rank of adapters takes no less compute") {
  CHECK(holds({"rank and time", 80}, [](const TomlValue& drawn) {
    const TomlValue document = without_noise(drawn);
    const StepReport low = step_of(adapted(document, 512)), high = step_of(adapted(document, 2048));
    RC_LOG() << low.compute.count() << " of rank 512, " << high.compute.count()
             << " of rank 2048\n";
    RC_ASSERT(low.compute <= high.compute);
  }));
}

}  // namespace stepcast::sim::laws
