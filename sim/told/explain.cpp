#include "sim/told/explain.hpp"

#include <array>

#include "sim/told/metrics.hpp"

namespace stepcast::sim {
namespace {

constexpr std::array all_explanations{
    Explanation{"step_time_s",
                "Wall time of one optimizer step in steady state: from the end of one step to the "
                "end of the next, once steps repeat.",
                "compute_s + exposed_communication_s.total + bubble_s + wait_s + host_s", ""},
    Explanation{"step_time_low_s",
                "Lower end of the error bar of step_time_s: of measured steps so many lie between "
                "both ends as confidence.level says, also of a source that nobody has seen.",
                "step_time_s x quantile of measured / forecast over published runs, sources alike",
                "docs/confidence.md"},
    Explanation{"step_time_high_s", "Upper end of the error bar of step_time_s.",
                "as step_time_low_s", "docs/confidence.md"},
    Explanation{"tokens_per_s", "Training tokens that the whole cluster takes in per second.",
                "global batch x sequence / step_time_s", ""},
    Explanation{"tokens_per_s_per_gpu", "Training tokens per second, divided over all GPUs.",
                "tokens_per_s / gpus", ""},
    Explanation{"model_tflops_per_gpu",
                "FLOPs that the model needs, per second and GPU; what recompute adds is not "
                "counted.",
                "(6 N T + 12 L h s T) / step_time_s / gpus / 1e12, with N parameters in matrix "
                "products, T tokens of the step, L layers, h heads x head size, s sequence",
                "PaLM, arXiv 2204.02311, appendix B: full attention, not halved for the mask"},
    Explanation{"mfu",
                "Model FLOPs utilisation: the share of the GPU's dense 16-bit tensor peak that "
                "the model's FLOPs reach. Other tools count attention or peak differently: compare "
                "tokens/s first.",
                "model_tflops_per_gpu / tensor peak (stepcast show gpus)",
                "PaLM, arXiv 2204.02311, appendix B"},
    Explanation{"mfu_convention", "How mfu and model_tflops_per_gpu count FLOPs.", "", ""},
    Explanation{"compute_s",
                "Time in which a kernel of the model runs, mean over ranks; what communication "
                "does meanwhile is hidden. interference_s is inside.",
                "", ""},
    Explanation{"interference_s",
                "The part of compute_s that kernels take longer because a collective holds SMs "
                "and memory bandwidth at the same time.",
                "sum over kernels of (time beside communication - time alone)", ""},
    Explanation{"exposed_communication_s",
                "Time in which bytes move and no kernel of the model runs, mean over ranks; an "
                "object of total, tensor, pipeline, data and expert.",
                "tensor + pipeline + data + expert", ""},
    Explanation{"exposed_communication_s.total", "All exposed communication.",
                "tensor + pipeline + data + expert", ""},
    Explanation{"exposed_communication_s.tensor",
                "Exposed collectives inside layers: of tensor-parallel groups (activations) and "
                "of context-parallel ones (keys and values).",
                "", ""},
    Explanation{"exposed_communication_s.pipeline", "Exposed transfers between pipeline stages.",
                "", ""},
    Explanation{"exposed_communication_s.data",
                "Exposed gathers and reductions of weights and gradients over the data-parallel "
                "group, and the global norm of the gradients.",
                "", ""},
    Explanation{"exposed_communication_s.expert",
                "Exposed exchanges of tokens with the ranks that hold their experts, and of their "
                "gradients.",
                "", ""},
    Explanation{"exposed_communication_s.offload",
                "Exposed copies between the memories of GPU and host, and updates by the host's "
                "processors, of offloaded activations and optimizer states.",
                "", ""},
    Explanation{"bubble_s", "Time a rank waits for a neighbour in the pipeline, mean over ranks.",
                "ideal 1F1B: (pipeline - 1) / micro_batches of the work",
                "Narayanan et al. 2021, arXiv 2104.04473, section 2.2"},
    Explanation{"wait_s",
                "Time a rank waits inside a collective until the last member of its group has "
                "come; no bytes move yet.",
                "", ""},
    Explanation{"host_s",
                "Time in which nothing runs because the host thread has not launched it yet: a "
                "CPU-bound step.",
                "", ""},
    Explanation{"communication_s",
                "Span of all collective kernels of a rank, hidden or not, waiting included, as a "
                "profiler shows NCCL kernels. Not a part of the step's sum.",
                "", "communication load of arXiv 2411.13055"},
    Explanation{
        "memory_gib_per_gpu",
        "Memory that a GPU of the fullest pipeline stage must have: above the card's a plan "
        "is refused. memory_parts_gib lists what is alive at the fullest moment.",
        "sum of memory_parts_gib", "docs/memory.md; Korthikanti 2022, arXiv 2205.05198"},
    Explanation{"memory_low_gib_per_gpu",
                "Lower end of the error bar of memory_gib_per_gpu, from reported peaks.",
                "as step_time_low_s", "docs/confidence.md"},
    Explanation{"memory_high_gib_per_gpu", "Upper end of the error bar of memory_gib_per_gpu.",
                "as step_time_low_s", "docs/confidence.md"},
    Explanation{"memory_allocated_gib",
                "Peak of what the framework's allocator hands out on the fullest pipeline stage, "
                "as torch.cuda.max_memory_allocated counts it.",
                "replay of the step's allocations", "docs/memory.md"},
    Explanation{"memory_reserved_gib",
                "What the allocator takes from the card for them and keeps, as "
                "torch.cuda.max_memory_reserved counts it; equal where memory is planned.",
                "the same replay by the rules of c10/cuda/CUDACachingAllocator.cpp",
                "docs/memory.md"},
    Explanation{"memory_process_gib",
                "Reserved memory, CUDA's context, NCCL's buffers and cuBLAS's workspace: what "
                "nvidia-smi shows.",
                "memory_reserved_gib + context + communicators + workspace", "docs/memory.md"},
    Explanation{"memory_needed_gib",
                "memory_gib_per_gpu: of the process all that the allocator cannot give back.",
                "segments in use + context + communicators + workspace", "docs/memory.md"},
    Explanation{"memory_parts_gib", "memory_gib_per_gpu part by part.", "", ""},
    Explanation{"power_w_per_gpu", "Mean electric power of one GPU over the step.",
                "energy_j / step_time_s / gpus", ""},
    Explanation{"energy_j", "Energy of all GPUs for one step; hosts and switches not counted.",
                "power_w_per_gpu x gpus x step_time_s", ""},
    Explanation{"tokens_per_joule", "Training tokens per joule of the GPUs.",
                "global batch x sequence / energy_j", ""},
    Explanation{"run",
                "The whole run that [run_goal] asks about, and what a token costs by [cost]: an "
                "object (docs/cost.md).",
                "", "docs/cost.md"},
    Explanation{"run.tokens", "Tokens that the run trains on.",
                "as asked, or days x tokens_per_s x goodput", ""},
    Explanation{"run.tokens_low", "Lower end of its band.", "as run.days_low", ""},
    Explanation{"run.tokens_high", "Upper end of its band.", "as run.days_low", ""},
    Explanation{"run.days", "Wall time of the run.", "tokens / (tokens_per_s x goodput) / 86400",
                ""},
    Explanation{"run.days_low", "Lower end of its band.",
                "from the error bar of the step; of dollars also from the range of prices, "
                "half-widths added up in squares of their logarithms",
                "docs/confidence.md"},
    Explanation{"run.days_high", "Upper end of its band.", "as run.days_low", "docs/confidence.md"},
    Explanation{"run.gpu_hours", "GPU hours of the run, those without progress included.",
                "run.days x 24 x gpus", ""},
    Explanation{"run.energy_mwh", "Energy at the building's meter.",
                "hours x (goodput x power at work + (1 - goodput) x power at rest) x PUE",
                "docs/cost.md"},
    Explanation{"run.energy_low_mwh", "Lower end of its band.", "as run.days_low", ""},
    Explanation{"run.energy_high_mwh", "Upper end of its band.", "as run.days_low", ""},
    Explanation{"run.co2_t",
                "CO2 equivalent of that energy, location based; nothing embodied in hardware.",
                "run.energy_mwh x carbon", "docs/cost.md"},
    Explanation{"run.co2_low_t", "Lower end of its band.", "as run.days_low", ""},
    Explanation{"run.co2_high_t", "Upper end of its band.", "as run.days_low", ""},
    Explanation{"run.usd", "What the run costs, US dollars.",
                "run.gpu_hours x run.usd_per_gpu_hour", "docs/cost.md"},
    Explanation{"run.usd_low", "Lower end of its band.", "as run.days_low", ""},
    Explanation{"run.usd_high", "Upper end of its band.", "as run.days_low", ""},
    Explanation{"run.usd_per_gpu_hour", "Of a GPU with its share of node and network.",
                "rent, or capex (1 + overhead) i / (1 - (1 + i)^-years) / (8766 x utilisation) + "
                "opex + kW x price of electricity",
                "docs/cost.md"},
    Explanation{"run.usd_per_million_tokens", "What a million tokens cost.",
                "run.usd_per_gpu_hour x gpus / (tokens_per_s x goodput) / 3600 x 1e6", ""},
    Explanation{"run.joules_per_token", "Energy of a token at the building's meter.",
                "metered power / (tokens_per_s x goodput)", ""},
    Explanation{"run.power_gpus_kw", "Of all GPUs while a step runs.", "power_w_per_gpu x gpus",
                ""},
    Explanation{"run.power_nodes_kw", "Of the nodes beside their GPUs.",
                "0.82 x rated power - TDP of its GPUs, times nodes", "docs/cost.md"},
    Explanation{"run.power_network_kw", "Of switches and the cables in them.",
                "switches x switch_power + their ports x transceiver_power", "docs/cost.md"},
    Explanation{"provenance",
                "Where the times come from, as shares of kernel and of collective time: measured "
                "(this very shape), interpolated (between measured shapes), extrapolated (beyond "
                "them, or from a sibling GPU), derived (bytes x achieved bandwidth, or a published "
                "rate), model (NCCL's own terms, corrected), datasheet (peaks only).",
                "", ""},
    Explanation{"confidence",
                "What the error bars rest on: their level, whose errors (errors_of), of how many "
                "sources, by how much they are widened because the forecast leaves what was "
                "measured, and the user's own runs that narrowed them; memory_sources, and false "
                "in memory_assured where so few allow no such level.",
                "", "docs/confidence.md"},
    Explanation{"runner_up",
                "The next best of the plans that \"best\" chose from, and the probability that it "
                "is slower when measured.",
                "", "docs/confidence.md"},
    Explanation{"plan", "The parallel plan and the batch that were run, every choice resolved.",
                "gpus = data_degree x context x tensor x pipeline", ""},
    Explanation{"cluster", "The machine: node, number of nodes, fabric and NCCL version.", "", ""},
    Explanation{"changed",
                "Keys of the scenario that say something else than the defaults and the entries of "
                "the catalogue, as they hold.",
                "", "stepcast show keys"},
    Explanation{"assumptions",
                "What nobody has measured or published and the step rests on; no key where there "
                "is nothing.",
                "", "docs/modern.md"},
    Explanation{"warnings",
                "What to know before trusting the numbers, such as keys without effect.", "", ""},
    Explanation{"title", "The title of the scenario file.", "", ""},
    Explanation{"model", "The model's name in the catalogue.", "", ""},
    Explanation{"gpu", "The GPU's name in the catalogue (stepcast show gpus).", "", ""},
    Explanation{"gpus", "GPUs of the cluster, one rank each.", "nodes x GPUs per node", ""},
    Explanation{"nodes", "Nodes of the cluster.", "", ""},
    Explanation{"simulated_ranks",
                "Ranks that were simulated; fewer than gpus when ranks that are provably alike are "
                "run once (--no-fold runs all).",
                "", ""},
    Explanation{"events", "Events that the engine processed.", "", ""},
    Explanation{"refused",
                "Why a plan cannot run: the memory parts that do not fit, or what does not divide.",
                "", ""},
    Explanation{"memory_over_gib",
                "Of a refused plan: what the fullest rank needs beyond the memory of its GPU.",
                "needed less the GPU's memory", "docs/memory.md"},
    Explanation{"failed",
                "The error of stepcast itself that kept a point of a sweep from an answer.", "",
                ""},
    Explanation{"points", "The points of a sweep, in the order of the scenario file.", "", ""},
    Explanation{"sweep", "The keys and values that this point of the sweep sets.", "", ""},
    Explanation{"interrupted", "The run was stopped: points are missing.", "", ""},
    Explanation{"goodput",
                "Effective training time ratio (ETTR): the share of wall time in which the run "
                "trains at full speed and keeps what it has done. What Google calls ML "
                "productivity goodput also counts scheduling and the program's own efficiency.",
                "mean over simulated runs of training / (training + checkpoints + work done again "
                "+ down + waiting + slowed)",
                "docs/failures.md"},
    Explanation{"goodput_low",
                "Lower end of the band of goodput: runs differ by chance and clusters by their "
                "rates.",
                "quantile over simulated runs, their rates drawn by failures.sigma",
                "docs/failures.md"},
    Explanation{"goodput_high", "Upper end of the band of goodput.", "as goodput_low",
                "docs/failures.md"},
    Explanation{"tokens_per_day", "Training tokens of a day, failures and checkpoints included.",
                "tokens_per_s x 86,400 x goodput", "docs/failures.md"},
    Explanation{"tokens_per_day_low", "Lower end of the band of tokens_per_day.",
                "bands of step_time_s and goodput, their logarithms added as variances",
                "docs/failures.md"},
    Explanation{"tokens_per_day_high", "Upper end of the band of tokens_per_day.",
                "as tokens_per_day_low", "docs/failures.md"},
    Explanation{
        "failures",
        "What goodput rests on: rates, the share of wall time of each state, checkpoints by "
        "tier in bytes and seconds, Daly's formula, what a minute of restart is worth.",
        "", "docs/failures.md"},
    Explanation{"time_us", "Time of one collective alone on its links, in microseconds.", "", ""},
    Explanation{"time_low_us", "Lower end of the error bar of time_us, from measured collectives.",
                "as step_time_low_s", "docs/confidence.md"},
    Explanation{"time_high_us", "Upper end of the error bar of time_us.", "as step_time_low_s",
                "docs/confidence.md"},
    Explanation{"algbw_gb_per_s", "Algorithm bandwidth, GB = 1e9 bytes.", "bytes / time",
                "nccl-tests doc/PERFORMANCE.md"},
    Explanation{"busbw_gb_per_s",
                "Bus bandwidth: algorithm bandwidth times a factor that makes it comparable with "
                "the hardware for any number of ranks n.",
                "algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter and "
                "all_to_all, x 1 for broadcast, reduce and send_receive",
                "nccl-tests doc/PERFORMANCE.md"},
    Explanation{"algorithm", "The algorithm that NCCL of this version picks: ring, tree, nvls, ...",
                "", "NCCL src/graph/tuning.cc"},
    Explanation{"protocol", "The protocol that NCCL of this version picks: ll, ll128, simple.", "",
                "NCCL src/graph/tuning.cc"},
    Explanation{"channels",
                "Channels that NCCL uses; each holds an SM on every member, but for copy_engine.",
                "", ""},
    Explanation{"collective", "The kind of the collective.", "", ""},
    Explanation{"bytes",
                "Size as in nccl-tests: the full buffer of all ranks for all_gather and "
                "reduce_scatter, the message for all_reduce.",
                "", "nccl-tests"},
    Explanation{"dtype", "The type of the elements that are moved.", "", ""},
};

}  // namespace

std::span<const Explanation> explanations() { return all_explanations; }

const Explanation* find_explanation(std::string_view key) {
  for (const Explanation& one : all_explanations)
    if (one.key == key) return &one;
  return nullptr;
}

std::string explanation_text(const Explanation& one) {
  std::string out = std::string(one.key) + "\n  " + std::string(one.meaning) + "\n";
  if (!one.formula.empty()) out += "  formula: " + std::string(one.formula) + "\n";
  if (const Metric* metric = find_metric(one.key); metric != nullptr && !metric->unit.empty())
    out += "  unit: " + std::string(metric->unit) + "\n";
  if (!one.source.empty()) out += "  source: " + std::string(one.source) + "\n";
  return out;
}

}  // namespace stepcast::sim
