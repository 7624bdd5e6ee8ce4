#include "validate/study/trends.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/units.hpp"

namespace stepcast::validate {
namespace {

using sim::Scenario;
using sim::StepReport;
using workloads::CollectiveKind;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double any_more = infinity, any_less = -infinity;

double change(double before, double after) { return 100 * (after / before - 1); }
double rate(const StepReport& r) {
  return r.tokens_per_second / static_cast<double>(r.scenario.gpus);
}
double exposed(const StepReport& r) {
  return 100 * seconds(r.exposed.total()) / seconds(r.step_time);
}

// 7B with FSDP: the work per GPU kept, and the batch kept.
const StepReport& weak(StudyRuns& runs, std::int64_t nodes) {
  return runs.step("weak_scaling", [&](const Scenario& s) { return s.nodes == nodes; });
}
const StepReport& strong(StudyRuns& runs, std::int64_t nodes) {
  return runs.step("strong_scaling", [&](const Scenario& s) { return s.nodes == nodes; });
}
/// From 128 to 2,048 GPUs.
template <class Value>
double weak_change(StudyRuns& runs, Value value) {
  return change(value(weak(runs, 16)), value(weak(runs, 256)));
}

double busbw(StudyRuns& runs, CollectiveKind kind, std::int64_t nodes, std::int64_t mib) {
  return runs
      .collective("collectives",
                  [&](const Scenario& s) {
                    return s.collective->kind == kind && s.nodes == nodes &&
                           s.collective->bytes.value == mib << 20;
                  })
      .time.busbw.value;
}
/// Of the bus bandwidth of 4 nodes, what 256 keep.
double kept(StudyRuns& runs, CollectiveKind kind, std::int64_t mib) {
  return 100 * busbw(runs, kind, 256, mib) / busbw(runs, kind, 4, mib);
}

/// The largest gain of bus bandwidth by twice the nodes, over all sizes.
double largest_rise(StudyRuns& runs) {
  double most = any_less;
  for (const std::int64_t mib : {1, 4, 16, 64, 256, 1024, 4096, 16384})
    for (std::int64_t nodes = 4; nodes < 512; nodes *= 2)
      most = std::max(most, change(busbw(runs, CollectiveKind::all_reduce, nodes, mib),
                                   busbw(runs, CollectiveKind::all_reduce, 2 * nodes, mib)));
  return most;
}

// Tensor and pipeline degrees of 7B.
struct Grid {
  const char* study;
  double local;  // sequences per GPU

