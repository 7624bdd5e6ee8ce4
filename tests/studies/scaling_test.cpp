// Trends 1, 3, 4, 8 and 10 of the study (arXiv 2411.13055): more GPUs, with the work per GPU kept
// or the batch kept, and longer sequences. What the study says stands above each test; a test
// marked
// [!shouldfail] is a statement that this model does not bear out, with the reason.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "studies.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;

namespace {

const StepReport& weak(std::int64_t nodes) {
  return study("weak_scaling").step([&](const Scenario& s) { return s.nodes == nodes; });
}

const StepReport& strong(std::int64_t nodes) {
  return study("strong_scaling").step([&](const Scenario& s) { return s.nodes == nodes; });
}

const StepReport& with_sequence(std::int64_t tokens) {
  return study("context_lengths").step([&](const Scenario& s) {
    return s.batch.sequence == tokens;
  });
}

double total_power(const StepReport& report) {
  return report.power_per_gpu.value * static_cast<double>(report.scenario.gpus);
}

/// Tokens/s per GPU from 128 to 2,048 GPUs, in percent, with weak scaling's points changed.
double fall_of(const std::function<void(Scenario&)>& alter,
               Session& session = stepcast::session()) {
  const auto rate = [&](std::int64_t nodes) {
    Scenario scenario = weak(nodes).scenario;
    alter(scenario);
    return tokens_per_second_per_gpu(
        session.step(with_degrees(scenario, scenario.plan.tensor, scenario.plan.pipeline)));
  };
  return change(rate(16), rate(256));
}

/// A catalogue in which NCCL 2.20 has Simple alone: LL and LL128 get bandwidths that it never
/// chooses.
class SimpleAlone {
 public:
  SimpleAlone() {
    namespace fs = std::filesystem;
    fs::remove_all(folder_);
    fs::copy(STEPCAST_SOURCE_DIR "/scenarios", folder_, fs::copy_options::recursive);
    const fs::path file = folder_ / "nccl" / "2.20.toml";
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const std::regex caps(R"(\[cap\.(ll_bus|ring_ll128)\]\n.*\n.*\n.*\n)");
    const std::string row = " = [0.01, 0.01, 0.01]\n";
    std::ofstream(file) << std::regex_replace(
        text.str(), caps, "[cap.$1]\nvolta" + row + "ampere" + row + "hopper" + row);
  }
  ~SimpleAlone() { std::filesystem::remove_all(folder_); }
  SimpleAlone(const SimpleAlone&) = delete;
  SimpleAlone& operator=(const SimpleAlone&) = delete;

  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_ =
      tests::own_folder() / ("stepcast-simple-" + std::to_string(getpid()));
};

}  // namespace

// Trend 1: "total power and available FLOPs grow linearly with GPUs, throughput does not: tokens
// per joule and MFU fall".
TEST_CASE("256 times the GPUs draw 256 times the power, within a tenth") {
  CHECK(total_power(weak(256)) == Approx(256 * total_power(weak(1))).epsilon(0.10));
}

TEST_CASE("from 128 to 2,048 GPUs throughput grows less than the GPUs") {
  CHECK(weak(256).tokens_per_second < 0.97 * 16 * weak(16).tokens_per_second);
}

TEST_CASE("from 128 GPUs on every doubling lowers MFU and tokens per joule") {
  for (std::int64_t nodes = 16; nodes < 256; nodes *= 2) {
    CAPTURE(nodes);
    CHECK(weak(2 * nodes).mfu < weak(nodes).mfu);
    CHECK(weak(2 * nodes).tokens_per_joule < weak(nodes).tokens_per_joule);
  }
}

// Trend 3: "communication hidden up to about 128 H100, exposed beyond; power per GPU nearly flat".
TEST_CASE("up to 128 GPUs FSDP hides its communication: under 2 % of the step is exposed") {
  for (std::int64_t nodes = 1; nodes <= 16; nodes *= 2) {
    CAPTURE(nodes);
    CHECK(exposed_share(weak(nodes)) < 0.02);
  }
}

TEST_CASE("beyond 128 GPUs the exposed share grows with every doubling, to twice and more") {
  for (std::int64_t nodes = 16; nodes < 256; nodes *= 2) {
    CAPTURE(nodes);
    CHECK(exposed_share(weak(2 * nodes)) > exposed_share(weak(nodes)));
  }
  CHECK(exposed_share(weak(256)) > 2 * exposed_share(weak(16)));
}

TEST_CASE("power per GPU stays within 6 % from 128 to 2,048 GPUs") {
  CHECK(weak(256).power_per_gpu.value == Approx(weak(16).power_per_gpu.value).epsilon(0.06));
}

