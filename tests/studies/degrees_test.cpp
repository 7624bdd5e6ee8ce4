// Trend 5 of the study (arXiv 2411.13055): tensor and pipeline degrees against pure FSDP, 7B. A
// test marked [!shouldfail] is a statement that this model does not bear out, with the reason.
#include <catch2/catch.hpp>

#include "studies.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

/// One of the two grids, at one local batch.
struct Grid {
  std::int64_t gpus;
  double local;

  StudyResults results() const {
    return study(gpus == 256 ? "model_parallel_256" : "model_parallel_2048");
  }
  bool holds(const Scenario& s) const { return local_batch(s) == local; }

  const StepReport& at(std::int64_t tensor, std::int64_t pipeline) const {
    return results().step([&](const Scenario& s) {
      return holds(s) && s.plan.tensor == tensor && s.plan.pipeline == pipeline;
    });
  }
  double rate(std::int64_t tensor, std::int64_t pipeline) const {
    return tokens_per_second_per_gpu(at(tensor, pipeline));
  }
  double exposed(std::int64_t tensor, std::int64_t pipeline) const {
    return seconds(at(tensor, pipeline).exposed.total());
  }

  /// Degrees that beat pure FSDP.
  std::size_t better() const {
    return results()
        .steps([&](const StepReport& r) {
          return holds(r.scenario) && tokens_per_second_per_gpu(r) > rate(1, 1);
        })
        .size();
  }
};

constexpr Grid small_roomy{256, 2}, small_tight{256, 1}, large_roomy{2048, 2}, large_tight{2048, 1};

}  // namespace

// "Small tensor or pipeline degrees beat pure FSDP at scale and expose less communication".
TEST_CASE("on 2,048 GPUs with one sequence each, tensor 2 and 4 beat pure FSDP by over 5 %") {
  CHECK(large_tight.rate(2, 1) > 1.05 * large_tight.rate(1, 1));
  CHECK(large_tight.rate(4, 1) > 1.05 * large_tight.rate(1, 1));
}

TEST_CASE("on 2,048 GPUs with one sequence each, tensor 2 exposes less communication") {
  CHECK(large_tight.exposed(2, 1) < 0.8 * large_tight.exposed(1, 1));
}

// "... because the FSDP group shrinks".
TEST_CASE("what tensor 2 exposes less on 2,048 GPUs is FSDP's communication") {
  for (const Grid& grid : {large_roomy, large_tight})
    CHECK(grid.at(2, 1).exposed.data < 0.8 * grid.at(1, 1).exposed.data);
}

TEST_CASE("two pipeline stages expose less communication than pure FSDP on 2,048 GPUs") {
  for (const Grid& grid : {large_roomy, large_tight})
    CHECK(grid.exposed(1, 2) < grid.exposed(1, 1));
}

// With two sequences per GPU this model still hides nearly all of FSDP's communication on 2,048
// GPUs (the miss of weak scaling), so tensor 2 has little to win: it loses 5 %.
TEST_CASE("on 2,048 GPUs with two sequences each, tensor 2 comes close to pure FSDP") {
  CHECK(large_roomy.rate(2, 1) >= 0.94 * large_roomy.rate(1, 1));
}

TEST_CASE("on 2,048 GPUs with two sequences each, tensor 2 beats pure FSDP by over 5 %",
          "[!shouldfail]") {
  CHECK(large_roomy.rate(2, 1) > 1.05 * large_roomy.rate(1, 1));
}

// A replica of two stages has two or four sequences: 1F1B with so few micro-batches idles a fifth
// to a third of the step. The study does not state its schedule; interleaving is not modelled.
TEST_CASE("on 2,048 GPUs two pipeline stages beat pure FSDP", "[!shouldfail]") {
  CHECK(large_tight.rate(1, 2) > large_tight.rate(1, 1));
}

// "... degree 16 across nodes is worst".
TEST_CASE("tensor degree 16, across nodes, is the slowest, a fifth below degree 8") {
  for (const Grid& grid : {small_roomy, small_tight, large_roomy, large_tight})
    for (const std::int64_t pipeline : {1, 2, 4, 8, 16}) {
      CAPTURE(grid.gpus, grid.local, pipeline);
      for (const std::int64_t tensor : {1, 2, 4, 8})
        CHECK(grid.rate(16, pipeline) < 0.8 * grid.rate(tensor, pipeline));
    }
}

// "... at few GPUs or large local batch degree 1 is best or equal".
TEST_CASE("on 256 GPUs no degree beats pure FSDP") {
  CHECK(small_roomy.better() == 0);
  CHECK(small_tight.better() == 0);
}

// "With smaller batches or more GPUs, more model-parallel settings beat the baseline".
TEST_CASE("more degrees beat pure FSDP on more GPUs, and more still with a smaller batch") {
  CHECK(small_roomy.better() <= small_tight.better());
  CHECK(small_roomy.better() <= large_roomy.better());
  CHECK(large_roomy.better() < large_tight.better());
  CHECK(small_tight.better() < large_tight.better());
}
