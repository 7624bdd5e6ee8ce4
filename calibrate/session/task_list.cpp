#include "calibrate/session/task_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/session/task_collectives.hpp"
#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/names.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "workloads/pieces/expert_sizes.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::calibrate {
namespace {

using workloads::Kernel;
using workloads::KernelFamily;

/// Kernels of other kinds that stand on one measured kind need its bandwidth, not their own size.
std::int64_t to_power_of_two(std::int64_t bytes) {
  return std::int64_t{1} << std::max(0L, std::lround(std::log2(static_cast<double>(bytes))));
}

/// Columns of an element-wise kernel of this kind on one rank.
std::int64_t width_of(std::string_view kind, const Kernel& kernel, const sim::Scenario& s) {
  const workloads::TransformerShape& model = s.model;
  if (kind == "rmsnorm" || kind == "layernorm" || kind == "embedding") return model.hidden;
  if (kind == "silu_mul" || kind == "gelu") return model.ffn_hidden / s.plan.tensor;
  if (kind == "cross_entropy") return model.vocab / s.plan.tensor;
  if (kind == "rope") {
    const bool keys = kernel.name.find("rope.k") != std::string::npos;
    const std::int64_t heads = (keys ? model.kv_heads : model.heads) / s.plan.tensor;
    return std::max<std::int64_t>(1, heads) * model.head_dim;
  }
  return 0;  // flat
}

class Collector {
 public:
  explicit Collector(const Bench& bench) : bench_(bench) {}

  void add(const sim::Scenario& scenario);
  JobList take();

 private:
  void add(const Kernel& kernel, const sim::Scenario& scenario);
  void add_gemm(const Kernel& kernel);
  void add_attention(const Kernel& kernel);
  void add_elementwise(const Kernel& kernel, const sim::Scenario& scenario);
  void add_grouped(Kernel kernel);
  void add_of_experts(const Kernel& kernel, const sim::Scenario& scenario);
  void add(const workloads::Collective& collective, const sim::Scenario& scenario);
  void job(Task task, Cache cache = Cache::cold);
  void not_here(std::string what) {
    if (reasons_.insert(what).second) list_.not_here.push_back(std::move(what));
  }

