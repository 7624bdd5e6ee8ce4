// Layers of experts in the host trainer: gradients are slopes, and every plan learns what one
// process does.
#include "validate/trainer/model/experts.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"
#include "tests/validate/deferred_device.hpp"
#include "tests/validate/trainer_fixtures.hpp"
#include "workloads/memory/memory.hpp"

namespace stepcast::validate {
namespace {

using enum workloads::DataParallel;
using workloads::Recompute;

/// What the tests vary of experts.
struct ExpertCut {
  std::int64_t experts = 4, per_token = 2, degree = 1;
  double capacity = 0.0;
  bool padded = false;
  std::int64_t dense_layers = 0, every = 1;
};

TrainerJob expert_job(const Cut& cut, const ExpertCut& e) {
  TrainerJob job = small_job(cut);
  job.model.experts.count = e.experts;
  job.model.experts.per_token = e.per_token;
  job.model.experts.ffn = 12;
  job.model.experts.dense_layers = e.dense_layers;
  job.model.experts.every = e.every;
  job.plan.expert.degree = e.degree;
  job.plan.expert.capacity_factor = e.capacity;
  job.plan.expert.pad_to_capacity = e.padded;
  return job;
}

struct ExpertCase {
  const char* name;
  Cut cut;
  ExpertCut experts;
};

const std::vector<ExpertCase> expert_cases{
    {"data", {.data_degree = 2}, {}},
    {"data, 8 experts", {.data_degree = 2}, {.experts = 8}},
    {"expert 2", {.data_degree = 2}, {.degree = 2}},
    {"expert 2, of 8, 3 each", {.data_degree = 2}, {.experts = 8, .per_token = 3, .degree = 2}},
    {"expert 2, one expert each", {.data_degree = 2}, {.experts = 2, .degree = 2}},
    {"expert 4", {.data_degree = 4}, {.degree = 4}},
    {"expert 4, of 8", {.data_degree = 4}, {.experts = 8, .degree = 4}},
    {"expert 2 of 4 ranks", {.data_degree = 4, .tied = true}, {.experts = 8, .degree = 2}},
    {"expert 2, the first layer and every second dense",
     {.data_degree = 2},
     {.experts = 8, .degree = 2, .dense_layers = 1, .every = 2}},
    {"expert 2, recompute",
     {.data_degree = 2, .recompute = Recompute::full},
     {.degree = 2, .dense_layers = 1}},
    {"one expert for a token", {.data_degree = 2}, {.per_token = 1, .degree = 2}},
    {"zero1", {.data = zero1, .data_degree = 2}, {}},
    {"zero1, expert 2", {.data = zero1, .data_degree = 2}, {.degree = 2}},
    {"zero1, expert 2 of 4 ranks",
     {.data = zero1, .data_degree = 4, .micro_batches = 1},
     {.experts = 8, .degree = 2}},
    {"pipeline, expert 2", {.data_degree = 2, .pipeline = 2}, {.degree = 2, .dense_layers = 1}},
    {"interleaved, zero1, expert 2, tied",
     {.data = zero1, .data_degree = 2, .pipeline = 2, .tied = true, .virtual_stages = 2},
     {.experts = 8, .degree = 2}},
    {"dropped", {.data_degree = 2}, {.degree = 2, .capacity = 1.0}},
    {"dropped, one rank's experts", {.data_degree = 2}, {.capacity = 1.0}},
    {"padded", {.data_degree = 2}, {.experts = 8, .degree = 2, .capacity = 1.25, .padded = true}},
    {"padded, zero1, expert 4",
     {.data = zero1, .data_degree = 4, .micro_batches = 1},
     {.degree = 4, .capacity = 1.0, .padded = true}},
};

TrainerJob one_rank_job(const TrainerJob& job) {
  TrainerJob one = on_one_rank(job);
  one.plan.expert.capacity_factor = job.plan.expert.capacity_factor;
  one.plan.expert.pad_to_capacity = job.plan.expert.pad_to_capacity;
  return one;
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return worst;
}

// Capacity is counted in each micro-batch of a rank, which is a micro-batch of the one process.
TEST_CASE("every plan of experts learns as one process does on the same data, in float64") {
  for (const ExpertCase& c : expert_cases) {
    const TrainerJob job = expert_job(c.cut, c.experts);
    const auto one = losses<double>(one_rank_job(job), 20), many = losses<double>(job, 20);
    INFO(c.name);
    CHECK(farthest(many, one) < 1e-9);
    CHECK(one.back() < 0.98 * one.front());
  }
}

TEST_CASE("every plan of experts learns as one process does on the same data, in float32") {
  for (const ExpertCase& c : expert_cases) {
    const TrainerJob job = expert_job(c.cut, c.experts);
    const auto one = losses<float>(one_rank_job(job), 12), many = losses<float>(job, 12);
    INFO(c.name);
    CHECK(farthest(many, one) < 2e-4);
  }
}

TEST_CASE("clipping sees the norm of a model of experts under every plan") {
  for (const ExpertCase& c : expert_cases) {
    const TrainerJob job = expert_job(c.cut, c.experts);
    double norm = 0.0;
    on_ranks<double>(one_rank_job(job), [&](Trainer<double>& trainer, const auto& data) {
      norm = trainer.step(data(0)).gradient_norm;
    });
    INFO(c.name);
    on_ranks<double>(job, [&](Trainer<double>& trainer, const auto& data) {
      if (std::abs(trainer.step(data(0)).gradient_norm / norm - 1.0) > 1e-10)
        throw std::runtime_error("another norm");
    });
  }
}

// But for the order in which the test adds up replicas.
TEST_CASE("lanes of their own leave the loss of experts as it is one after the other") {
  for (const ExpertCase& c : expert_cases) {
    TrainerJob job = expert_job(c.cut, c.experts);
    job.software = lanes_trainer_software();
    job.software.data.bucket_bytes = 4 * 1500;
    TrainerJob one_lane = job;
    one_lane.software = trainer_software();
    one_lane.software.data.bucket_bytes = job.software.data.bucket_bytes;
    one_lane.software.data.gradient_overlap = true;
    INFO(c.name);
    CHECK(farthest(losses<double>(job, 4), losses<double>(one_lane, 4)) < 1e-14);
  }
}

TEST_CASE("experts learn the same whatever runs beside what") {
  for (const ExpertCase& c : expert_cases) {
    if (c.cut.pipeline > 1) continue;  // its ranks draw apart
    TrainerJob job = expert_job(c.cut, c.experts);
    const auto alone = losses<double>(job, 2);
    job.software = lanes_trainer_software();
    job.software.data.bucket_bytes = 4 * 1500;
    INFO(c.name);
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
      const auto deferred = [seed](const TrainerJob& of, Communicator& processes) {
        return make_deferred_device(
            of, processes, make_host_kernels<double>(of.batch.sequence, of.model.head_dim), seed);
      };
      CHECK(farthest(losses<double>(job, 2, deferred), alone) < 1e-12);
    }
  }
}

TEST_CASE("a rank with experts allocates what the simulator says, to the byte") {
  for (const ExpertCase& c : expert_cases) {
    const TrainerJob job = expert_job(c.cut, c.experts);
    std::mutex mutex;
    on_ranks<float>(job, [&](Trainer<float>& trainer, const auto& data) {
      trainer.step(data(0));
      const Bytes told = workloads::memory_of_stage(job.model, job.plan, job.batch, job.precision,
                                                    job.software, trainer.share().at.pipeline)
                             .total();
      const std::lock_guard lock(mutex);
      INFO(c.name << ", stage " << trainer.share().at.pipeline);
      CHECK(trainer.allocated().value == told.value);
    });
  }
}

/// Slopes of the loss by some weights of every tensor, on one process.
void check_slopes_of_experts(const TrainerJob& job) {
  constexpr double h = 1e-6;
  on_ranks<double>(job, [&](Trainer<double>& trainer, const auto& data) {
    Parameters<double>& parameters = trainer.parameters();
    trainer.forward_and_backward(data(0));
    const std::vector<double> gradients(parameters.own_gradients().begin(),
                                        parameters.own_gradients().end());
    std::set<std::string> kinds;
    for (std::size_t unit = 1; unit < trainer.share().units(); ++unit) {
      const auto tensors = tensors_of_unit(job, trainer.share(), unit);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto part = parameters.own_gradient(unit, i);
        const auto from = static_cast<std::size_t>(part.data() - parameters.own_gradients().data());
        for (std::size_t at = 0; at < part.size();
             at += std::max<std::size_t>(1, part.size() / 7)) {
          double& weight = parameters.own_weights()[from + at];
          const double before = weight, known = gradients[from + at];
          weight = before + h;
          const double above = *trainer.forward_and_backward(data(0)).loss;
          weight = before - h;
          const double below = *trainer.forward_and_backward(data(0)).loss;
          weight = before;
          INFO(tensors[i].name << " element " << at);
          CHECK(known == Approx((above - below) / (2 * h)).epsilon(1e-5).margin(1e-8));
        }
        kinds.insert(tensors[i].name.substr(tensors[i].name.find('.', 6) + 1));
      }
    }
    CHECK(kinds.contains("router"));
    CHECK(kinds.contains("experts.gate"));
    CHECK(kinds.contains("experts.up"));
    CHECK(kinds.contains("experts.down"));
  });
}

