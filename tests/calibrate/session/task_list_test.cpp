#include "calibrate/session/task_list.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "calibrate/host/task.hpp"
#include "calibrate/session/task_collectives.hpp"
#include "calibrate/session/task_rows.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;

namespace {

sim::Scenario scenario(const std::string& text) {
  return sim::read_scenario(sim::read_toml(text, "test.toml"), catalogue());
}

const char* const two_gpus = R"(
[model]
name = "llama2-7b"
sequence = 2048
[cluster]
node = "dgx-h100"
gpus = 2
[software]
framework = "megatron-core"
[plan]
data = "zero1"
tensor = 2
[batch]
micro_batch = 1
global = 1
)";

const char* const experts_on_hosts = R"(
[model]
name = "tiny"
layers = 2
hidden = 64
heads = 2
kv_heads = 2
head_dim = 32
ffn_hidden = 96
vocab = 128
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 32
experts = 4
experts_per_token = 2
expert_ffn = 96
[cluster]
nodes = 2
[cluster.node]
name = "host"
gpus = 1
nic = "1 Gbit/s"
[cluster.fabric]
name = "fat-tree"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
)";

template <class Kind>
std::vector<Kind> of_kind(const JobList& list) {
  std::vector<Kind> out;
  for (const Job& job : list.jobs)
    if (const auto* task = std::get_if<Kind>(&job.task)) out.push_back(*task);
  return out;
}

/// Every job as if measured: products at 500 TFLOP/s, bytes at 2 TB/s.
sim::CalibrationTable measured(const JobList& list) {
  sim::CalibrationTable table;
  RowFrame frame;
  frame.gpu = "H100-SXM5-80GB";
  frame.source = {"s", "r", "high"};
  frame.facts.ranks = 2;
  for (const Job& job : list.jobs) {
    Measured m;
    m.timing.samples = 10;
    if (const auto* g = std::get_if<GemmTask>(&job.task))
      m.flops =
          2.0 * static_cast<double>(g->m) * static_cast<double>(g->n) * static_cast<double>(g->k);
    if (std::holds_alternative<AttentionTask>(job.task)) m.flops = 1e9;
    if (const auto* e = std::get_if<ElementwiseTask>(&job.task)) {
      const auto dtype = e->dtype == "fp32" ? workloads::Dtype::fp32 : workloads::Dtype::bf16;
      m.bytes = Bytes(e->tokens * e->width * sim::bytes_per_element(e->kind, e->backward, dtype));
    }
    m.timing.median =
        to_duration(m.flops / 5e14 + static_cast<double>(m.bytes.value) / 2e12 + 1e-9);
    add_row(table, job, frame, m);
  }
  return table;
}

}  // namespace

TEST_CASE("a scenario's products are listed once, in the layout of their call") {
  const JobList list = jobs_of({scenario(two_gpus)}, {.gpu = true, .ranks = 2});
  const auto gemms = of_kind<GemmTask>(list);
  // Llama-2 7B, tensor 2, 2048 tokens, packed projections (by hand).
  const auto has = [&](std::int64_t m, std::int64_t n, std::int64_t k, const char* layout) {
    return std::count_if(gemms.begin(), gemms.end(), [&](const GemmTask& t) {
      return t.m == m && t.n == n && t.k == k && t.layout == layout;
    });
  };
  CHECK(has(2048, 6144, 4096, "NT") == 1);   // q, k, v forward
  CHECK(has(2048, 4096, 6144, "NN") == 1);   // dgrad
  CHECK(has(6144, 4096, 2048, "TN") == 1);   // wgrad
  CHECK(has(2048, 11008, 4096, "NT") == 1);  // gate and up
  CHECK(has(2048, 4096, 5504, "NT") == 1);   // down
  CHECK(has(2048, 16000, 4096, "NT") == 1);  // head
  CHECK(gemms.size() == 15);                 // five weights, three passes
  for (const GemmTask& task : gemms) CHECK(task.accumulate == (task.layout == "TN"));
  const auto attention = of_kind<AttentionTask>(list);
  REQUIRE(attention.size() == 2);
  CHECK(attention[0].heads == 16);
  CHECK(attention[0].implementation == "own_flash");
}

