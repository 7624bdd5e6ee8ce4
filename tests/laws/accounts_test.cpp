// What the figures of one report have to do with each other.
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "engine/run.hpp"
#include "sim/kernels/power_law.hpp"
#include "sim/scenario/file.hpp"
#include "tests/laws/law.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

}  // namespace

TEST_CASE("law: the parts of a step add up to it to the picosecond, and none is negative") {
  CHECK(holds({"parts", 200}, [](const TomlValue& document) {
    const StepReport r = step_of(document);
    const Duration parts = r.compute + r.exposed.total() + r.bubble + r.wait + r.host;
    RC_ASSERT(parts.count() == r.step_time.count());
    for (const Duration part :
         {r.compute, r.interference, r.exposed.tensor, r.exposed.pipeline, r.exposed.data,
          r.exposed.expert, r.exposed.offload, r.bubble, r.wait, r.host, r.communication})
      RC_ASSERT(part.count() >= 0);
    RC_ASSERT(r.interference.count() <= r.compute.count());
  }));
}

TEST_CASE("law: what a rank does adds up to the step, whichever rank") {
  CHECK(holds({"parts of ranks", 120}, [](const TomlValue& document) {
    const Scenario s = read_scenario(without_noise(document), catalogue());
    const BoundStep bound = session().bound_step(s);
    const bool cold = s.run.steps == Steps::cold;
    const engine::RunResult run = engine::run(bound.step.system, {.cold = cold});
    for (const engine::RankAccount& rank : run.ranks)
      RC_ASSERT(rank.total().count() == run.step.count());
  }));
}

TEST_CASE("law: tokens are conserved") {
  CHECK(holds({"tokens", 200}, [](const TomlValue& document) {
    const StepReport r = step_of(document);
    const Scenario& s = r.scenario;
    RC_ASSERT(s.plan.ranks() == s.gpus);
    RC_ASSERT(s.plan.data_degree * s.batch.micro_batches * s.batch.micro_batch == s.global_batch);
    const auto tokens = static_cast<double>(s.global_batch * s.batch.sequence);
    RC_ASSERT(near(r.tokens_per_second * seconds(r.step_time), tokens));
    RC_ASSERT(near(r.tokens_per_joule * r.energy.value, tokens));
    const auto& layers = s.plan.stage_layers;
    if (!layers.empty())
      RC_ASSERT(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) == s.model.layers);
  }));
}

TEST_CASE("law: no GPU computes more than its peak") {
  CHECK(holds({"mfu", 200}, [](const TomlValue& document) {
    const StepReport r = step_of(document);
    const topology::GpuSpec& gpu = r.scenario.node.gpu;
    RC_ASSERT(r.mfu > 0);
    RC_ASSERT(near(r.mfu, r.model_flops_per_gpu / gpu.tensor_peak));
    // mfu is of the 16-bit peak; a recipe has another.
    const double fastest =
        std::max({gpu.tensor_peak.value, gpu.fp8_peak.value, gpu.fp4_peak.value});
    const bool low = r.scenario.precision.recipe != workloads::Recipe::none;
    RC_ASSERT(r.model_flops_per_gpu.value <= (low ? fastest : gpu.tensor_peak.value));
  }));
}

TEST_CASE("law: energy is power times time, between idle and what the GPU may draw") {
  CHECK(holds({"energy", 200}, [](const TomlValue& document) {
    const StepReport r = step_of(document);
    const auto gpus = static_cast<double>(r.scenario.gpus);
    RC_ASSERT(near(r.energy.value, r.power_per_gpu.value * seconds(r.step_time) * gpus));
    RC_ASSERT(r.power_per_gpu.value >= r.scenario.node.gpu.idle.value);
    RC_ASSERT(r.power_per_gpu.value <= power_limit(r.scenario.node.gpu).value);
  }));
}

}  // namespace stepcast::sim::laws
