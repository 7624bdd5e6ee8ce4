// Collectives of the simulated box against closed forms: measured behind one switch, slower where
// the fabric's links are.
#include "validate/cluster/simulated.hpp"

#include <catch2/catch.hpp>

#include "sim/files/toml_table.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "validate/cluster/jobs.hpp"

namespace stepcast::validate {
namespace {

using calibrate::CollectiveTask;

constexpr double nic = 25e6;

sim::Scenario eight_nodes(const std::string& plan) {
  const std::string text = R"([model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
nodes = 8
[cluster.node]
name = "host"
gpus = 1
nic = "0.2 Gbit/s"
[cluster.fabric]
name = "fat-tree"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
)" + plan;
  return sim::read_scenario(sim::read_toml(text, "box.toml"), catalogue());
}

/// Of 8 MB between 8 ranks behind one switch: what the NICs take, and a fifth more.
constexpr double bytes = 8e6;
const CollectiveTask sum{"allreduce", Bytes(static_cast<std::int64_t>(bytes)), {}, {}};
const double alone_s = 1.2 * 2 * 7.0 / 8 * bytes / nic;

double time_on(const std::string& word) {
  const BoxFabric fabric = fabrics_of(word).front();
  const auto rows = rows_of({{"allreduce", Bytes(4'000'000), {}, {}}, sum},
                            {to_duration(alone_s / 2), to_duration(alone_s)}, 8);
  const SimulatedBox box(eight_nodes("[plan]\ndata = \"ddp\"\n"), fabric, rows);
  return seconds(box.time_of(sum, {0, 1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace

// AllReduce: every rank sends every other 2/8 of the bytes. Up from a leaf of 4 go 4 x 4 such
// parts, 4 times the bytes, over 4 / k NICs' worth.
TEST_CASE("a sum over two leaves takes what was measured, or what the uplink lets through") {
  CHECK(time_on("nonblocking") == Approx(alone_s));
  CHECK(time_on("2:1") == Approx(std::max(alone_s, 4 * bytes / (2 * nic))));
  CHECK(time_on("4:1") == Approx(4 * bytes / nic));
  CHECK(4 * bytes / nic > alone_s);
}

TEST_CASE("a slow NIC holds the sum of all to its own pace") {
  CHECK(time_on("slow-nic") == Approx(2 * 7.0 / 8 * bytes / (nic / 2)));
}

TEST_CASE("what is measured alone are the first groups of a plan, each with its collectives") {
  const auto groups = groups_of(eight_nodes("[plan]\ntensor = 2\n"));
  REQUIRE(groups.size() == 3);  // tensor, the norm over all, data
  CHECK(groups[0].nodes == std::vector<std::int64_t>{0, 1});
  CHECK(groups[1].nodes == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(groups[2].nodes == std::vector<std::int64_t>{0, 2, 4, 6});
}

namespace {

/// Kernels of next to nothing: what is left of a step are its collectives.
class NoCompute final : public sim::KernelModel {
  sim::KernelTime time_of(const workloads::Kernel&) const override {
    return {.duration = to_duration(1e-9)};
  }
};

/// A step of `jobs` jobs of four ranks, over the time that its sum of `s` bytes takes at a NIC's
/// rate where every byte crosses it once.
double step_over_pass(const std::string& word, std::int64_t jobs) {
  const BoxFabric fabric = fabrics_of(word).front();
  sim::Scenario job = eight_nodes("[plan]\ndata = \"ddp\"\n");
  job.nodes = job.gpus = job.plan.data_degree = 4;
  const auto groups = groups_of(job);
  REQUIRE(groups.size() == 1);  // one sum of all gradients, and its norm needs no other
  const auto tasks = groups.front().sizes.largest(4);
  REQUIRE(tasks.size() == 1);
  const double pass = static_cast<double>(tasks.front().bytes.value) / nic;
  const std::vector<CollectiveTask> sizes{{"allreduce", Bytes(4), {}, {}}, tasks.front()};
  const auto rows =
      rows_of(sizes, {to_duration(1e-9), to_duration(1.5 * pass)}, 4);  // 2 x 3/4: NICs alone
  return seconds(SimulatedBox(job, fabric, rows, jobs).step(NoCompute{}).report.step_time) / pass;
}

}  // namespace

// Two ranks of a job of four on each leaf: up go 2 x 2 of its parts of 2/4, twice the bytes.
TEST_CASE("jobs at once share the uplinks of leaves that both are on") {
  CHECK(step_over_pass("nonblocking", 1) == Approx(1.5).epsilon(1e-3));
  CHECK(step_over_pass("nonblocking", 2) == Approx(1.5).epsilon(1e-3));
  CHECK(step_over_pass("2:1", 2) == Approx(2 * 2.0 / 2).epsilon(1e-3));
  CHECK(step_over_pass("4:1", 2) == Approx(2 * 2.0 / 1).epsilon(1e-3));
  CHECK(nodes_of_job(1, 2, 4) == std::vector<std::int64_t>{1, 3, 5, 7});
}

TEST_CASE("a group with a slow NIC holds the step, and only its own transfers are slow") {
  const BoxFabric slow = fabrics_of("slow-nic").front(), plain = fabrics_of("nonblocking").front();
  sim::Scenario job = eight_nodes("[plan]\ndata = \"ddp\"\ntensor = 2\n");
  job.nodes = job.gpus = 4;
  job.plan.data_degree = 2;
  std::vector<CollectiveTask> tasks;
  for (const GroupCalls& group : groups_of(job))
    for (const CollectiveTask& task : group.sizes.tasks(2)) tasks.push_back(task);
  std::vector<Duration> times;
  for (const CollectiveTask& task : tasks)
    times.push_back(to_duration(1.01 * static_cast<double>(task.bytes.value) / nic));
  // A short message that a token bucket lets pass at once says nothing of the long ones.
  tasks.push_back({"allreduce", Bytes(1024), {}, {}});
  times.push_back(to_duration(1e-6));
  auto rows = rows_of(tasks, times, 2);
  const auto of_four = rows_of(tasks, times, 4);
  rows.insert(rows.end(), of_four.begin(), of_four.end());
  const double fast = seconds(SimulatedBox(job, plain, rows).step(NoCompute{}).report.step_time);
  const double held = seconds(SimulatedBox(job, slow, rows).step(NoCompute{}).report.step_time);
  CHECK(held / fast == Approx(2 / 1.01).epsilon(0.01));
}

TEST_CASE("paths through the box are expected to share what they cross") {
  const auto rate = [](const std::string& word) {
    const BoxFabric fabric = fabrics_of(word).front();
    const auto s = on_fabric(eight_nodes("[plan]\ndata = \"ddp\"\n"), fabric);
    std::vector<std::pair<std::int64_t, std::int64_t>> across;
    for (std::int64_t i = 0; i < 8; ++i) across.emplace_back(i, (i + 4) % 8);
    return expected_rate(cluster_of(s, fabric), across).value;
  };
  CHECK(rate("nonblocking") == Approx(8 * nic));
  CHECK(rate("2:1") == Approx(4 * nic));
  CHECK(rate("4:1") == Approx(2 * nic));
  CHECK(rate("slow-nic") == Approx(7 * nic));  // to it and from it at half
}

}  // namespace stepcast::validate
