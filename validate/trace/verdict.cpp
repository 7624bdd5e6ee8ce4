#include "validate/trace/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/files/names.hpp"

namespace stepcast::validate {
namespace {

using workloads::KernelFamily;

/// Calls that a rank of the scenario may make in a step.
struct Range {
  double least = 1e300, most = 0;

  void add(double calls) {
    least = std::min(least, calls);
    most = std::max(most, calls);
  }
  /// A handful of calls, and three in a hundred, are nobody's concern: a rope table, a gradient's
  /// norm, a head in parts.
  bool holds(double calls) const { return calls >= 0.97 * least - 4 && calls <= 1.03 * most + 4; }
};

struct Ranges {
  Range products, attention;
};

/// The scenario's program with these choices instead of its own.
void add_program(const sim::Scenario& s, workloads::Recompute recompute,
                 workloads::AttentionKernel attention, bool packed, Ranges& out) {
  workloads::ParallelPlan plan = s.plan;
  workloads::Software software = s.software;
  plan.recompute = recompute;
  software.attention.kernel = attention;
  software.products.packed = packed;
  const workloads::StepProgram program =
      workloads::make_step_program(s.model, plan, s.batch, s.precision, software);
  for (const engine::Program& role : program.roles) {
    double products = 0, attentions = 0;
    for (const engine::Instruction& i : role.instructions) {
      if (i.op != engine::Op::work) continue;
      const KernelFamily family = program.kernels[i.arg].family;
      products += family == KernelFamily::gemm ? 1 : 0;
      attentions += workloads::mixes_forward(family) ? 1 : 0;
    }
    out.products.add(products);
    if (attentions > 0) out.attention.add(attentions);
  }
}

/// What it may do unasked: any recompute, attention fused or not.
Ranges ranges_of(const sim::Scenario& s) {
  Ranges out;
  for (const auto recompute : {workloads::Recompute::none, workloads::Recompute::full})
    for (const auto attention : {s.software.attention.kernel, workloads::AttentionKernel::flash2,
                                 workloads::AttentionKernel::unfused})
      add_program(s, recompute, attention, s.software.products.packed, out);
  // Transformer Engine's tp_comm_overlap cuts products, a part for each tensor rank.
  if (s.plan.sequence_parallel) out.products.most *= static_cast<double>(s.plan.tensor);
  return out;
}

std::string calls_text(double calls) {
  return calls == std::round(calls) ? fmt::format("{:.0f}", calls) : fmt::format("{:.1f}", calls);
}

template <class Kind>
StepTally of(const std::map<Kind, StepTally>& tallies, Kind kind) {
  const auto at = tallies.find(kind);
  return at == tallies.end() ? StepTally{} : at->second;
}

/// Buckets and prefetch change how often a collective is called, not whether it is the step's
/// business; sums of the loss and shared flags may come with each micro-batch.
bool apart(double measured, double simulated, std::int64_t micro_batches) {
  constexpr double factor = 4;
  const auto few = static_cast<double>(8 + 4 * micro_batches);
  return std::max(measured, simulated) > factor * std::min(measured, simulated) + few;
}

}  // namespace

std::string verdict_of(const StepBreakdown& measured, const SimulatedStep& simulated) {
  if (measured.kernels.empty()) return "";
  const sim::Scenario& s = simulated.report.scenario;
  const bool packed = s.software.products.packed;
  const Ranges ranges = ranges_of(s);
  std::vector<std::string> differences;
  const auto differ = [&](double one, double other, std::string_view what) {
    differences.push_back(
        fmt::format("{} {} against {}", calls_text(one), what, calls_text(other)));
  };
  const StepTally gemm = of(measured.kernels, TraceKind::gemm);
  const double products = gemm.calls - gemm.parts;
  if (!ranges.products.holds(products))
    differ(products, of(simulated.mean.kernels, TraceKind::gemm).calls, "products");
  const double attention = of(measured.kernels, TraceKind::attention_forward).calls;
  if (attention > 0 && !ranges.attention.holds(attention))
    differ(attention, of(simulated.mean.kernels, TraceKind::attention_forward).calls,
           "forward attentions");
  const bool told = !measured.collectives.empty() || measured.communication == Duration{};
  for (const auto& [word, kind] : sim::collective_names) {
    // Megatron-LM hands every batch on to its tensor ranks.
    using enum workloads::CollectiveKind;
    if (kind == broadcast || kind == reduce) continue;
    const double one = of(measured.collectives, kind).calls;
    const double other = of(simulated.mean.collectives, kind).calls;
    if (told && apart(one, other, s.batch.micro_batches)) differ(one, other, word);
  }
  if (differences.empty()) return "";
  std::string out =
      fmt::format("this trace is not this scenario: {}", fmt::join(differences, ", "));
  const bool alone = differences.size() == 1 && !ranges.products.holds(products);
  Ranges other;
  add_program(s, s.plan.recompute, s.software.attention.kernel, !packed, other);
  if (alone && other.products.holds(products))
    out += fmt::format("; software.packed_projections = {} would explain it", !packed);
  return out;
}

}  // namespace stepcast::validate
