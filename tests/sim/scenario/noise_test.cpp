// Noise, stragglers and what-ifs by leaving out, from the scenario's keys to the step.
#include "sim/scenario/noise.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

Scenario read(const std::string& more, int nodes = 2) {
  static const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  return read_scenario(read_toml("[model]\nname = \"llama2-1b\"\n[batch]\nlocal = 1\n[cluster]\n"
                                 "node = \"dgx-h100\"\nnodes = " +
                                     std::to_string(nodes) + "\n" + more,
                                 "a.toml"),
                       catalogue);
}

std::string refusal(const std::string& more) {
  try {
    read(more);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

StepReport step(const std::string& more, int nodes = 2) {
  return session().step(read(more, nodes));
}

std::string without(const std::string& words) { return "[run]\nwithout = " + words + "\n"; }

}  // namespace

TEST_CASE("a scenario without [noise] has none, and says nothing is left out") {
  CHECK_FALSE(read("").noise.on());
  CHECK_FALSE(read("").run.without.any());
}

TEST_CASE("[noise] is read as written and written as read") {
  const Scenario s = read(
      "[noise]\nkernel_sigma = 0.02\ngpu_sigma = 0.01\ndistribution = \"exponential\"\n"
      "steps = 7\n[[noise.straggler]]\nrank = 5\nslowdown = 1.2\n"
      "[[noise.straggler]]\nnode = 1\nslowdown = 2\n[run]\nseed = 9\nwithout = [\"latency\"]\n");
  CHECK(s.noise.distribution == engine::Distribution::exponential);
  CHECK(s.noise.kernel_sigma == 0.02);
  CHECK(s.noise.gpu_sigma == 0.01);
  CHECK(s.noise.steps == 7);
  CHECK(s.noise.stragglers == std::vector<Straggler>{{false, 5, 1.2}, {true, 1, 2.0}});
  CHECK(s.run.seed == 9);
  CHECK(s.run.without == Ablation{.latency = true});
  const Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  const Scenario again = read_scenario(resolved_document(s), catalogue);
  CHECK(again.noise == s.noise);
  CHECK(again.run.without == s.run.without);
}

TEST_CASE("what to leave out is a word, words with commas, or a list") {
  CHECK(read(without("\"none\"")).run.without == Ablation{});
  CHECK(read(without("\"sharing\"")).run.without == Ablation{.sharing = true});
  const Ablation two{.bandwidth = true, .jitter = true};
  CHECK(read(without("\"jitter, bandwidth\"")).run.without == two);
  CHECK(read(without("[\"bandwidth\", \"jitter\"]")).run.without == two);
}

TEST_CASE("mistakes in [noise] name their place") {
  const auto expect = [](const std::string& text, const std::string& message) {
    INFO(text);
    CHECK_THAT(refusal(text), Contains("a.toml:") && Contains(message));
  };
  expect("[noise]\nkernel_sigm = 0.1\n", "did you mean 'kernel_sigma'?");
  expect("[noise]\nkernel_sigma = -0.1\n", "negative");
  expect("[noise]\ngpu_sigma = 2\n", "more than 1");
  expect("[noise]\ndistribution = \"normal\"\n", "lognormal");
  expect("[noise]\nsteps = 0\n", "at least 1");
  expect("[[noise.straggler]]\nrank = 16\nslowdown = 1.2\n", "no rank 16 among 16");
  expect("[[noise.straggler]]\nnode = 2\nslowdown = 1.2\n", "no node 2 among 2");
  expect("[[noise.straggler]]\nnode = 1\nslowdown = 0.9\n", "between 1 and 1000");
  expect("[[noise.straggler]]\nslowdown = 1.2\n", "'rank' in [noise.straggler], or 'node'");
  expect("[[noise.straggler]]\nrank = 1\nnode = 1\nslowdown = 1.2\n", "both 'rank' and 'node'");
  expect("[[noise.straggler]]\nrank = 1\nslowdwn = 1.2\n", "did you mean 'slowdown'?");
  expect("[noise]\nkernel_sigma = 0.1\n[run]\njitter = \"none\"\n", "beside [noise]");
  expect(without("\"latncy\""), "did you mean 'latency'?");
}

TEST_CASE("nodes and ranks get their speeds, and GPUs theirs") {
  engine::System system;
  system.role_of_rank.assign(32, 0);
  Noise noise;
  noise.stragglers = {{true, 1, 2.0}, {false, 9, 1.5}};
  add_noise(noise, 1, 8, system);
  CHECK(system.slowness[7] == 1.0);
  CHECK(system.slowness[8] == 2.0);
  CHECK(system.slowness[9] == 3.0);
  CHECK(system.slowness[15] == 2.0);
  CHECK(system.slowness[16] == 1.0);
  engine::System spread = system;
  noise = {};
  noise.gpu_sigma = 0.1;
  add_noise(noise, 1, 8, spread);
  CHECK(spread.slowness[0] != spread.slowness[1]);
  CHECK(spread.slowness[9] < 1.6);  // given anew, not on top
}

TEST_CASE("a straggler holds up the whole step, folded or not") {
  const StepReport alike = step("");
  Scenario s = read("[[noise.straggler]]\nrank = 5\nslowdown = 1.2\n");
  s.run.check_fold = true;
  const StepReport late = session().step(s);
  CHECK(late.simulated_ranks > alike.simulated_ranks);
  // Forward and backward of rank 5 take 1.2 times as long; the others wait.
  CHECK(seconds(late.step_time) / seconds(alike.step_time) > 1.15);
  CHECK(seconds(late.step_time) / seconds(alike.step_time) < 1.21);
  CHECK(late.wait > alike.wait);
  CHECK(step("[[noise.straggler]]\nnode = 0\nslowdown = 1.2\n").step_time >= late.step_time);
}

TEST_CASE("noise of kernels: every rank is run, the step is a mean, the same seed is the same") {
  const std::string noise = "[noise]\nkernel_sigma = 0.05\nsteps = 4\n";
  const StepReport a = step(noise), b = step(noise), c = step(noise + "[run]\nseed = 2\n");
  CHECK(a.simulated_ranks == 16);
  CHECK(a.step_time == b.step_time);
  CHECK(a.step_time != c.step_time);
  CHECK(a.step_deviation > Duration{});
  CHECK(a.step_time > step("").step_time);
  CHECK(a.wait > step("").wait);
  for (const std::string& warning : a.warnings) CHECK_THAT(warning, !Contains("repeat"));
  const Duration parts = a.compute + a.exposed.total() + a.bubble + a.wait + a.host;
  CHECK(parts == a.step_time);
}

TEST_CASE("a step grows with the noise, of kernels and of GPUs") {
  for (const std::string key : {"kernel_sigma", "gpu_sigma"}) {
    Duration before = step("").step_time;
    for (const char* sigma : {"0.01", "0.03", "0.1"}) {
      const Duration now = step("[noise]\n" + key + " = " + sigma + "\n").step_time;
      CHECK(now > before);
      before = now;
    }
  }
}

TEST_CASE("without jitter a noisy scenario is the plain one, to the picosecond") {
  const std::string noise =
      "[noise]\nkernel_sigma = 0.05\ngpu_sigma = 0.1\n[[noise.straggler]]\nrank = 0\nslowdown = "
      "3\n";
  CHECK(step(noise + without("\"jitter\"")).step_time == step("").step_time);
}

TEST_CASE("leaving an effect out never slows the step, and each takes away what it names") {
  const int nodes = 16;
  const StepReport all = step("", nodes);
  for (const char* word : {"interference", "latency", "bandwidth", "sharing"}) {
    INFO(word);
    CHECK(step(without("\"" + std::string(word) + "\""), nodes).step_time <= all.step_time);
  }
  CHECK(all.interference > Duration{});
  CHECK(step(without("\"interference\""), nodes).interference == Duration{});
  CHECK(step(without("\"latency\""), nodes).communication < all.communication);
  CHECK(step(without("\"bandwidth\""), nodes).communication < all.communication);
  // Nothing of a collective is left without both, but for the highest rate that the engine knows.
  const StepReport none = step(without("[\"latency\", \"bandwidth\"]"), nodes);
  CHECK(seconds(none.exposed.total()) < 1e-2 * seconds(all.exposed.total()));
  CHECK(all.exposed.total() > Duration{});
}

TEST_CASE("gathers on copy engines take no SMs from the step's kernels") {
  const auto with = [](const std::string& policy) {
    return step("nccl = \"2.28.9\"\n[nccl]\nNCCL_CTA_POLICY = \"" + policy + "\"\n", 1);
  };
  const StepReport kernels = with("DEFAULT"), copies = with("ZERO");
  CHECK(kernels.interference > Duration{});
  // What is left: reductions, which no copy engine does, and the bytes' share of the memory.
  CHECK(seconds(copies.interference) < 0.9 * seconds(kernels.interference));
}

TEST_CASE("the largest of n normal draws lies where tables have it") {
  // Harter 1961: 0, 0.56419, 1.42360, 2.50759 for n = 1, 2, 8, 100.
  CHECK(expected_largest(1) == 0.0);
  CHECK(expected_largest(2) == Approx(0.56419).epsilon(0.05));
  CHECK(expected_largest(8) == Approx(1.42360).epsilon(0.01));
  CHECK(expected_largest(100) == Approx(2.50759).epsilon(0.005));
}

TEST_CASE("all GPUs at the pace of the slowest are as slow as they are many, and fold still") {
  topology::Architecture ampere, hopper;
  hopper.sustained_gpus = 256;
  Noise noise;
  noise.pace_sigma = 0.015;
  CHECK(pace(noise, 1, ampere) == 1.0);
  CHECK(pace(noise, 8, ampere) == Approx(1.0 + 0.015 * 1.4236).epsilon(1e-3));
  CHECK(pace(noise, 256, hopper) == 1.0);  // in its sustained rate already
  CHECK(pace(noise, 8, hopper) < 1.0);

  const StepReport quiet = step(""), slow = step("[noise]\npace_sigma = 0.03\n");
  const StepReport left_out = step("[noise]\npace_sigma = 0.03\n" + without("\"jitter\""));
  CHECK(slow.simulated_ranks == quiet.simulated_ranks);
  CHECK(slow.step_time < quiet.step_time);  // 16 Hopper GPUs beside the 256 of the constant
  CHECK(left_out.step_time == quiet.step_time);
  CHECK(read("[noise]\npace_sigma = 0.03\n").noise.pace_sigma == 0.03);
  CHECK_THAT(refusal("[noise]\npace_sigma = 3\n"), Contains("more than 1"));
}