  std::vector<const StepReport*> all(StudyRuns& runs) const {
    return runs.steps(study, [&](const Scenario& s) { return local_batch(s) == local; });
  }
  const StepReport& at(StudyRuns& runs, std::int64_t tensor, std::int64_t pipeline) const {
    return runs.step(study, [&](const Scenario& s) {
      return local_batch(s) == local && s.plan.tensor == tensor && s.plan.pipeline == pipeline;
    });
  }
  /// The fastest of the degrees 2 and 4 over pure FSDP.
  double gain_of_small_degrees(StudyRuns& runs) const {
    double most = any_less;
    for (const auto& [tensor, pipeline] : {std::pair{2, 1}, {4, 1}, {1, 2}, {1, 4}})
      most = std::max(most, gain(runs, tensor, pipeline));
    return most;
  }
  double gain(StudyRuns& runs, std::int64_t tensor, std::int64_t pipeline) const {
    return change(rate(at(runs, 1, 1)), rate(at(runs, tensor, pipeline)));
  }
  double winners(StudyRuns& runs) const {
    const double fsdp = rate(at(runs, 1, 1));
    const auto reports = all(runs);
    return static_cast<double>(std::ranges::count_if(
        reports, [&](const StepReport* report) { return rate(*report) > fsdp; }));
  }
  /// Tensor degree 16 over the slowest of the smaller ones, without a pipeline.
  double gain_of_16(StudyRuns& runs) const {
    double slowest = infinity;
    for (const std::int64_t tensor : {1, 2, 4, 8})
      slowest = std::min(slowest, rate(at(runs, tensor, 1)));
    return change(slowest, rate(at(runs, 16, 1)));
  }
};
constexpr Grid small_roomy{"model_parallel_256", 2}, small_tight{"model_parallel_256", 1},
    large_roomy{"model_parallel_2048", 2}, large_tight{"model_parallel_2048", 1};

/// Context degree 2 over tensor degree 2, 7B at 4,096 tokens on 2,048 GPUs.
double context_over_tensor(StudyRuns& runs) {
  const StepReport& tensor = large_roomy.at(runs, 2, 1);
  Scenario scenario = tensor.scenario;
  scenario.plan.context = 2;
  return change(rate(tensor), rate(runs.again(with_degrees(scenario, 1, 1))));
}

const StepReport& generation(StudyRuns& runs, const char* node) {
  const std::string name = runs.set().node(node);
  return runs.step("hardware_generations",
                   [&](const Scenario& s) { return s.node.name == name && s.global_batch == 512; });
}
double mfu_between(StudyRuns& runs, const char* from, const char* to) {
  return 100 * (generation(runs, to).mfu - generation(runs, from).mfu);
}
double throughput_over_peak(StudyRuns& runs) {
  const StepReport &a100 = generation(runs, "dgx-a100"), &h100 = generation(runs, "dgx-h100");
  const double peaks = h100.scenario.node.gpu.tensor_peak / a100.scenario.node.gpu.tensor_peak;
  return 100 * h100.tokens_per_second / a100.tokens_per_second / peaks;
}

/// The largest change of MFU from A100 to H100 over the sizes of model.
double largest_of_sizes(StudyRuns& runs) {
  double most = any_less;
  for (const char* model : {"llama2-1b", "llama2-7b", "llama2-13b", "llama2-70b"}) {
    const auto mfu = [&](const char* node) {
      return runs
          .step("model_sizes",
                [&](const Scenario& s) {
                  return s.model.name == model && s.node.name == runs.set().node(node);
                })
          .mfu;
    };
    most = std::max(most, 100 * (mfu("dgx-h100") - mfu("dgx-a100")));
  }
  return most;
}

/// The smallest gain of MFU by a sequence twice as long, in points.
double least_gain_of_length(StudyRuns& runs) {
  const auto mfu = [&](std::int64_t tokens) {
    return runs
        .step("context_lengths", [&](const Scenario& s) { return s.batch.sequence == tokens; })
        .mfu;
  };
  double least = infinity;
  for (std::int64_t tokens = 2048; tokens < 32768; tokens *= 2)
    least = std::min(least, 100 * (mfu(2 * tokens) - mfu(tokens)));
  return least;
}

/// What a doubling of the FSDP group saves over what the one before saved, at most.
double largest_of_savings(StudyRuns& runs) {
  const auto saved = [&](std::int64_t nodes) {
    return static_cast<double>(
        (weak(runs, nodes).memory.tensors() - weak(runs, 2 * nodes).memory.tensors()).value);
  };
  double most = any_less;
  for (std::int64_t nodes = 2; nodes < 256; nodes *= 2)
    most = std::max(most, 100 * saved(nodes) / saved(nodes / 2));
  return most;
}

/// Twice the links of the same speed: NCCL plans with their number and a speed of its own.
double gain_from_nvlink(StudyRuns& runs, const StepReport& report) {
  Scenario scenario = report.scenario;
  scenario.node.gpu.nvlink_links *= 2;
  scenario.node.gpu.nvlink = scenario.node.gpu.nvlink * 2.0;
  return change(report.tokens_per_second, runs.again(scenario).tokens_per_second);
}
double gain_from_compute(StudyRuns& runs, const StepReport& report) {
  Scenario scenario = report.scenario;
  scenario.node.gpu.tensor_peak = scenario.node.gpu.tensor_peak * 2.0;
  return change(report.tokens_per_second, runs.again(scenario).tokens_per_second);
}

using R = StudyRuns&;
constexpr double wide = 5;  // of a figure that is read as printed, in percent or points

constexpr Trend all_trends[] = {
    {1, "MFU, 128 to 2,048 GPUs", "falls", any_less, 0,
     [](R r) { return weak_change(r, [](const StepReport& s) { return s.mfu; }); }},
    {1, "tokens per joule, 128 to 2,048 GPUs", "-33.3 +-5", -33.3 - wide, -33.3 + wide,
     [](R r) { return weak_change(r, [](const StepReport& s) { return s.tokens_per_joule; }); }},
    {1, "power of 2,048 GPUs over 256 times that of 8", "0 +-10", -10, 10,
     [](R r) { return change(weak(r, 1).power_per_gpu.value, weak(r, 256).power_per_gpu.value); }},
    {2, "AllReduce, largest rise of bus bandwidth by twice the nodes", "none (1)", any_less, 1,
     largest_rise},
    {2, "AllReduce, 16 GiB, 256 nodes keep of 4", "94 +-5 (340 of 361 GB/s)", 94 - wide, 94 + wide,
     [](R r) { return kept(r, CollectiveKind::all_reduce, 16384); }},
    {2, "AllGather, 256 MiB, keep less than AllReduce (points)", "falls behind", any_less, 0,
     [](R r) {
       return kept(r, CollectiveKind::all_gather, 256) - kept(r, CollectiveKind::all_reduce, 256);
     }},
    {3, "exposed on 128 GPUs", "hidden (below 2)", 0, 2, [](R r) { return exposed(weak(r, 16)); }},
    {3, "exposed on 2,048 GPUs", "bound (above 10)", 10, 100,
     [](R r) { return exposed(weak(r, 256)); }},
    {3, "tokens/s per GPU, 128 to 2,048 GPUs", "-37.22 +-5", -37.22 - wide, -37.22 + wide,
     [](R r) { return weak_change(r, rate); }},
    {3, "power per GPU, 128 to 2,048 GPUs", "-5.87 +-3", -5.87 - 3, -5.87 + 3,
     [](R r) { return weak_change(r, [](const StepReport& s) { return s.power_per_gpu.value; }); }},
    {4, "fixed batch, MFU on 2 nodes", "about 40 (+-5)", 40 - wide, 40 + wide,
     [](R r) { return 100 * strong(r, 2).mfu; }},
    {4, "fixed batch, MFU on 32 nodes", "below 15 (+5)", 0, 15 + wide,
     [](R r) { return 100 * strong(r, 32).mfu; }},
    {4, "fixed batch, gain of 16 to 32 nodes", "marginal (below 25)", any_less, 25,
     [](R r) { return change(strong(r, 16).tokens_per_second, strong(r, 32).tokens_per_second); }},
    {5, "2,048 GPUs, 2 sequences each: best of degrees 2 and 4", "gains", 0, any_more,
     [](R r) { return large_roomy.gain_of_small_degrees(r); }},
    {5, "2,048 GPUs, 1 sequence each: best of degrees 2 and 4", "gains", 0, any_more,
     [](R r) { return large_tight.gain_of_small_degrees(r); }},
    {5, "2,048 GPUs, 2 sequences each: pipeline 2", "gains", 0, any_more,
     [](R r) { return large_roomy.gain(r, 1, 2); }},
    {5, "2,048 GPUs, 2 sequences each: exposed with tensor 2 (points)", "falls", any_less, 0,
     [](R r) { return exposed(large_roomy.at(r, 2, 1)) - exposed(large_roomy.at(r, 1, 1)); }},
    {5, "2,048 GPUs: tensor 16 over the slowest of 1 to 8", "worst", any_less, 0,
     [](R r) { return large_roomy.gain_of_16(r); }},
    {5, "256 GPUs, 2 sequences each: best of degrees 2 and 4", "gains nothing", any_less, 0,
     [](R r) { return small_roomy.gain_of_small_degrees(r); }},
    {5, "settings that win, 2,048 less 256 GPUs, 1 sequence each", "more", 1, any_more,
     [](R r) { return large_tight.winners(r) - small_tight.winners(r); }},
    {5, "settings that win on 2,048 GPUs, 1 less 2 sequences each", "more", 1, any_more,
     [](R r) { return large_tight.winners(r) - large_roomy.winners(r); }},
    {6, "MFU of A100, 32 nodes", "59.7 +-5", 59.7 - wide, 59.7 + wide,
     [](R r) { return 100 * generation(r, "dgx-a100").mfu; }},
    {6, "MFU of H100, 32 nodes", "40.8 +-5", 40.8 - wide, 40.8 + wide,
     [](R r) { return 100 * generation(r, "dgx-h100").mfu; }},
    {6, "MFU, V100 to A100 (points)", "rises", 0, any_more,
     [](R r) { return mfu_between(r, "dgx-1v", "dgx-a100"); }},
    {6, "throughput over peak, A100 to H100", "far less (below 80)", any_less, 80,
     throughput_over_peak},
    {7, "MFU, A100 to H100, largest of 1B to 70B (points)", "falls", any_less, 0, largest_of_sizes},
    {8, "MFU by twice the sequence, least from 2k to 32k (points)", "rises", 0, any_more,
     least_gain_of_length},
    {9, "context 2 over tensor 2 at 4,096 tokens", "worse", any_less, 0, context_over_tensor},
    {10, "memory saved by twice the GPUs, of what the doubling before saved", "ever less", 0, 100,
     largest_of_savings},
    {11, "twice the NVLink, 2,048 GPUs, tensor 2", "gains", 0, any_more,
     [](R r) { return gain_from_nvlink(r, large_roomy.at(r, 2, 1)); }},
    {11, "twice the tensor peak, 2,048 GPUs", "hardly (below 10)", any_less, 10,
     [](R r) { return gain_from_compute(r, weak(r, 256)); }},
};

}  // namespace

std::span<const Trend> trends() { return all_trends; }

}  // namespace stepcast::validate