TEST_CASE("gradients of routers, experts and what is before them are the slopes of the loss") {
  Cut cut{.micro_batches = 1};
  for (const ExpertCut& experts :
       {ExpertCut{}, ExpertCut{.experts = 8, .dense_layers = 1}, ExpertCut{.per_token = 1},
        ExpertCut{.capacity = 1.0}, ExpertCut{.capacity = 1.5, .padded = true}}) {
    TrainerJob job = expert_job(cut, experts);
    job.model.layers = 2;
    check_slopes_of_experts(job);
    job.model.experts.score = workloads::RouterScore::sigmoid;
    check_slopes_of_experts(job);
  }
}

/// What each rank's step does of experts, by name, in one micro-batch and layer.
std::vector<std::string> names_of_experts(const ExpertCut& experts) {
  TrainerJob job = expert_job({.data_degree = 2, .micro_batches = 1}, experts);
  job.model.layers = 1;
  std::vector<std::string> names;
  on_ranks<float>(job, [&](Trainer<float>& trainer, const auto& data) {
    OperationLog log;
    trainer.step(data(0), &log);
    if (trainer.share().at.data != 0) return;
    for (const Operation& o : log.operations()) {
      const std::string name = std::visit([](const auto& what) { return what.name; }, o.what);
      if (name.starts_with("layer.experts.")) names.push_back(name.substr(14));
    }
  });
  return names;
}

