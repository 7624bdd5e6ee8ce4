#include "validate/layers/predict.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/run/simulate.hpp"
#include "workloads/step/expert_layer.hpp"

namespace stepcast::validate {
namespace {

/// As a run of one layer: what attention, embedding and head are like does not matter, they do not
/// run.
PublishedRow published_row_of(const LayerRow& row) {
  constexpr std::int64_t head = 128, vocabulary = 1024, node = 8;
  PublishedRow out;
  out.file = row.file;
  out.line = row.line;
  out.id = row.id;
  out.source = out.url = row.source;
  out.notes = row.notes;
  out.gpu = row.gpu;
  out.model = "layer of " + row.source;
  out.dp_mode = "ddp";
  out.activation_checkpointing = "none";
  out.precision = row.precision;
  out.fp8_recipe = row.recipe;
  out.dispatcher = row.dispatcher;
  out.routing = row.routing;
  out.gpus = row.gpus;
  out.gpus_per_node = std::min(row.gpus, node);
  out.layers = 1;
  out.hidden = row.hidden;
  out.heads = std::max<std::int64_t>(row.tensor, row.hidden / head);
  out.vocab = vocabulary;
  out.ffn_hidden = out.moe_ffn = row.ffn;
  out.experts = row.experts;
  out.topk = row.per_token;
  if (row.shared_ffn > 0) out.shared_experts = 1, out.shared_width = row.shared_ffn;
  out.ep = row.expert;
  out.tp = row.tensor;
  out.seq_len = row.sequence;
  out.micro_batch_seqs = row.micro_batch;
  out.global_batch_seqs = row.micro_batch * row.gpus / std::max<std::int64_t>(1, row.tensor);
  return out;
}

/// The first rank's events from the end of one to the start of the other mark, or to the last.
LayerParts parts_between(const sim::Timeline& timeline, Duration from, Duration until) {
  LayerParts out;
  Duration last = from, busy{};
  for (const sim::TimelineEvent& e : timeline.events) {
    if (e.rank != timeline.events.front().rank || e.start < from || e.start >= until) continue;
    const bool products = e.family == workloads::KernelFamily::grouped_gemm;
    double& part = e.is_collective() ? out.exchange : products ? out.products : out.others;
    // Shared experts run beside an exchange: of it counts what nothing covers.
    const Duration begin = std::max(e.start, last), end = std::max(begin, e.start + e.duration);
    part += seconds(end - begin);
    busy += end - begin;
    last = std::max(last, end);
  }
  out.idle = seconds(last - from - busy);
  return out;
}

const sim::TimelineEvent& mark_of(const sim::Timeline& timeline, const char* name) {
  const auto at = std::ranges::find(timeline.events, std::string(name), &sim::TimelineEvent::name);
  ensures(at != timeline.events.end(), "marks of a layer's program are on the timeline");
  return *at;
}

void time_layer(LayerResult& result, const sim::Scenario& scenario, sim::Session& session) {
  sim::StepReport report = sim::admitted(scenario);
  const sim::Scenario& s = report.scenario;
  auto program =
      workloads::make_expert_layer_program({s.model, s.plan, s.batch, s.precision, s.software});
  for (const engine::Instruction& call : program.roles[0].instructions) {
    if (call.op != engine::Op::work) continue;
    const workloads::Kernel& kernel = program.kernels[call.arg];
    if (kernel.family == workloads::KernelFamily::grouped_gemm) result.flops += kernel.flops.value;
  }
  sim::Timeline timeline;
  sim::simulate(report,
                sim::bind_step(s, std::move(program), session.network(s), *session.kernels(s)),
                &timeline);
  const auto& first = mark_of(timeline, workloads::before_layer_forward);
  const auto& second = mark_of(timeline, workloads::before_layer_backward);
  result.forward = parts_between(timeline, first.start + first.duration, second.start);
  result.backward = parts_between(timeline, second.start + second.duration, Duration::max());
}

}  // namespace

RowScenario layer_scenario(const LayerRow& row, const ScenarioMaker& maker) {
  const std::string where = row.file + ":" + std::to_string(row.line);
  RowScenario out = maker.scenario_of(published_row_of(row), where);
  if (!out.scenario) return out;
  out.scenario->model.experts.groups = row.groups;
  out.scenario->model.experts.group_limit = row.group_limit;
  return out;
}

std::vector<LayerResult> predict_layers(const std::vector<LayerRow>& rows, sim::Session& session) {
  const ScenarioMaker maker(session);
  std::vector<LayerResult> out;
  for (const LayerRow& row : rows) {
    LayerResult& result = out.emplace_back();
    result.row = row;
    RowScenario made = layer_scenario(row, maker);
    result.refused = made.refused;
    result.assumed = std::move(made.assumed);
    if (!made.scenario) continue;
    try {
      time_layer(result, *made.scenario, session);
    } catch (const InputError& error) {
      result.refused = error.problem();
    }
  }
  return out;
}

}  // namespace stepcast::validate