// The study: -37.22 % tokens/s per GPU from 128 to 2,048 GPUs. Here one AllGather of a layer over
// 2,048 ranks takes about 7 ms and just hides behind the layer's forward pass, because NCCL's own
// choice, LL128, is taken at its word: 2.7 us a hop on average. No public measurement pins that
// hop. NCCL's Simple protocol, 6.7 us a hop, would explain most of the fall (README).
TEST_CASE("tokens/s per GPU fall by 37 % from 128 to 2,048 GPUs", "[!shouldfail]") {
  const double fall =
      change(tokens_per_second_per_gpu(weak(16)), tokens_per_second_per_gpu(weak(256)));
  CHECK(fall == Approx(-37.22).margin(5));
}

// The same miss: GPUs that hardly wait keep their power (the study: 658 W to 620 W).
TEST_CASE("power per GPU falls by 6 % from 128 to 2,048 GPUs", "[!shouldfail]") {
  CHECK(change(weak(16).power_per_gpu.value, weak(256).power_per_gpu.value) ==
        Approx(-5.87).margin(3));
}

// The same miss, in energy.
TEST_CASE("tokens per joule fall by a third from 128 to 2,048 GPUs", "[!shouldfail]") {
  CHECK(change(weak(16).tokens_per_joule, weak(256).tokens_per_joule) == Approx(-33.3).margin(5));
}

// "Communication-bound from about 128 GPUs": the same miss.
TEST_CASE("FSDP is communication-bound beyond 128 GPUs: over 10 % exposed", "[!shouldfail]") {
  CHECK(exposed_share(weak(256)) > 0.10);
}

// The mechanism that the study names is there: with fewer tokens between two gathers the same
// latency has less to hide behind.
TEST_CASE("one sequence at a time, gathered and reduced each, loses over 15 % on 2,048 GPUs") {
  CHECK(fall_of([](Scenario& s) {
          s.micro.micro_batch = 1;
          s.reduce = workloads::ReduceWhen::each;
        }) < -15);
}

TEST_CASE("if NCCL took Simple alone, 2,048 GPUs would lose over 20 %") {
  const SimpleAlone simple;
  const Catalogue catalogue(simple.folder());
  Session session(catalogue);
  CHECK(fall_of([](Scenario&) {}, session) < -20);
}

// Trend 10: "memory per GPU falls with the FSDP degree, with diminishing savings".
TEST_CASE("every doubling of the FSDP group saves memory, and less than the one before") {
  double saved_before = 1e18;
  for (std::int64_t nodes = 1; nodes < 256; nodes *= 2) {
    CAPTURE(nodes);
    const auto saved = static_cast<double>(
        (weak(nodes).memory.tensors() - weak(2 * nodes).memory.tensors()).value);
    CHECK(saved > 0);
    CHECK(saved < saved_before);
    saved_before = saved;
  }
}

// Trend 4: "MFU collapses with nodes, global throughput gains become marginal", at a fixed batch.
TEST_CASE("at a fixed batch MFU falls to less than half from 2 to 256 nodes") {
  for (std::int64_t nodes = 2; nodes < 256; nodes *= 2) {
    CAPTURE(nodes);
    CHECK(strong(2 * nodes).mfu < strong(nodes).mfu);
  }
  CHECK(strong(256).mfu < 0.5 * strong(2).mfu);
}

TEST_CASE("at a fixed batch a doubling gains ever less, the last one under 25 %") {
  const auto gain = [](std::int64_t nodes) {
    return strong(2 * nodes).tokens_per_second / strong(nodes).tokens_per_second;
  };
  for (std::int64_t nodes = 4; nodes < 128; nodes *= 2) {
    CAPTURE(nodes);
    CHECK(gain(nodes) < gain(nodes / 2) + 0.01);  // from 2 to 32 nodes each gains 1.95 to 1.96
  }
  CHECK(gain(128) < 1.25);
}

// Over 2 to 32 nodes a global batch of 512 leaves every GPU two whole sequences or more, where
// communication still hides: the collapse comes only where a GPU has less than one.
TEST_CASE("at a fixed batch MFU collapses already from 2 to 32 nodes", "[!shouldfail]") {
  CHECK(strong(32).mfu < 0.75 * strong(2).mfu);
}

// Trend 8: "longer sequences overlap better: MFU rises".
TEST_CASE("a sequence twice as long raises MFU and exposes a smaller share of the step") {
  for (std::int64_t tokens = 2048; tokens < 32768; tokens *= 2) {
    CAPTURE(tokens);
    CHECK(with_sequence(2 * tokens).mfu > with_sequence(tokens).mfu);
    CHECK(exposed_share(with_sequence(2 * tokens)) < exposed_share(with_sequence(tokens)));
  }
  CHECK(with_sequence(32768).mfu > 1.1 * with_sequence(2048).mfu);
}
