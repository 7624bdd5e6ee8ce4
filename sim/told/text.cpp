#include "sim/told/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/kernels/power_law.hpp"
#include "sim/scenario/assumptions.hpp"
#include "sim/scenario/model_members.hpp"
#include "sim/told/collective.hpp"
#include "sim/told/goal_text.hpp"
#include "sim/told/goodput.hpp"
#include "sim/told/labelled_line.hpp"
#include "sim/told/metrics.hpp"
#include "workloads/plan/lora.hpp"

namespace stepcast::sim {
std::string cluster_text(const Scenario& scenario) {
  return fmt::format("{} x {} ({} x {}, {}, NCCL {})", grouped(scenario.gpus),
                     scenario.node.gpu.name, grouped(scenario.nodes), scenario.node.name,
                     scenario.fabric.name, scenario.nccl);
}

namespace {

std::string recompute_text(const Scenario& scenario) {
  const workloads::Recompute kind = scenario.plan.recompute;
  const std::string word(word_for(recompute_names, kind));
  if (kind == workloads::Recompute::full) return word;
  const bool operators = operators_again(scenario.plan, scenario.software);
  return word + (operators ? " (all but every second product, attention and exchanges)"
                           : " (the attention core)");
}

}  // namespace

std::string model_text(const workloads::TransformerShape& model) {
  if (!workloads::adapted(model)) return model.name;
  std::string targets;
  for (const auto& [word, target] : lora_target_names)
    if (model.lora.targets.has(target)) targets += (targets.empty() ? "" : ",") + std::string(word);
  std::string out =
      fmt::format("{}, adapters of rank {} beside {}", model.name, model.lora.rank, targets);
  if (model.lora.experts) out += " (a rank's experts share one)";
  if (workloads::dequantizes(model))
    out += fmt::format(", frozen in {}", word_for(lora_base_names, model.lora.base));
  return out +
         fmt::format("; {} of {} parameters trained", grouped(workloads::adapter_parameters(model)),
                     grouped(workloads::parameters(model) + workloads::adapter_parameters(model)));
}

std::string plan_text(const Scenario& scenario) {
  const workloads::ParallelPlan& plan = scenario.plan;
  std::string out =
      fmt::format("{} {}", word_for(data_parallel_names, plan.data), grouped(plan.data_degree));
  if (plan.shard_replicas() > 1) out += fmt::format(" (shards of {})", grouped(plan.shards()));
  if (plan.context > 1) out += fmt::format(" x context {}", plan.context);
  out += fmt::format(" x tensor {}{} x pipeline {}", plan.tensor,
                     plan.sequence_parallel && plan.tensor > 1 ? " (sequence parallel)" : "",
                     plan.pipeline);
  if (plan.pipeline > 1) out += fmt::format(" ({}", schedule_word(plan));
  if (plan.virtual_stages > 1) out += fmt::format(", {} chunks a stage", plan.virtual_stages);
  if (plan.pipeline > 1) out += ")";
  if (plan.expert.degree > 1) out += fmt::format(", experts over {}", plan.expert.degree);
  if (plan.expert.degree > 1 && plan.expert.tensor > 0)
    out += fmt::format(" x tensor {}", plan.expert.tensor);
  out += fmt::format("; {} sequences of {} tokens in {} micro-batch{} of {}; {}, reduced in {}",
                     grouped(scenario.global_batch), grouped(scenario.batch.sequence),
                     scenario.batch.micro_batches, scenario.batch.micro_batches == 1 ? "" : "es",
                     scenario.batch.micro_batch, word_for(dtype_names, scenario.precision.compute),
                     word_for(dtype_names, scenario.precision.gradient_reduce));
  if (scenario.precision.recipe != workloads::Recipe::none)
    out += fmt::format("; products in {}", name_of(scenario.precision.recipe));
  if (plan.recompute != workloads::Recompute::none)
    out += fmt::format("; recompute {}", recompute_text(scenario));
  if (plan.recompute_every > 1) out += fmt::format(" of 1 layer in {}", plan.recompute_every);
  return out;
}

std::string software_text(const Scenario& scenario) {
  const workloads::Software& software = scenario.software;
  std::string out = software.framework + " " + software.version;
  if (software.compiled()) out += ", compiled";
  if (!scenario.software_by_default.empty()) out += ", " + scenario.software_by_default;
  return out;
}

std::string level_text(const ErrorBar& bar) { return fmt::format("{:g} %", 100 * bar.level); }

std::string origin_text(const ErrorBar& bar) {
  std::string out = fmt::format("errors of {} source{}", bar.sources, bar.sources == 1 ? "" : "s");
  if (bar.kind != "all") out += fmt::format(" ({})", bar.kind);
  if (!bar.assured) out += ", too few for " + level_text(bar);
  if (bar.widened > 1) out += fmt::format(", widened {} x beyond them", three_digits(bar.widened));
  if (bar.own_runs > 0) out += fmt::format(", {} of your own runs", bar.own_runs);
  return out;
}

namespace {

Duration scaled(Duration value, double factor) { return to_duration(seconds(value) * factor); }
Bytes scaled(Bytes value, double factor) {
  return Bytes(std::llround(static_cast<double>(value.value) * factor));
}

/// "62.0 % interpolated, 38.0 % derived", largest first.
std::string shares_text(const ProvenanceShares& shares) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (shares[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::string out;
  for (const std::size_t i : order)
    out += (out.empty() ? "" : ", ") + percent(shares[i]) + " " +
           std::string(name_of(static_cast<Provenance>(i)));
  return out.empty() ? "nothing to time" : out;
}

/// Noise and what was left out; nothing for an ordinary run.
std::string conditions_text(const StepReport& report) {
  const Noise& noise = report.scenario.noise;
  const Ablation& without = report.scenario.run.without;
  std::string out;
  if (noise.on() && !without.jitter) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (noise.kernel_sigma > 0.0) add("kernels +- " + percent(noise.kernel_sigma));
    if (noise.gpu_sigma > 0.0) add("GPUs +- " + percent(noise.gpu_sigma));
    if (noise.pace_sigma > 0.0) add("pace of the slowest of GPUs +- " + percent(noise.pace_sigma));
    for (const Straggler& s : noise.stragglers)
      add(fmt::format("{} {} slower by {}", s.node ? "node" : "rank", s.index,
                      percent(s.slowdown - 1)));
    if (noise.kernel_sigma > 0.0 && report.scenario.run.steps == Steps::steady)
      add(fmt::format("mean of {} steps, each +- {}", noise.steps, to_text(report.step_deviation)));
    out += labelled_line("noise", fmt::format("{}; seed {}", text, report.scenario.run.seed));
  }
  std::string left_out;
  for (const std::string& word : words_of(without))
    left_out += (left_out.empty() ? "" : ", ") + word;
  if (!left_out.empty()) out += labelled_line("left out", left_out);
  return out;
}

/// Who exchanges as tensor ranks do: context ranks' exchanges are counted with theirs.
const char* cutting_ranks(const Scenario& s) {
  if (s.plan.context == 1) return "tensor";
  return s.plan.tensor == 1 ? "context" : "tensor and context";
}

/// The kinds of exposed communication that there are: "tensor 519 ms, data 276 ms".
std::string exposed_kinds(const StepReport& report) {
  const ExposedCommunication& exposed = report.exposed;
  const std::pair<const char*, Duration> kinds[] = {
      {cutting_ranks(report.scenario), exposed.tensor},
      {"pipeline", exposed.pipeline},
      {"data", exposed.data},
      {"expert", exposed.expert},
      {"offload", exposed.offload}};
  std::string out;
  for (const auto& [kind, span] : kinds)
    if (span.count() > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", kind, to_text(span));
  return out;
}

std::string breakdown_text(const StepReport& report) {
  const double step = seconds(report.step_time);
  const auto part = [&](const char* label, Duration span, const std::string& note = {}) {
    return fmt::format("  {:<20}{:>9}  {:>7}{}\n", label, to_text(span),
                       percent(step > 0 ? seconds(span) / step : 0),
                       note.empty() ? "" : "  " + note);
  };
  std::string out = "where the step goes (mean over ranks)\n";
  out += part("compute", report.compute,
              report.interference.count() > 0
                  ? "of it " + to_text(report.interference) + " slowed by communication"
                  : "");
  out += part("exposed comm.", report.exposed.total(), exposed_kinds(report));
  out += part("bubble", report.bubble);
  out += part("wait", report.wait);
  out += part("host", report.host);
  out += part("step", report.step_time);
  return out;
}

/// "878 ms (780 to 940, 80 %)"; the level is left out where so few sources allow none.
template <class Quantity>
std::string with_bar(Quantity value, const std::optional<ErrorBar>& bar) {
  const std::string text = to_text(value);
  if (!bar) return text;
  const auto unit_of = [](const std::string& words) { return words.substr(words.rfind(' ') + 1); };
  std::string low = to_text(scaled(value, bar->low));
  const std::string high = to_text(scaled(value, bar->high));
  const bool same = unit_of(low) == unit_of(text) && unit_of(high) == unit_of(text);
  const auto bare = [&](const std::string& words) {
    return same ? words.substr(0, words.rfind(' ')) : words;
  };
  return fmt::format("{} ({} to {}{})", text, bare(low), bare(high),
                     bar->assured ? ", " + level_text(*bar) : "");
}

std::string bars_text(const StepReport& report) {
  if (!report.step_bar) return {};
  std::string out = "step: " + origin_text(*report.step_bar);
  if (report.memory_bar) out += "; memory: " + origin_text(*report.memory_bar);
  return labelled_line("error bars", out);
}

/// The next best of the plans that were tried, and how sure the choice is.
std::string runner_up_text(const StepReport& report) {
  const auto& next = report.runner_up;
  if (!next) return {};
  std::string out = fmt::format("{}, {}", next->plan, to_text(next->step_time));
  if (next->slower) out += fmt::format("; slower with P = {:.2f}", *next->slower);
  return labelled_line("runner-up", out);
}

std::string memory_text(const StepReport& report) {
  std::string out =
      labelled_line("memory per GPU", with_bar(report.memory.total(), report.memory_bar) + " of " +
                                          to_text(report.scenario.node.gpu.memory));
  for (const workloads::MemoryPart& part : report.memory.parts)
    out += fmt::format("  {:<20}{:>9}\n", part.name, to_text(part.bytes));
  const workloads::MemoryFigures& f = report.memory;
  out += labelled_line(
      "", fmt::format("allocated {}, reserved {}, process {}, needed {}", to_text(f.allocated),
                      to_text(f.reserved), to_text(f.process()), to_text(f.needed())));
  if (report.p_fits) out += labelled_line("P(fits)", percent(*report.p_fits));
  return out;
}

std::string step_text(const StepReport& report) {
  const double per_gpu = report.tokens_per_second / static_cast<double>(report.scenario.gpus);
  std::string out = report.scenario.title.empty() ? "" : report.scenario.title + "\n";
  out +=
      labelled_line("model", folded(model_text(report.scenario.model), label_width, label_width)) +
      labelled_line("cluster", cluster_text(report.scenario)) +
      labelled_line("plan", folded(plan_text(report.scenario), label_width, label_width)) +
      labelled_line("framework", folded(software_text(report.scenario), label_width, label_width)) +
      conditions_text(report) + "\n";
  out += labelled_line("step time", with_bar(report.step_time, report.step_bar)) +
         runner_up_text(report) +
         labelled_line("throughput", three_digits(report.tokens_per_second) + " tokens/s, " +
                                         three_digits(per_gpu) + " tokens/s per GPU") +
         labelled_line("model FLOPs", to_text(report.model_flops_per_gpu) + " per GPU") +
         labelled_line("MFU", folded(fmt::format("{} of {} ({})", percent(report.mfu),
                                                 to_text(report.scenario.node.gpu.tensor_peak),
                                                 flop_convention(report.scenario.model)),
                                     label_width, label_width)) +
         labelled_line("communication",
                       to_text(report.communication) + " of collective kernels, waiting included") +
         "\n";
  out += breakdown_text(report) + "\n" + memory_text(report) + "\n";
  const double pace = held_back(report.scenario.node.gpu).pace;
  out += labelled_line(
      "power",
      fmt::format("{} per GPU, {} per step, {} tokens/J", to_text(report.power_per_gpu),
                  to_text(report.energy), three_digits(report.tokens_per_joule)) +
          (pace < 1 ? fmt::format("; tensor cores at {:.2f} of their usual rate", pace) : ""));
  if (report.whole_run) out += "\n" + whole_run_text(report) + "\n";
  out += labelled_line("kernel times", shares_text(report.kernel_provenance)) +
         labelled_line("collective times", shares_text(report.network_provenance)) +
         bars_text(report);
  for (const std::string& assumed : assumptions(report.scenario))
    out += labelled_line("assumed", assumed);
  return out + goodput_text(report);
}

std::string collective_text(const CollectiveReport& report) {
  const CollectiveTime& time = report.time;
  const auto& query = report.scenario.collective;
  expects(query.has_value(), "a collective report has its query");
  std::string out = report.scenario.title.empty() ? "" : report.scenario.title + "\n";
  out += labelled_line("collective",
                       fmt::format("{}, {}, {}", word_for(collective_names, query->kind),
                                   to_text(query->bytes), word_for(dtype_names, query->dtype)));
  out += labelled_line("cluster", cluster_text(report.scenario)) + "\n";
  out += labelled_line("time", with_bar(time.duration, report.bar)) +
         labelled_line("algbw", three_digits(time.algbw.value / 1e9) + " GB/s") +
         labelled_line("busbw", three_digits(time.busbw.value / 1e9) + " GB/s") +
         labelled_line("NCCL runs", fmt::format("{}, {}, {} channels", name_of(time.algorithm),
                                                name_of(time.protocol), time.channels)) +
         labelled_line("provenance", std::string(name_of(time.provenance)));
  if (report.bar) out += labelled_line("error bar", origin_text(*report.bar));
  if (report.explanation) out += "\n" + as_text(explanation_of(report));
  if (report.stepped) out += "\n" + as_text(told_of(*report.stepped));
  return out;
}

std::string refused_text(const Refused& refused) {
  return labelled_line("model",
                       folded(model_text(refused.scenario.model), label_width, label_width)) +
         labelled_line("cluster", cluster_text(refused.scenario)) +
         labelled_line("plan", folded(plan_text(refused.scenario), label_width, label_width)) +
         labelled_line("framework", software_text(refused.scenario)) +
         labelled_line("refused", refused.reason);
}

}  // namespace

std::string report_text(const Answer& answer) {
  if (const auto* step = std::get_if<StepReport>(&answer)) return step_text(*step);
  if (const auto* one = std::get_if<CollectiveReport>(&answer)) return collective_text(*one);
  return refused_text(std::get<Refused>(answer));
}

}  // namespace stepcast::sim
