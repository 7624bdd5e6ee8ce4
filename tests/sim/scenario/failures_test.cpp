// [failures] as it is written, refused and written back, and what it is made of.
#include "sim/scenario/failures.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/goodput/daly.hpp"
#include "sim/goodput/goodput.hpp"
#include "sim/scenario/failure_keys.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string base = R"([model]
name = "llama2-70b"
sequence = 4096
[cluster]
node = "dgx-h100"
nodes = 32
[plan]
data = "zero1"
tensor = 8
pipeline = 4
sequence_parallel = true
[batch]
global = 256
micro_batch = 1
)";

Scenario failing(const std::string& failures) {
  return read_scenario(read_toml(base + failures, "f.toml"), catalogue());
}
std::string message_of(const std::string& failures) {
  try {
    failing(failures);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
Goodput goodput_at(
    const Scenario& scenario, double step_s = 10,
    const StepOf& step_of = [](const Scenario&) { return to_duration(12); }) {
  return goodput_of(scenario, to_duration(step_s), step_of);
}

}  // namespace

TEST_CASE("a scenario without [failures] has none; an empty table is Llama 3's rates") {
  CHECK_FALSE(failing("").failures.on);
  const Failures failures = failing("[failures]\n").failures;
  CHECK(failures.on);
  CHECK(failures.rates.name == "llama3-405b");
  CHECK(failures.rate() == Approx(419 / (2048 * 54.0) * 1000));
  REQUIRE(failures.tiers.size() == 1);
}

TEST_CASE("every entry of scenarios/failures reads, and says where its rates come from") {
  for (const std::string& name : catalogue().names("failures")) {
    INFO(name);
    const FailureRates rates = read_failure_rates(toml_text(name, "test"), catalogue());
    CHECK(rates.name == name);
    CHECK(rates.per_1000_node_days() > 0);
    CHECK_FALSE(catalogue().sources("failures", name).empty());
  }
}

TEST_CASE("[failures] is read as written and written as read") {
  const Scenario scenario = failing(R"([failures]
rates = "rsc-1"
per_1000_node_days = 5.0
spares = 3
repair = "72 h"
empty = "shrink"
[failures.slow]
per_1000_node_days = 1.0
slowdown = 1.2
[failures.flap]
per_1000_node_days = 2.0
lasts = "20 s"
[[failures.checkpoint]]
to = "peers"
survives = 0.8
asynchronous = true
[[failures.checkpoint]]
bandwidth = "100 GB/s"
every = "30 min"
)");
  CHECK(scenario.failures.rate() == 5.0);
  CHECK(scenario.failures.rate_sigma() == 0.0);
  const Scenario again =
      read_scenario(read_toml(write_toml(resolved_document(scenario)), "r.toml"), catalogue());
  CHECK(again.failures == scenario.failures);
}

TEST_CASE("mistakes in [failures] name their place") {
  CHECK_THAT(message_of("[failures]\nrates = \"llama\"\n"),
             Contains("f.toml:16") && Contains("unknown failure 'llama'"));
  CHECK_THAT(message_of("[failures]\nrestrat = \"1 min\"\n"), Contains("did you mean 'restart'"));
  CHECK_THAT(message_of("[failures]\nrestart = 60\n"), Contains("f.toml:16"));
  CHECK_THAT(message_of("[[failures.checkpoint]]\nsurvives = 0.5\n"),
             Contains("does not survive everything"));
  CHECK_THAT(message_of("[[failures.checkpoint]]\n[[failures.checkpoint]]\n"),
             Contains("survives no more than the one before"));
  CHECK_THAT(message_of("[failures.slow]\nslowdown = 0.5\n"), Contains("between 1 and 1000"));
  CHECK_THAT(message_of("[failures]\nruns = 2\n"), Contains("too small"));
  CHECK_THAT(message_of("[failures.rates]\nname = \"mine\"\n"), Contains("[[cause]]"));
  CHECK_THAT(
      message_of("[failures.rates]\nname = \"mine\"\n[[failures.rates.cause]]\nname = \"a\"\n"
                 "interruptions = 3\n"),
      Contains("without 'nodes' and 'days'"));
}

TEST_CASE("a checkpoint is 14 bytes of each parameter, written by all nodes at once") {
  const Goodput goodput = goodput_at(failing("[failures]\n"));
  REQUIRE(goodput.tiers.size() == 1);
  const CheckpointTraffic& tier = goodput.tiers.front();
  // 68.98e9 parameters: 16-bit weights 2, master 4, moments 8; norms stand on all tensor ranks.
  CHECK(static_cast<double>(tier.total.value) == Approx(14 * 68.98e9).epsilon(0.03));
  // 1 GB/s of a node, whose eight ranks write as much as the fullest.
  CHECK(tier.blocking_s == Approx(8 * static_cast<double>(tier.rank.value) / 1e9));
  CHECK(tier.load_s == tier.blocking_s);
  CHECK(goodput.checkpoints_per_step_s == Approx(10 * tier.blocking_s / tier.every_s));
}

TEST_CASE("the slowest link decides, and an asynchronous write stops for the copy over PCIe") {
  const Goodput narrow = goodput_at(
      failing("[[failures.checkpoint]]\nbandwidth = \"10 GB/s\"\nper_node = \"25 GB/s\"\n"));
  const CheckpointTraffic& all = narrow.tiers.front();
  CHECK(all.blocking_s == Approx(static_cast<double>(all.total.value) / 10e9));
  const Goodput behind = goodput_at(
      failing("[[failures.checkpoint]]\nbandwidth = \"10 GB/s\"\nasynchronous = true\n"));
  const CheckpointTraffic& copied = behind.tiers.front();
  CHECK(copied.behind_s == Approx(all.blocking_s));
  CHECK(copied.blocking_s < 0.01 * all.blocking_s);
  CHECK(copied.every_s >= copied.behind_s);  // one after the other
  // Without links of its own a tier is behind the NICs: 8 x 400 Gbit/s.
  const CheckpointTraffic nics = goodput_at(failing("[[failures.checkpoint]]\n")).tiers.front();
  CHECK(nics.load_s == Approx(8 * static_cast<double>(nics.rank.value) / 400e9));
}

TEST_CASE("rates are of nodes of eight GPUs, and are scaled as a whole") {
  const Goodput usual = goodput_at(failing("[failures]\n"));
  CHECK(usual.between_s == Approx(86400 / (419 / (2048 * 54.0) * 32)));
  const Goodput stated = goodput_at(failing("[failures]\nper_1000_node_days = 100.0\n"));
  CHECK(stated.between_s == Approx(86400 / (0.1 * 32)));
  CHECK(stated.mean < usual.mean);
  CHECK(std::abs(stated.mean - stated.daly) < 0.005);
}

TEST_CASE("the step of a slow node and of a smaller run are asked for, not guessed") {
  const Scenario slow = failing("[failures.slow]\nper_1000_node_days = 1.0\nslowdown = 1.5\n");
  int asked = 0;
  const Goodput with_slow = goodput_at(slow, 10, [&](const Scenario& other) {
    ++asked;
    REQUIRE(other.noise.stragglers.size() == 1);
    CHECK(other.noise.stragglers.front() == Straggler{true, 0, 1.5});
    return to_duration(12.5);
  });
  CHECK(asked == 1);
  CHECK(with_slow.slow_speed == Approx(0.8));
  const Scenario shrink = failing("[failures]\nspares = 0\nempty = \"shrink\"\n");
  const Goodput shrunk = goodput_at(shrink, 10, [&](const Scenario& other) {
    // A copy of the model is 4 nodes: 7 of 8 copies are left, with their sequences.
    CHECK(other.nodes == 28);
    CHECK(other.plan.data_degree == 7);
    CHECK(other.global_batch == 224);
    return to_duration(10);
  });
  CHECK(shrunk.shrunk_speed == Approx(7.0 / 8));
}

TEST_CASE("what a minute of restart is worth is what a minute more takes") {
  const std::string rate = "[failures]\nper_1000_node_days = 50.0\nsigma = 0.0\n";
  const Goodput eleven = goodput_at(failing(rate));
  const Goodput twelve = goodput_at(failing(rate + "restart = \"12 min\"\n"));
  CHECK(eleven.minute > 0);
  // The better period after a longer restart is worth next to nothing.
  CHECK(eleven.mean - twelve.mean == Approx(eleven.minute).epsilon(0.05));
}