TEST_CASE("a layer of experts does one thing after the other, backward in the reverse order") {
  using Names = std::vector<std::string>;
  CHECK(names_of_experts({.experts = 8, .degree = 2}) == Names{"router.forward",
                                                               "choice.forward",
                                                               "counts",
                                                               "permute.forward",
                                                               "dispatch.forward",
                                                               "sort.forward",
                                                               "gate.forward",
                                                               "up.forward",
                                                               "activation.forward",
                                                               "down.forward",
                                                               "unsort.forward",
                                                               "combine.forward",
                                                               "unpermute.forward",
                                                               "unpermute.backward",
                                                               "combine.backward",
                                                               "unsort.backward",
                                                               "down.dgrad",
                                                               "down.wgrad",
                                                               "activation.backward",
                                                               "gate.dgrad",
                                                               "gate.wgrad",
                                                               "up.dgrad",
                                                               "up.wgrad",
                                                               "sort.backward",
                                                               "dispatch.backward",
                                                               "permute.backward",
                                                               "choice.backward",
                                                               "router.dgrad",
                                                               "router.wgrad",
                                                               "sum.backward"});
  const auto has = [](const Names& names, const char* name) {
    return std::ranges::find(names, name) != names.end();
  };
  const Names one_each = names_of_experts({.experts = 2, .degree = 2});
  CHECK(has(one_each, "counts"));
  CHECK_FALSE(has(one_each, "sort.forward"));
  const Names padded =
      names_of_experts({.experts = 8, .degree = 2, .capacity = 1.0, .padded = true});
  CHECK_FALSE(has(padded, "counts"));  // everybody knows how many come
  CHECK(has(padded, "dispatch.forward"));
  const Names alone = names_of_experts({.experts = 8});
  CHECK_FALSE(has(alone, "counts"));
  CHECK_FALSE(has(alone, "dispatch.forward"));
}

