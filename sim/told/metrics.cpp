#include "sim/told/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace stepcast::sim {
namespace {

double gibibytes(Bytes b) { return static_cast<double>(b.value) / (1 << 30); }

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double low(const std::optional<ErrorBar>& bar, double value) {
  return bar ? bar->low * value : unknown;
}
double high(const std::optional<ErrorBar>& bar, double value) {
  return bar ? bar->high * value : unknown;
}

/// Of the replay of the step's allocations; NaN where nobody has asked for one.
double of_replay(const StepReport& s, Bytes memory) {
  return s.memory.replayed() ? gibibytes(memory) : unknown;
}

/// Ends of two bars as one: errors of the step and of the failures have nothing to do with each
/// other, so that their logarithms add up like variances.
double joined(double a, double b) { return std::exp(std::hypot(std::log(a), std::log(b))); }

constexpr double giga = 1e9, tera = 1e12;

/// Of the whole run; NaN where none is asked for.
double of_run(const StepReport& s, double (*take)(const WholeRun&)) {
  return s.whole_run ? take(*s.whole_run) : unknown;
}
/// What only a run of so many tokens or days has.
double of_goal(const StepReport& s, double (*take)(const WholeRun&)) {
  return s.scenario.goal.on() ? of_run(s, take) : unknown;
}
double of_dollars(const std::optional<Band>& band, double Band::*end) {
  return band ? (*band).*end : unknown;
}

using R = const WholeRun&;

using S = const StepReport&;
using C = const CollectiveReport&;

// clang-format off
constexpr Metric all_names[] = {
    {"stepcast", "The version of the program that wrote the document."},
    {"schema", "The schema that the document keeps to, and its version: stepcast show schema."},
    {"title", "The title of the scenario file."},
    {"model", "The model's name in the catalogue."},
    {"trained_parameters", "Of the model's adapters, where they alone are trained (lora_rank)."},
    {"gpu", "The GPU's name in the catalogue (stepcast show gpus)."},
    {"gpus", "GPUs of the cluster, one rank each.",
     "nodes x GPUs per node", "",
     "", "GPUs",
     [](S s) { return static_cast<double>(s.scenario.gpus); },
     [](C c) { return static_cast<double>(c.scenario.gpus); }},
    {"nodes", "Nodes of the cluster.",
     "", "",
     "", "nodes",
     [](S s) { return static_cast<double>(s.scenario.nodes); },
     [](C c) { return static_cast<double>(c.scenario.nodes); }},
    {"step_time_s",
     "Wall time of one optimizer step in steady state: from the end of one step to the end of the "
     "next, once steps repeat.",
     "compute_s + exposed_communication_s.total + bubble_s + wait_s + host_s", "",
     "s", "step", [](S s) { return seconds(s.step_time); }},
    {"step_time_low_s",
     "Lower end of the error bar of step_time_s: of measured steps so many lie between both ends "
     "as confidence.level says, also of a source that nobody has seen.",
     "step_time_s x quantile of measured / forecast over published runs, sources alike",
     "docs/confidence.md",
     "s", "at least", [](S s) { return low(s.step_bar, seconds(s.step_time)); }},
    {"step_time_high_s", "Upper end of the error bar of step_time_s.",
     "as step_time_low_s", "docs/confidence.md",
     "s", "at most", [](S s) { return high(s.step_bar, seconds(s.step_time)); }},
    {"tokens_per_s", "Training tokens that the whole cluster takes in per second.",
     "global batch x sequence / step_time_s", "",
     "tokens/s", "tokens/s", [](S s) { return s.tokens_per_second; }},
    {"tokens_per_s_per_gpu", "Training tokens per second, divided over all GPUs.",
     "tokens_per_s / gpus", "",
     "tokens/s", "tokens/s/GPU",
     [](S s) { return s.tokens_per_second / static_cast<double>(s.scenario.gpus); }},
    {"model_tflops_per_gpu",
     "FLOPs that the model needs, per second and GPU; what recompute adds is not counted.",
     "(6 N T + 12 L h s T) / step_time_s / gpus / 1e12, with N parameters in matrix products, T "
     "tokens of the step, L layers, h heads x head size, s sequence",
     "PaLM, arXiv 2204.02311, appendix B: full attention, not halved for the mask",
     "TFLOP/s", "TFLOP/s/GPU", [](S s) { return s.model_flops_per_gpu.value / tera; }},
    {"mfu",
     "Model FLOPs utilisation: the share of the GPU's dense 16-bit tensor peak that the model's "
     "FLOPs reach. Other tools count attention or peak differently: compare tokens/s first.",
     "model_tflops_per_gpu / tensor peak (stepcast show gpus)",
     "PaLM, arXiv 2204.02311, appendix B",
     "", "MFU", [](S s) { return s.mfu; }},
    {"mfu_convention", "How mfu and model_tflops_per_gpu count FLOPs."},
    {"compute_s",
     "Time in which a kernel of the model runs, mean over ranks; what communication does meanwhile"
     " is hidden. interference_s is inside.",
     "", "",
     "s", "compute", [](S s) { return seconds(s.compute); }},
    {"interference_s",
     "The part of compute_s that kernels take longer because a collective holds SMs and memory "
     "bandwidth at the same time.",
     "sum over kernels of (time beside communication - time alone)", "",
     "s", "interference", [](S s) { return seconds(s.interference); }},
    {"exposed_communication_s",
     "Time in which bytes move and no kernel of the model runs, mean over ranks; an object of "
     "total, tensor, pipeline, data and expert.",
     "tensor + pipeline + data + expert"},
    {"exposed_communication_s.total", "All exposed communication.",
     "tensor + pipeline + data + expert", "",
     "s", "exposed", [](S s) { return seconds(s.exposed.total()); }},
    {"exposed_communication_s.tensor",
     "Exposed collectives inside layers: of tensor-parallel groups (activations) and of "
     "context-parallel ones (keys and values).",
     "", "",
     "s", "exposed tensor", [](S s) { return seconds(s.exposed.tensor); }},
    {"exposed_communication_s.pipeline", "Exposed transfers between pipeline stages.",
     "", "",
     "s", "exposed pipeline", [](S s) { return seconds(s.exposed.pipeline); }},
    {"exposed_communication_s.data",
     "Exposed gathers and reductions of weights and gradients over the data-parallel group, and "
     "the global norm of the gradients.",
     "", "",
     "s", "exposed data", [](S s) { return seconds(s.exposed.data); }},
    {"exposed_communication_s.expert",
     "Exposed exchanges of tokens with the ranks that hold their experts, and of their gradients.",
     "", "",
     "s", "exposed expert", [](S s) { return seconds(s.exposed.expert); }},
    {"exposed_communication_s.offload",
     "Exposed copies between the memories of GPU and host, and updates by the host's processors, "
     "of offloaded activations and optimizer states.",
     "", "",
     "s", "exposed offload", [](S s) { return seconds(s.exposed.offload); }},
    {"bubble_s", "Time a rank waits for a neighbour in the pipeline, mean over ranks.",
     "ideal 1F1B: (pipeline - 1) / micro_batches of the work",
     "Narayanan et al. 2021, arXiv 2104.04473, section 2.2",
     "s", "bubble", [](S s) { return seconds(s.bubble); }},
    {"wait_s",
     "Time a rank waits inside a collective until the last member of its group has come; no bytes "
     "move yet.",
     "", "",
     "s", "wait", [](S s) { return seconds(s.wait); }},
    {"host_s",
     "Time in which nothing runs because the host thread has not launched it yet: a CPU-bound "
     "step.",
     "", "",
     "s", "host", [](S s) { return seconds(s.host); }},
    {"communication_s",
     "Span of all collective kernels of a rank, hidden or not, waiting included, as a profiler "
     "shows NCCL kernels. Not a part of the step's sum.",
     "", "communication load of arXiv 2411.13055",
     "s", "communication", [](S s) { return seconds(s.communication); }},
    {"memory_gib_per_gpu",
     "Memory that a GPU of the fullest pipeline stage must have: above the card's a plan is "
     "refused. memory_parts_gib lists what is alive at the fullest moment.",
     "sum of memory_parts_gib", "docs/memory.md; Korthikanti 2022, arXiv 2205.05198",
     "GiB", "memory", [](S s) { return gibibytes(s.memory.total()); }},
    {"memory_low_gib_per_gpu",
     "Lower end of the error bar of memory_gib_per_gpu, from reported peaks.",
     "as step_time_low_s", "docs/confidence.md",
     "GiB", "memory at least", [](S s) { return low(s.memory_bar, gibibytes(s.memory.total())); }},
    {"memory_high_gib_per_gpu", "Upper end of the error bar of memory_gib_per_gpu.",
     "as step_time_low_s", "docs/confidence.md",
     "GiB", "memory at most", [](S s) { return high(s.memory_bar, gibibytes(s.memory.total())); }},
    {"p_fits",
     "Probability that the plan fits into the GPU's memory, by how far reported peaks lay from "
     "their forecasts; below run.refuse_below a plan is refused.",
     "share of sources whose error leaves memory_gib_per_gpu below the card's memory",
     "docs/memory.md",
     "", "P(fits)", [](S s) {
       const bool forecast = s.memory.total() <= s.scenario.node.gpu.memory;
       return s.p_fits.value_or(forecast ? 1.0 : 0.0);  // without evidence
     }},
    {"memory_allocated_gib",
     "Peak of what the framework's allocator hands out on the fullest pipeline stage, as "
     "torch.cuda.max_memory_allocated counts it.",
     "replay of the step's allocations", "docs/memory.md",
     "GiB", "allocated", [](S s) { return of_replay(s, s.memory.allocated); }},
    {"memory_reserved_gib",
     "What the allocator takes from the card for them and keeps, as torch.cuda.max_memory_reserved"
     " counts it; equal where memory is planned.",
     "the same replay by the rules of c10/cuda/CUDACachingAllocator.cpp", "docs/memory.md",
     "GiB", "reserved", [](S s) { return of_replay(s, s.memory.reserved); }},
    {"memory_process_gib",
     "Reserved memory, CUDA's context, NCCL's buffers and cuBLAS's workspace: what nvidia-smi "
     "shows.",
     "memory_reserved_gib + context + communicators + workspace", "docs/memory.md",
     "GiB", "process", [](S s) { return of_replay(s, s.memory.process()); }},
    {"memory_needed_gib",
     "memory_gib_per_gpu: of the process all that the allocator cannot give back.",
     "segments in use + context + communicators + workspace", "docs/memory.md",
     "GiB", "needed", [](S s) { return of_replay(s, s.memory.needed()); }},
    {"memory_parts_gib", "memory_gib_per_gpu part by part."},
    {"power_w_per_gpu", "Mean electric power of one GPU over the step.",
     "energy_j / step_time_s / gpus", "",
     "W", "power", [](S s) { return s.power_per_gpu.value; }},
    {"energy_j", "Energy of all GPUs for one step; hosts and switches not counted.",
     "power_w_per_gpu x gpus x step_time_s", "",
     "J", "energy", [](S s) { return s.energy.value; }},
    {"tokens_per_joule", "Training tokens per joule of the GPUs.",
     "global batch x sequence / energy_j", "",
     "tokens/J", "tokens/J", [](S s) { return s.tokens_per_joule; }},
    {"run", "The whole run that [run_goal] asks about, and what a token costs by [cost]: an object "
     "(docs/cost.md).",
     "", "docs/cost.md"},
    {"run.tokens", "Tokens that the run trains on.",
     "as asked, or days x tokens_per_s x goodput", "",
     "tokens", "tokens of the run",
     [](S s) { return of_goal(s, [](R r) { return r.tokens.value; }); }},
    {"run.tokens_low", "Lower end of its band.",
     "as run.days_low", "",
     "tokens", "at least", [](S s) { return of_goal(s, [](R r) { return r.tokens.low; }); }},
    {"run.tokens_high", "Upper end of its band.",
     "as run.days_low", "",
     "tokens", "at most", [](S s) { return of_goal(s, [](R r) { return r.tokens.high; }); }},
    {"run.days", "Wall time of the run.",
     "tokens / (tokens_per_s x goodput) / 86400", "",
     "d", "days", [](S s) { return of_goal(s, [](R r) { return r.days.value; }); }},
    {"run.days_low", "Lower end of its band.",
     "from the error bar of the step; of dollars also from the range of prices, half-widths added "
     "up in squares of their logarithms",
     "docs/confidence.md",
     "d", "at least", [](S s) { return of_goal(s, [](R r) { return r.days.low; }); }},
    {"run.days_high", "Upper end of its band.",
     "as run.days_low", "docs/confidence.md",
     "d", "at most", [](S s) { return of_goal(s, [](R r) { return r.days.high; }); }},
    {"run.gpu_hours", "GPU hours of the run, those without progress included.",
     "run.days x 24 x gpus", "",
     "h", "GPU hours", [](S s) { return of_goal(s, [](R r) { return r.gpu_hours.value; }); }},
    {"run.energy_mwh", "Energy at the building's meter.",
     "hours x (goodput x power at work + (1 - goodput) x power at rest) x PUE", "docs/cost.md",
     "MWh", "energy of the run",
     [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.value; }); }},
    {"run.energy_low_mwh", "Lower end of its band.",
     "as run.days_low", "",
     "MWh", "at least", [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.low; }); }},
    {"run.energy_high_mwh", "Upper end of its band.",
     "as run.days_low", "",
     "MWh", "at most", [](S s) { return of_goal(s, [](R r) { return r.megawatt_hours.high; }); }},
    {"run.co2_t", "CO2 equivalent of that energy, location based; nothing embodied in hardware.",
     "run.energy_mwh x carbon", "docs/cost.md",
     "t", "t CO2e", [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.value; }); }},
    {"run.co2_low_t", "Lower end of its band.",
     "as run.days_low", "",
     "t", "at least", [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.low; }); }},
    {"run.co2_high_t", "Upper end of its band.",
     "as run.days_low", "",
     "t", "at most", [](S s) { return of_goal(s, [](R r) { return r.tonnes_co2.high; }); }},
    {"run.usd", "What the run costs, US dollars.",
     "run.gpu_hours x run.usd_per_gpu_hour", "docs/cost.md",
     "USD", "USD",
     [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::value); }); }},
    {"run.usd_low", "Lower end of its band.",
     "as run.days_low", "",
     "USD", "at least",
     [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::low); }); }},
    {"run.usd_high", "Upper end of its band.",
     "as run.days_low", "",
     "USD", "at most",
     [](S s) { return of_goal(s, [](R r) { return of_dollars(r.dollars, &Band::high); }); }},
    {"run.usd_per_gpu_hour", "Of a GPU with its share of node and network.",
     "rent, or capex (1 + overhead) i / (1 - (1 + i)^-years) / (8766 x utilisation) + opex + kW x "
     "price of electricity",
     "docs/cost.md",
     "USD/h", "USD/h per GPU",
     [](S s) {
       return of_run(s, [](R r) { return of_dollars(r.dollars_per_gpu_hour, &Band::value); });
     }},
    {"run.usd_per_million_tokens", "What a million tokens cost.",
     "run.usd_per_gpu_hour x gpus / (tokens_per_s x goodput) / 3600 x 1e6", "",
     "USD", "USD per M tokens",
     [](S s) {
       return of_run(s, [](R r) { return of_dollars(r.dollars_per_million_tokens, &Band::value); });
     }},
    {"run.joules_per_token", "Energy of a token at the building's meter.",
     "metered power / (tokens_per_s x goodput)", "",
     "J", "J/token", [](S s) { return of_run(s, [](R r) { return r.joules_per_token; }); }},
    {"run.power_gpus_kw", "Of all GPUs while a step runs.",
     "power_w_per_gpu x gpus", "",
     "kW", "power of GPUs",
     [](S s) { return of_run(s, [](R r) { return r.power.gpus.value / 1e3; }); }},
    {"run.power_nodes_kw", "Of the nodes beside their GPUs.",
     "0.82 x rated power - TDP of its GPUs, times nodes", "docs/cost.md",
     "kW", "power of nodes",
     [](S s) { return of_run(s, [](R r) { return r.power.nodes.value / 1e3; }); }},
    {"run.power_network_kw", "Of switches and the cables in them.",
     "switches x switch_power + their ports x transceiver_power", "docs/cost.md",
     "kW", "power of network",
     [](S s) { return of_run(s, [](R r) { return r.power.network.value / 1e3; }); }},
    {"provenance",
     "Where the times come from, as shares of kernel and of collective time: measured (this very "
     "shape), interpolated (between measured shapes), extrapolated (beyond them, or from a sibling"
     " GPU), derived (bytes x achieved bandwidth, or a published rate), model (NCCL's own terms, "
     "corrected), datasheet (peaks only)."},
    {"confidence",
     "What the error bars rest on: their level, whose errors (errors_of), of how many sources, by "
     "how much they are widened because the forecast leaves what was measured, and the user's own "
     "runs that narrowed them; memory_sources, and false in memory_assured where so few allow no "
     "such level.",
     "", "docs/confidence.md"},
    {"runner_up",
     "The next best of the plans that \"best\" chose from, and the probability that it is slower "
     "when measured.",
     "", "docs/confidence.md"},
    {"plan", "The parallel plan and the batch that were run, every choice resolved.",
     "gpus = data_degree x context x tensor x pipeline"},
    {"cluster", "The machine: node, number of nodes, fabric and NCCL version."},
    {"changed",
     "Keys of the scenario that say something else than the defaults and the entries of the "
     "catalogue, as they hold.",
     "", "stepcast show keys"},
    {"assumptions",
     "What nobody has measured or published and the step rests on; no key where there is nothing.",
     "", "docs/modern.md"},
    {"warnings", "What to know before trusting the numbers, such as keys without effect."},
    {"simulated_ranks",
     "Ranks that were simulated; fewer than gpus when ranks that are provably alike are run once "
     "(--no-fold runs all)."},
    {"events", "Events that the engine processed."},
    {"refused",
     "Why a plan cannot run: the memory parts that do not fit, or what does not divide."},
    {"memory_over_gib",
     "Of a refused plan: what the fullest rank needs beyond the memory of its GPU.",
     "needed less the GPU's memory", "docs/memory.md"},
    {"failed", "The error of stepcast itself that kept a point of a sweep from an answer."},
    {"points", "The points of a sweep, in the order of the scenario file."},
    {"sweep", "The keys and values that this point of the sweep sets."},
    {"interrupted", "The run was stopped: points are missing."},
    {"goodput",
     "Effective training time ratio (ETTR): the share of wall time in which the run trains at full"
     " speed and keeps what it has done. What Google calls ML productivity goodput also counts "
     "scheduling and the program's own efficiency.",
     "mean over simulated runs of training / (training + checkpoints + work done again + down + "
     "waiting + slowed)",
     "docs/failures.md",
     "share", "goodput", [](S s) { return s.goodput ? s.goodput->mean : unknown; }},
    {"goodput_low",
     "Lower end of the band of goodput: runs differ by chance and clusters by their rates.",
     "quantile over simulated runs, their rates drawn by failures.sigma", "docs/failures.md",
     "share", "goodput at least", [](S s) { return s.goodput ? s.goodput->low : unknown; }},
    {"goodput_high", "Upper end of the band of goodput.",
     "as goodput_low", "docs/failures.md",
     "share", "goodput at most", [](S s) { return s.goodput ? s.goodput->high : unknown; }},
    {"tokens_per_day", "Training tokens of a day, failures and checkpoints included.",
     "tokens_per_s x 86,400 x goodput", "docs/failures.md",
     "tokens", "tokens/day", [](S s) { return tokens_per_day(s).mean; }},
    {"tokens_per_day_low", "Lower end of the band of tokens_per_day.",
     "bands of step_time_s and goodput, their logarithms added as variances", "docs/failures.md",
     "tokens", "tokens/day at least", [](S s) { return tokens_per_day(s).low; }},
    {"tokens_per_day_high", "Upper end of the band of tokens_per_day.",
     "as tokens_per_day_low", "docs/failures.md",
     "tokens", "tokens/day at most", [](S s) { return tokens_per_day(s).high; }},
    {"failures",
     "What goodput rests on: rates, the share of wall time of each state, checkpoints by tier in "
     "bytes and seconds, Daly's formula, what a minute of restart is worth.",
     "", "docs/failures.md"},
    {"time_us", "Time of one collective alone on its links, in microseconds.",
     "", "",
     "us", "time", nullptr, [](C c) { return seconds(c.time.duration) * 1e6; }},
    {"time_low_us", "Lower end of the error bar of time_us, from measured collectives.",
     "as step_time_low_s", "docs/confidence.md",
     "us", "at least", nullptr, [](C c) { return low(c.bar, seconds(c.time.duration) * 1e6); }},
    {"time_high_us", "Upper end of the error bar of time_us.",
     "as step_time_low_s", "docs/confidence.md",
     "us", "at most", nullptr, [](C c) { return high(c.bar, seconds(c.time.duration) * 1e6); }},
    {"algbw_gb_per_s", "Algorithm bandwidth, GB = 1e9 bytes.",
     "bytes / time", "nccl-tests doc/PERFORMANCE.md",
     "GB/s", "algbw", nullptr, [](C c) { return c.time.algbw.value / giga; }},
    {"busbw_gb_per_s",
     "Bus bandwidth: algorithm bandwidth times a factor that makes it comparable with the hardware"
     " for any number of ranks n.",
     "algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter and all_to_all, x "
     "1 for broadcast, reduce and send_receive",
     "nccl-tests doc/PERFORMANCE.md",
     "GB/s", "busbw", nullptr, [](C c) { return c.time.busbw.value / giga; }},
    {"algorithm", "The algorithm that NCCL of this version picks: ring, tree, nvls, ...",
     "", "NCCL src/graph/tuning.cc"},
    {"protocol", "The protocol that NCCL of this version picks: ll, ll128, simple.",
     "", "NCCL src/graph/tuning.cc"},
    {"channels", "Channels that NCCL uses; each holds an SM on every member, but for copy_engine.",
     "", "",
     "", "channels", nullptr, [](C c) { return static_cast<double>(c.time.channels); }},
    {"collective", "The kind of the collective."},
    {"bytes",
     "Size as in nccl-tests: the full buffer of all ranks for all_gather and reduce_scatter, the "
     "message for all_reduce.",
     "", "nccl-tests"},
    {"dtype", "The type of the elements that are moved."},
};
// clang-format on

}  // namespace

