#include "workloads/step/step_program.hpp"

#include <algorithm>

#include "engine/arithmetic.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/optimizer_calls.hpp"
#include "workloads/step/turn_starts.hpp"
#include "workloads/step/turn_writer.hpp"

namespace stepcast::workloads {
namespace {

/// A processor has no streams: what would run beside compute runs in its place, in the order of the
/// calls. Messages between stages stay beside it: two blocking sends would wait for each other.
void keep_on_one_lane(engine::Program& program) {
  for (engine::Instruction& i : program.instructions)
    if (i.lane == tensor_lane || i.lane == data_lane || i.lane == copy_lane ||
        i.lane == replica_lane || i.lane == expert_lane || i.lane == expert_data_lane ||
        i.lane == to_host_lane || i.lane == from_host_lane)
      i.lane = compute;
}

/// Lanes beyond the last used one cost the engine room in every rank.
std::uint8_t lanes_of(const engine::Program& program) {
  std::uint8_t last = 0;
  for (const engine::Instruction& i : program.instructions) last = std::max(last, i.lane);
  return static_cast<std::uint8_t>(last + 1);
}

/// Writes the program of one pipeline stage.
class StageWriter {
 public:
  StageWriter(const StepInputs& in, KernelTable& table, std::int64_t stage);
  engine::Program write(bool repeating);
  /// Instead of write().
  TurnStarts starts();

 private:
  bool first_stage() const { return in_.plan.has_first_part(stage_); }
  bool last_stage() const { return in_.plan.has_last_part(stage_); }

  AlikeTurns alike_from(std::size_t turn) const;
  std::size_t write_alike(std::size_t turn, const AlikeTurns& alike);
  bool same_calls(std::uint32_t first, std::uint32_t middle, std::uint32_t events) const;
  void visit(WriterState& state, std::size_t next, std::size_t ahead);
  void sum_shared_gradients();
  void sum_mirrored_gradients();
  void tail();