/// Without what follows from how many rows came, where the simulator takes the fullest rank's; of
/// dropped tokens also from how many went.
Operation without_rows(Operation o, bool drops) {
  auto* collective = std::get_if<workloads::Collective>(&o.what);
  if (collective != nullptr && drops && collective->name.starts_with("layer.experts."))
    collective->bytes = {};
  auto* kernel = std::get_if<workloads::Kernel>(&o.what);
  if (kernel == nullptr || !kernel->name.starts_with("layer.experts.")) return o;
  using enum workloads::KernelFamily;
  const bool product = kernel->family == grouped_gemm;
  const bool sort = kernel->name.find("sort") != std::string::npos;
  const bool moves = kernel->family == permute && (sort || drops);
  if (!product && !moves && kernel->family != activation) return o;
  (kernel->name.ends_with(".wgrad") ? kernel->k : kernel->m) = 0;
  kernel->flops = {};
  kernel->bytes = {};
  return o;
}

TEST_CASE("a step of experts does what the simulator's program says, lane by lane") {
  for (const ExpertCase& c : expert_cases)
    for (const bool lanes : {false, true}) {
      TrainerJob job = expert_job(c.cut, c.experts);
      if (lanes) job.software = lanes_trainer_software();
      if (lanes) job.software.data.bucket_bytes = 4 * 1500;
      const workloads::StepProgram program =
          workloads::make_step_program(job.model, job.plan, job.batch, job.precision, job.software);
      const bool counted = !c.experts.padded && (c.experts.degree > 1 || c.experts.capacity > 0);
      const bool drops = counted && c.experts.capacity > 0;
      std::vector<std::string> found;
      std::mutex mutex;
      on_ranks<float>(job, [&](Trainer<float>& trainer, const auto& data) {
        OperationLog log;
        trainer.step(data(0));
        trainer.step(data(1), &log);
        std::vector<Operation> done = log.operations();
        std::vector<Operation> planned = operations_of(program, trainer.share().at.pipeline);
        for (auto* operations : {&done, &planned})
          if (counted)
            for (Operation& o : *operations) o = without_rows(std::move(o), drops);
        const std::lock_guard lock(mutex);
        if (const auto difference = first_difference(done, planned)) found.push_back(*difference);
      });
      INFO(c.name << (lanes ? ", on lanes" : ""));
      CHECK(found == std::vector<std::string>{});
    }
}

TEST_CASE("the shares of all ranks make up the experts of the model") {
  const TrainerJob job =
      expert_job({.data_degree = 4, .pipeline = 2}, {.experts = 8, .degree = 2, .dense_layers = 1});
  std::int64_t elements = 0;
  for (std::int64_t rank = 0; rank < job.plan.ranks(); ++rank) {
    const RankShare share(job, rank);
    for (std::size_t unit = 0; unit < share.units(); ++unit)
      for (const TensorPart& part : tensors_of_unit(job, share, unit))
        if (part.expert) elements += static_cast<std::int64_t>(part.elements());
  }
  // 3 layers of 8 experts of three matrices, on 2 copies.
  CHECK(elements == 2 * 3 * 8 * 3 * job.model.hidden * job.model.experts.ffn);
}

TEST_CASE("what of experts the trainer does not know is refused by name") {
  const auto refused = [](auto change, const char* word) {
    TrainerJob job = expert_job({.data_degree = 4}, {.degree = 2});
    CHECK_NOTHROW(check(job, "scenario.toml:3"));
    change(job);
    CHECK_THROWS_WITH(check(job, "scenario.toml:3"), Catch::Contains(word));
  };
  refused([](TrainerJob& j) { j.plan.data = zero3; }, "zero1");
  refused([](TrainerJob& j) { j.plan.data = zero2; }, "zero1");
  refused([](TrainerJob& j) { j.plan.tensor = 2, j.plan.sequence_parallel = true; }, "tensor");
  refused([](TrainerJob& j) { j.plan.expert.degree = 3; }, "expert");
  refused([](TrainerJob& j) { j.plan.expert.degree = 8; }, "expert");
  refused([](TrainerJob& j) { j.model.experts.per_token = 5; }, "experts_per_token");
  refused([](TrainerJob& j) { j.model.experts.shared_ffn = 12; }, "shared experts");
  refused([](TrainerJob& j) { j.model.experts.biases = true; }, "biases");
  refused([](TrainerJob& j) { j.plan.expert.dispatcher = workloads::Dispatcher::all_gather; },
          "all_to_all");
  refused([](TrainerJob& j) { j.plan.expert.pad_to_capacity = true; }, "capacity_factor");
  refused([](TrainerJob& j) { j.plan.expert.overlap = true; }, "overlap");
  refused([](TrainerJob& j) { j.model.experts = {}; }, "experts");
}

}  // namespace
}  // namespace stepcast::validate