  Bench bench_;
  JobList list_;
  std::set<std::string> known_, reasons_;
  CollectiveSizes sizes_;
};

void Collector::job(Task task, Cache cache) {
  Job job{std::move(task), cache};
  if (known_.insert(to_text(job)).second) list_.jobs.push_back(std::move(job));
}

void Collector::add_gemm(const Kernel& kernel) {
  const std::string layout(sim::gemm_layout(kernel));
  if (layout.empty()) return not_here(kernel.name + ": products in a batch are not measured");
  job(GemmTask{.dtype = sim::word_for(sim::dtype_names, kernel.dtype),
               .m = kernel.m,
               .n = kernel.n,
               .k = kernel.k,
               .layout = layout,
               .accumulate = kernel.accumulate});
}

void Collector::add_attention(const Kernel& kernel) {
  job(AttentionTask{.dtype = sim::word_for(sim::dtype_names, kernel.dtype),
                    .backward = kernel.family == KernelFamily::attention_backward,
                    .batch = kernel.batch,
                    .heads = kernel.heads,
                    .kv_heads = kernel.kv_heads,
                    .sequence = kernel.sequence,
                    .head_dim = kernel.head_dim,
                    .causal = kernel.causal,
                    .implementation = bench_.attention()});
}

void Collector::add_elementwise(const Kernel& kernel, const sim::Scenario& scenario) {
  sim::ElementwiseUse use = sim::elementwise_use(kernel);
  if (use.kind == "rmsnorm" && scenario.model.norm == workloads::Norm::layernorm)
    use.kind = "layernorm";
  const std::int64_t bytes = use.exact
                                 ? kernel.bytes.value
                                 : to_power_of_two(std::max<std::int64_t>(kernel.bytes.value, 1));
  const std::int64_t each = sim::bytes_per_element(use.kind, use.backward, kernel.dtype);
  expects(each > 0, "a kind with known traffic");
  const std::int64_t elements = std::max<std::int64_t>(1, bytes / each);
  const std::int64_t width = width_of(use.kind, kernel, scenario);
  ElementwiseTask task{.kind = std::string(use.kind),
                       .dtype = sim::word_for(sim::dtype_names, kernel.dtype),
                       .tokens = 1,
                       .width = elements,
                       .backward = use.backward};
  if (width > 0) {
    task.tokens = std::max<std::int64_t>(1, elements / width);
    task.width = width;
  }
  job(std::move(task));
}

/// A core multiplies for one expert after the other.
void Collector::add_grouped(Kernel kernel) {
  if (bench_.gpu) return not_here(kernel.name + ": its kernels are not timed yet");
  kernel.batch = 1;
  add_gemm(kernel);
}

/// Choices of experts and what moves or weighs rows, as our own trainer has them.
void Collector::add_of_experts(const Kernel& kernel, const sim::Scenario& scenario) {
  const sim::ElementwiseUse use = sim::elementwise_use(kernel);
  if (bench_.gpu || !use.exact) return not_here(kernel.name + ": its kernels are not timed yet");
  const workloads::ExpertSizes s(
      {scenario.model, scenario.plan, scenario.batch, scenario.precision, scenario.software});
  ElementwiseTask task{.kind = std::string(use.kind),
                       .dtype = sim::word_for(sim::dtype_names, kernel.dtype),
                       .tokens = s.rows,
                       .width = use.kind == "weighted_silu_mul" ? s.ffn : s.hidden,
                       .backward = use.backward};
  if (use.kind == "router")
    task.tokens = s.tokens, task.width = s.all, task.per_token = s.per_token;
  if (use.kind == "permute" || use.kind == "unpermute")
    task.tokens = s.tokens, task.per_token = s.per_token, task.rows = s.sent;
  job(std::move(task));
}

void Collector::add(const Kernel& kernel, const sim::Scenario& scenario) {
  switch (kernel.family) {
    case KernelFamily::gemm:
      return add_gemm(kernel);
    case KernelFamily::attention_forward:
    case KernelFamily::attention_backward:
      return add_attention(kernel);
    case KernelFamily::grouped_gemm:
      return add_grouped(kernel);
    case KernelFamily::permute:
    case KernelFamily::router:
      return add_of_experts(kernel, scenario);
    case KernelFamily::sparse_forward:
    case KernelFamily::delta_forward:
    case KernelFamily::state_space_forward:
    case KernelFamily::sparse_backward:
    case KernelFamily::delta_backward:
    case KernelFamily::state_space_backward:
    case KernelFamily::quantize:
    case KernelFamily::host_copy:
    case KernelFamily::host_update:
      return not_here(kernel.name + ": its kernels are not timed yet");
    case KernelFamily::activation:
      return sim::elementwise_use(kernel).kind == "weighted_silu_mul"
                 ? add_of_experts(kernel, scenario)
                 : add_elementwise(kernel, scenario);
    case KernelFamily::pointwise:
    case KernelFamily::norm:
    case KernelFamily::norm_backward:
    case KernelFamily::rope:
    case KernelFamily::reduction:
    case KernelFamily::softmax:
    case KernelFamily::embedding:
    case KernelFamily::copy:
    case KernelFamily::optimizer:
      return add_elementwise(kernel, scenario);
  }
}

void Collector::add(const workloads::Collective& collective, const sim::Scenario& scenario) {
  const std::int64_t ranks = ranks_that_meet(scenario.plan, collective.group);
  if (ranks == bench_.ranks) return sizes_.add(collective.kind, collective.bytes);
  not_here(fmt::format("{} of {} ranks: {} take part here", sim::row_word(collective.kind), ranks,
                       bench_.ranks));
}

void Collector::add(const sim::Scenario& scenario) {
  if (scenario.collective) {
    workloads::Collective asked;
    asked.kind = scenario.collective->kind;
    asked.bytes = scenario.collective->bytes;
    if (scenario.gpus == bench_.ranks)
      sizes_.add(asked.kind, asked.bytes);
    else
      not_here(fmt::format("{} of {} ranks: {} take part here", sim::row_word(asked.kind),
                           scenario.gpus, bench_.ranks));
    return;
  }
  workloads::check(scenario.model, scenario.plan, scenario.batch, scenario.plan_origin);
  const workloads::StepProgram program = workloads::make_step_program(
      scenario.model, scenario.plan, scenario.batch, scenario.precision, scenario.software);
  for (const Kernel& kernel : program.kernels) add(kernel, scenario);
  for (const workloads::Collective& collective : program.collectives) add(collective, scenario);
}

/// The longest of one kind; null where there is none.
template <class Kind, class Measure>
const Kind* largest(const std::vector<Job>& jobs, Measure&& measure) {
  const Kind* best = nullptr;
  for (const Job& job : jobs)
    if (const auto* task = std::get_if<Kind>(&job.task))
      if (best == nullptr || measure(*task) > measure(*best)) best = task;
  return best;
}

JobList Collector::take() {
  job(LaunchTask{});
  for (const Bytes bytes : copy_sizes()) job(CopyTask{"memory", bytes});
  for (const CollectiveTask& task : sizes_.tasks(bench_.ranks)) job(task);
  if (!bench_.gpu) return std::move(list_);
  std::vector<OverlapTask> overlaps;
  const auto* gemm = largest<GemmTask>(list_.jobs, [](const GemmTask& t) {
    return static_cast<double>(t.m) * static_cast<double>(t.n) * static_cast<double>(t.k);
  });
  const auto* attention = largest<AttentionTask>(list_.jobs, [](const AttentionTask& t) {
    return static_cast<double>(t.batch * t.heads * t.sequence) * static_cast<double>(t.sequence);
  });
  for (const CollectiveTask& collective : sizes_.largest(bench_.ranks)) {
    if (gemm != nullptr) overlaps.push_back({*gemm, collective});
    if (attention != nullptr) overlaps.push_back({*attention, collective});
  }
  for (OverlapTask& overlap : overlaps) job(std::move(overlap));
  return std::move(list_);
}

/// Degrees that are to be the best: every power of two that cuts the scenario.
std::vector<sim::Scenario> with_all_degrees(const sim::Scenario& scenario) {
  if (scenario.open.empty()) return {scenario};
  for (const std::string& key : scenario.open)
    if (key != "plan.tensor" && key != "plan.pipeline")
      throw InputError(scenario.origin, key + " is \"best\": its kernels are not known yet",
                       "stepcast search --out DIR writes the best plan: calibrate for that");
  const auto open = [&](const char* key) { return std::ranges::count(scenario.open, key) > 0; };
  std::vector<sim::Scenario> out;
  for (std::int64_t tensor = 1; tensor <= scenario.gpus; tensor *= 2)
    for (std::int64_t pipeline = 1; tensor * pipeline <= scenario.gpus; pipeline *= 2) {
      if (!open("plan.tensor") && tensor != scenario.plan.tensor) continue;
      if (!open("plan.pipeline") && pipeline != scenario.plan.pipeline) continue;
      try {
        sim::Scenario cut = sim::with_degrees(scenario, tensor, pipeline);
        workloads::check(cut.model, cut.plan, cut.batch, cut.plan_origin);
        out.push_back(std::move(cut));
      } catch (const InputError&) {  // degrees that do not divide are no candidates
      }
    }
  return out;
}

}  // namespace

std::vector<sim::Scenario> scenarios_in(const std::vector<std::string>& files,
                                        const sim::Catalogue& catalogue) {
  std::vector<sim::Scenario> scenarios;
  for (const std::string& file : files) {
    const sim::Study study = sim::read_study(sim::read_toml_file(file));
    for (std::size_t i = 0; i < study.num_points(); ++i)
      for (sim::Scenario& s :
           with_all_degrees(sim::read_scenario(study.document_of(study.point(i)), catalogue)))
        scenarios.push_back(std::move(s));
  }
  return scenarios;
}

std::string to_text(const Job& job) {
  return to_text(job.task) + (job.cache == Cache::hot ? ", hot" : "");
}

JobList jobs_of(const std::vector<sim::Scenario>& scenarios, const Bench& bench) {
  Collector collector(bench);
  for (const sim::Scenario& scenario : scenarios) collector.add(scenario);
  return collector.take();
}

}  // namespace stepcast::calibrate