TEST_CASE("nothing that the step runs is forgotten: with the list measured, no kernel is a guess") {
  const sim::Scenario s = scenario(two_gpus);
  const sim::CalibratedKernels kernels(measured(jobs_of({s}, {.gpu = true, .ranks = 2})),
                                       s.node.gpu, s.software);
  const auto program =
      workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software);
  std::map<sim::Provenance, int> origins;
  for (const workloads::Kernel& kernel : program.kernels) {
    const sim::Provenance origin = kernels.time_of(kernel).provenance;
    ++origins[origin];
    INFO(kernel.name << " " << sim::name_of(origin));
    CHECK(origin != sim::Provenance::datasheet);
    CHECK((origin != sim::Provenance::extrapolated ||
           kernel.family == workloads::KernelFamily::attention_forward ||
           kernel.family == workloads::KernelFamily::attention_backward));
  }
  CHECK(origins.size() > 1);
}

TEST_CASE("collectives of other groups than the ranks here are listed with the reason") {
  const JobList alone = jobs_of({scenario(two_gpus)}, {.gpu = true, .ranks = 1});
  CHECK(std::any_of(alone.not_here.begin(), alone.not_here.end(), [](const std::string& text) {
    return text.find("of 2 ranks: 1 take part here") != std::string::npos;
  }));
  for (const CollectiveTask& task : of_kind<CollectiveTask>(alone))
    CHECK(task.bytes == Bytes(0));  // a group of one has no collective: there is none
  const JobList both = jobs_of({scenario(two_gpus)}, {.gpu = true, .ranks = 2});
  std::map<std::string, std::set<std::int64_t>> sizes;
  for (const CollectiveTask& task : of_kind<CollectiveTask>(both))
    sizes[task.collective].insert(task.bytes.value);
  // 2048 x 4096 elements of 2 bytes over the tensor group.
  REQUIRE(sizes.contains("allreduce"));
  CHECK(sizes["allreduce"].contains(16 << 20));
  for (const auto& [collective, all] : sizes) {
    INFO(collective);
    CHECK(all.size() >= 3);  // a curve
    CHECK(*all.rbegin() >= 4 * *all.begin());
  }
  CHECK(!of_kind<OverlapTask>(both).empty());
}

TEST_CASE("a size alone gets neighbours, so that it is a curve") {
  CollectiveSizes sizes;
  sizes.add(workloads::CollectiveKind::all_gather, Bytes(1 << 20));
  const auto tasks = sizes.tasks(8);
  REQUIRE(tasks.size() == 4);
  CHECK(tasks.front().bytes == Bytes(1 << 18));
  CHECK(tasks.back().bytes == Bytes(1 << 22));
  sizes.add(workloads::CollectiveKind::all_gather, Bytes(1001));
  for (const CollectiveTask& task : sizes.tasks(8)) CHECK(task.bytes.value % 32 == 0);
}