TokensPerDay tokens_per_day(const StepReport& report) {
  if (!report.goodput) return {unknown, unknown, unknown};
  const Goodput& g = *report.goodput;
  const double mean = report.tokens_per_second * 86400.0 * g.mean;
  // A longer step is fewer tokens.
  const double slower = report.step_bar ? report.step_bar->high : 1.0;
  const double faster = report.step_bar ? 1.0 / report.step_bar->low : 1.0;
  return {mean, mean / joined(g.mean / g.low, slower), mean * joined(g.high / g.mean, faster)};
}

std::span<const Metric> explanations() { return all_names; }

std::span<const Metric> metrics() {
  static const std::vector<Metric> numbers = [] {
    std::vector<Metric> out;
    for (const Metric& one : all_names)
      if (one.of_step != nullptr || one.of_collective != nullptr) out.push_back(one);
    return out;
  }();
  return numbers;
}

const Metric* find_explanation(std::string_view key) {
  const auto found = std::ranges::find(all_names, key, &Metric::key);
  return found == std::end(all_names) ? nullptr : found;
}

const Metric* find_metric(std::string_view key) {
  if (key == "exposed_communication_s") key = "exposed_communication_s.total";
  const Metric* found = find_explanation(key);
  return found != nullptr && (found->of_step || found->of_collective) ? found : nullptr;
}