  const StepInputs in_;
  KernelTable& table_;
  std::int64_t stage_;
  StageParameters parameters_;
  Calls calls_;
  TurnWriter turns_;
};

StageWriter::StageWriter(const StepInputs& in, KernelTable& table, std::int64_t stage)
    : in_(in),
      table_(table),
      stage_(stage),
      parameters_(
          stage_parameters(in.shape, in.plan, in.precision, in.software.products.packed, stage)),
      calls_(in.overlaps_tensor(), in.plan.expert.shared_overlap || in.plan.expert.overlap,
             in.software.host),
      turns_(in_, table, calls_, parameters_, stage) {}

/// Gradients that more ranks share than the data-parallel group: norms under sequence parallel
/// (one flattened all-reduce over the tensor group, fp32), and embeddings on the first and the last
/// stage, tied or for MTP (Megatron-LM). Sharded ones are reduced as shards.
void StageWriter::sum_shared_gradients() {
  const std::int64_t shards = in_.sharded() ? in_.plan.shards() : 1;
  const auto fp32_all_reduce = [&](const char* name, GroupKind group, std::int64_t elements) {
    return table_.index_of(Collective{name, CollectiveKind::all_reduce, group, Dtype::fp32,
                                      Bytes(4 * ceil_div(elements, shards))});
  };
  if (in_.plan.tensor > 1 && in_.plan.sequence_parallel) {
    const StageParameters trained = trained_of(parameters_);
    const std::int64_t norms =
        trained.over_layers(replicated_elements_of) + replicated_elements_of(trained.root);
    // A stage of the embedding alone, or of frozen ones, has none.
    if (norms > 0)
      calls_.tensor_collective(fp32_all_reduce("norms.reduce", GroupKind::tensor, norms));
  }
  const bool one_end = first_stage() != last_stage();
  if (embedding_on_both_ends(in_.shape, in_.plan) && one_end && !adapted(in_.shape))
    calls_.join(compute, GroupKind::embedding,
                fp32_all_reduce("embedding.reduce", GroupKind::embedding,
                                Sizes(in_).vocab * in_.shape.hidden));
}

/// Two copies of the model: the ranks with the same parts of both add up what their own replicas
/// have reduced, and go on alike.
void StageWriter::sum_mirrored_gradients() {
  if (in_.plan.placement() != Placement::mirrored) return;
  const bool shards = in_.plan.data != DataParallel::ddp && in_.software.data.reduce_scatter;
  const std::int64_t elements =
      ceil_div(trained_of(parameters_).elements(), shards ? in_.plan.shards() : 1);
  const Dtype dtype = in_.precision.gradient_reduce;
  calls_.join(
      compute, GroupKind::mirror,
      table_.index_of(Collective{"mirror.reduce", CollectiveKind::all_reduce, GroupKind::mirror,
                                 dtype, Bytes(bytes_per_element(dtype) * elements)}));
}

/// After the last backward: what is left of communication, then the optimizer.
void StageWriter::tail() {
  sum_mirrored_gradients();
  sum_shared_gradients();
  write_optimizer(in_, table_, calls_, parameters_);
  turns_.after_optimizer();
  if (in_.software.host.step_sync && !in_.software.fused())
    calls_.host_wait(calls_.record(compute));  // loss.item()
}

void StageWriter::visit(WriterState& state, std::size_t next, std::size_t ahead) {
  calls_.visit(state);
  turns_.visit(state, next, ahead);
}

/// Whether the calls from `middle` on are those from `first` to there again, with events that are
/// `events` later.
bool StageWriter::same_calls(std::uint32_t first, std::uint32_t middle,
                             std::uint32_t events) const {
  const std::vector<engine::Instruction>& all = calls_.builder().instructions();
  if (all.size() - middle != middle - first) return false;
  const auto at = [&](std::uint32_t index) {
    return all.begin() + static_cast<std::ptrdiff_t>(index);
  };
  return std::equal(
      at(first), at(middle), at(middle),
      [events](engine::Instruction a, const engine::Instruction& b) {
        if (a.op == engine::Op::record || a.op == engine::Op::wait || a.op == engine::Op::host_wait)
          a.arg += events;
        return a == b;
      });
}

/// The alike turns from `turn` on. Of a stage between the others all chunks are alike, where none
/// has data-parallel calls of its own: one micro-batch is as the next. The first and the last stage
/// have a chunk unlike the others, and repeat in rounds over all; where a step has too few rounds,
/// the other chunks' micro-batches.
AlikeTurns StageWriter::alike_from(std::size_t turn) const {
  const std::vector<Turn>& turns = turns_.turns();
  const PipelineShape shape = pipeline_shape(in_.plan, in_.batch);
  if (!repeats_itself(shape)) return {};
  const auto& layers = parameters_.chunk_layers;
  const bool chunks_alike = layers.size() > 1 && turns_.has_buckets() &&
                            std::ranges::count(layers, layers[0]) == std::ssize(layers) &&
                            parameters_.kinds.size() == 1;
  if (!chunks_alike) return alike_turns(turns, shape, turn);
  const bool between = !first_stage() && !last_stage();
  const AlikeTurns rounds = between ? AlikeTurns{} : alike_turns(turns, shape, turn);
  if (rounds.blocks > 2) return rounds;
  std::vector<bool> inner(layers.size(), true);
  inner.front() = !first_stage();
  inner.back() = inner.back() && !last_stage();
  return alike_turns_of(inner, turns, shape, turn);
}

/// Writes alike turns until a block of them equals the one before in its calls and in what the
/// writer remembers: all others are its repeats, as what follows depends on nothing else. Returns
/// the next turn.
std::size_t StageWriter::write_alike(std::size_t turn, const AlikeTurns& alike) {
  const std::size_t ahead = alike.period + 1;
  std::uint32_t previous = 0;
  for (std::size_t block = 0; block < alike.blocks; ++block, turn += alike.period) {
    const std::uint32_t first = calls_.builder().size(), events = calls_.builder().num_events();
    WriterState before;
    visit(before, turn, ahead);
    const bool first_backward = turns_.any_first_backward(turn, turn + alike.period);
    for (std::size_t t = turn; t < turn + alike.period; ++t) turns_.write(t);
    const std::uint32_t each = calls_.builder().num_events() - events;
    const std::size_t next = turn + alike.period, left = alike.blocks - block - 1;
    WriterState after;
    visit(after, next, ahead);
    const bool again = block > 0 && left > 0 && !first_backward && after.follows(before, each) &&
                       same_calls(previous, first, each);
    previous = first;
    if (!again || first == calls_.builder().size()) continue;  // nothing is written: no repeat
    const auto more = static_cast<std::uint32_t>(left);
    calls_.repeat(first, more, each);
    WriterState carried(before, each, more);
    visit(carried, next, ahead);
    turns_.pass(next, left * alike.period);
    return next + left * alike.period;
  }
  return turn;
}

engine::Program StageWriter::write(bool repeating) {
  calls_.host_work(step_call);
  for (std::size_t turn = 0; turn < turns_.turns().size();) {
    const AlikeTurns alike = repeating ? alike_from(turn) : AlikeTurns{};
    if (alike.blocks > 2)
      turn = write_alike(turn, alike);
    else
      turns_.write(turn++);
  }
  tail();
  engine::Program program = calls_.take();
  if (in_.software.host.collectives_hold_core) keep_on_one_lane(program);
  program.num_lanes = lanes_of(program);
  return program;
}

TurnStarts StageWriter::starts() {
  TurnStarts out{turns_.turns(), {}};
  std::vector<std::uint32_t> calls_before;
  calls_.host_work(step_call);
  for (std::size_t turn = 0; turn < out.turns.size(); ++turn) {
    calls_before.push_back(calls_.builder().size());
    turns_.write(turn);
  }
  calls_before.push_back(calls_.builder().size());
  engine::Program program = calls_.take();
  if (in_.software.host.collectives_hold_core) keep_on_one_lane(program);
  std::uint32_t kernels = 0, call = 0;
  for (const std::uint32_t before : calls_before) {
    for (; call < before; ++call) {
      const engine::Instruction& i = program.instructions[call];
      kernels += i.op == engine::Op::work && i.lane == compute ? 1 : 0;
    }
    out.kernels_before.push_back(kernels);
  }
  return out;
}

StepProgram make_program(const StepInputs& in, bool repeating) {
  expects(in.plan.tensor >= 1 && in.plan.pipeline >= 1 && in.plan.context >= 1 &&
              in.shape.heads % in.plan.tensor == 0 && in.batch.micro_batches >= 1,
          "a plan that check() accepts");
  expects(in.precision.compute != Dtype::fp8, "a precision that check() accepts");
  KernelTable table;
  StepProgram out;
  for (std::int64_t stage = 0; stage < in.plan.pipeline; ++stage)
    out.roles.push_back(StageWriter(in, table, stage).write(repeating));
  out.kernels = table.take_kernels();
  out.collectives = table.take_collectives();
  return out;
}

}  // namespace

TurnStarts turn_starts(const StepInputs& in, std::int64_t stage) {
  KernelTable table;
  return StageWriter(in, table, stage).starts();
}

StepProgram make_step_program(const TransformerShape& shape, const ParallelPlan& plan,
                              const Batch& batch, const Precision& precision,
                              const Software& software) {
  return make_program({shape, plan, batch, precision, software}, false);
}

StepProgram make_repeating_program(const TransformerShape& shape, const ParallelPlan& plan,
                                   const Batch& batch, const Precision& precision,
                                   const Software& software) {
  return make_program({shape, plan, batch, precision, software}, true);
}

}  // namespace stepcast::workloads