TEST_CASE("what is timed on the host is what a layer of experts needs, byte for byte") {
  for (const char* plan : {"expert = 2", "expert = 1", "expert = 2\ncapacity_factor = 1.0",
                           "expert = 2\ncapacity_factor = 1.5\npad_to_capacity = true"}) {
    INFO(plan);
    const sim::Scenario s = scenario(std::string(experts_on_hosts) + "[plan]\n" + plan + "\n");
    const JobList list = jobs_of({s}, {.gpu = false, .ranks = 2});
    for (const std::string& reason : list.not_here) FAIL_CHECK(reason);
    sim::CalibrationTable table;
    RowFrame frame;
    frame.gpu = "host-core";
    frame.source = {"s", "r", "high"};
    for (const Job& job : list.jobs) {
      Measured m;
      m.timing.samples = 10;
      m.timing.median = Duration(1'000'000);
      m.flops = 1e3;
      if (const auto* e = std::get_if<ElementwiseTask>(&job.task)) {
        CHECK_NOTHROW(m.bytes = host::host_task(*e).bytes);
      }
      add_row(table, job, frame, m);
    }
    const sim::CalibratedKernels kernels(table, s.node.gpu, s.software);
    std::size_t of_experts = 0;
    for (const auto& kernel :
         workloads::make_step_program(s.model, s.plan, s.batch, s.precision, s.software).kernels) {
      INFO(kernel.name << " " << kernel.bytes.value);
      if (kernel.family == workloads::KernelFamily::grouped_gemm) {
        const auto products = of_kind<GemmTask>(list);
        CHECK(std::ranges::any_of(products, [&](const GemmTask& t) {
          return t.m == kernel.m && t.n == kernel.n && t.k == kernel.k &&
                 t.accumulate == kernel.accumulate;
        }));
        // One after the other.
        CHECK(seconds(kernels.time_of(kernel).duration) ==
              Approx(2e-9 * static_cast<double>(kernel.m * kernel.n * kernel.k * kernel.batch)));
      }
      if (!kernel.name.starts_with("layer.experts.")) continue;
      if (kernel.name.ends_with(".chunk_cat")) continue;  // a unit's, derived of copy_in for all
      ++of_experts;
      CHECK(kernels.time_of(kernel).provenance == sim::Provenance::measured);
    }
    CHECK(of_experts > 20);
  }
}

TEST_CASE("a GPU's experts are not timed yet, and it is said") {
  const JobList list =
      jobs_of({scenario(std::string(experts_on_hosts) + "[plan]\nexpert = 2\n")}, {.gpu = true});
  for (const char* name : {"permute", "choice", "gate", "activation"})
    CHECK(std::ranges::any_of(list.not_here, [&](const std::string& reason) {
      return reason.find(std::string("layer.experts.") + name) == 0;
    }));
}

TEST_CASE("points of a sweep share their tasks") {
  const std::string twice = std::string(STEPCAST_SOURCE_DIR) + "/scenarios/weak_scaling.toml";
  const auto points = scenarios_in({twice}, catalogue());
  CHECK(points.size() > 3);
  const JobList all = jobs_of(points, {.gpu = true, .ranks = 1});
  std::set<std::string> texts;
  for (const Job& job : all.jobs) CHECK(texts.insert(to_text(job)).second);
  CHECK(!of_kind<GemmTask>(all).empty());
  CHECK(jobs_of(scenarios_in({twice, twice}, catalogue()), {.gpu = true, .ranks = 1}).jobs.size() ==
        all.jobs.size());
}

TEST_CASE("every shipped scenario can be listed") {
  for (const char* name : {"weak_scaling", "strong_scaling", "model_parallel_256", "collectives",
                           "hardware_generations", "context_lengths", "model_sizes"}) {
    const auto points = scenarios_in(
        {std::string(STEPCAST_SOURCE_DIR) + "/scenarios/" + name + ".toml"}, catalogue());
    INFO(name);
    CHECK(!jobs_of(points, {.gpu = true, .ranks = 8}).jobs.empty());
  }
}

TEST_CASE("the grid holds the published shapes of Llama-2, each job once") {
  const JobList list = jobs_of(grid_for("cuda", false), {.gpu = true, .ranks = 8}, catalogue());
  const auto gemms = of_kind<GemmTask>(list);
  const auto has = [&](std::int64_t n, std::int64_t k) {
    return std::any_of(gemms.begin(), gemms.end(),
                       [&](const GemmTask& t) { return t.layout == "NT" && t.n == n && t.k == k; });
  };
  CHECK(has(12288, 4096));  // 7B q, k, v at tensor 1
  CHECK(has(1376 * 2, 4096));
  CHECK(has(5120, 13824 / 8));  // 13B down at tensor 8
  CHECK(has(10240, 8192));      // 70B q, k, v
  CHECK(has(57344, 8192));
  std::set<std::string> texts;
  for (const Job& job : list.jobs) CHECK(texts.insert(to_text(job)).second);
  CHECK(list.jobs.size() > 500);
  const JobList quick = jobs_of(grid_for("host", true), {.gpu = false, .ranks = 2}, catalogue());
  CHECK(quick.jobs.size() < 150);
  CHECK(of_kind<OverlapTask>(quick).empty());
}