std::string explanation_text(const Metric& one) {
  std::string out = std::string(one.key) + "\n  " + std::string(one.meaning) + "\n";
  if (!one.formula.empty()) out += "  formula: " + std::string(one.formula) + "\n";
  if (const Metric* metric = find_metric(one.key); metric != nullptr && !metric->unit.empty())
    out += "  unit: " + std::string(metric->unit) + "\n";
  if (!one.source.empty()) out += "  source: " + std::string(one.source) + "\n";
  return out;
}

std::optional<double> value_of(const Metric& metric, const Answer& answer) {
  double value = unknown;
  if (const auto* step = std::get_if<StepReport>(&answer); step != nullptr && metric.of_step)
    value = metric.of_step(*step);
  if (const auto* collective = std::get_if<CollectiveReport>(&answer);
      collective != nullptr && metric.of_collective)
    value = metric.of_collective(*collective);
  if (std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<double> value_of(const Metric& metric, const PointRow& row) {
  return row.unanswered() ? std::nullopt : row.number(metric.key);
}

std::string_view flop_convention(const workloads::TransformerShape& shape) {
  if (workloads::adapted(shape))
    return "(4 N + 6 A) T + 12 L h s T, adapters A: full attention, recompute not counted; peak is "
           "dense, 16 bit";
  return "6 N T + 12 L h s T: full attention, recompute not counted; peak is dense, 16 bit";
}

}  // namespace stepcast::sim
