#include "workloads/step/step_program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "engine/arithmetic.hpp"
#include "workloads/step/calls.hpp"
#include "workloads/step/ends_piece.hpp"
#include "workloads/step/gradient_buckets.hpp"
#include "workloads/step/layer_piece.hpp"
#include "workloads/step/optimizer_calls.hpp"
#include "workloads/step/pipeline_exchange.hpp"
#include "workloads/step/sharded_units.hpp"
#include "workloads/step/step_parts.hpp"

namespace stepcast::workloads {
namespace {

/// The pieces that every stage replays.
struct Pieces {
  Piece embedding_forward, head_forward, head_backward, embedding_backward;
  std::vector<LayerPieces> layers;  // by kind
};

/// A processor has no streams: what would run beside compute runs in its place, in the order of the
/// calls. Messages between stages stay beside it: two blocking sends would wait for each other.
void keep_on_one_lane(engine::Program& program) {
  for (engine::Instruction& i : program.instructions)
    if (i.lane == tensor_lane || i.lane == data_lane || i.lane == copy_lane ||
        i.lane == replica_lane)
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

 private:
  using DataParallelCalls = std::variant<ShardedUnits, GradientBuckets>;
  template <class F>
  void data(F&& f) {
    std::visit(std::forward<F>(f), data_);
  }
  DataParallelCalls make_data_calls(KernelTable& table) {
    if (in_.sharded()) return ShardedUnits(in_, table, calls_, parameters_);
    return GradientBuckets(in_, table, calls_, parameters_);
  }

  bool first_stage() const { return stage_ == 0; }
  bool last_stage() const { return stage_ == in_.plan.pipeline - 1; }

  void make_pieces();
  const LayerPieces& pieces_of(std::size_t unit) const {
    return pieces_.layers[parameters_.kind_of[unit - (parameters_.root.empty() ? 0 : 1)]];
  }
  void replay(const Piece& piece, std::size_t unit);
  void forward(std::size_t turn);
  void backward(std::size_t turn);
  void enter(const Turn& turn);
  bool has_root(const Turn& turn) const {
    return exchange_.first_part(turn) || exchange_.last_part(turn);
  }
  void write_turn(std::size_t turn);
  AlikeTurns alike_from(std::size_t turn) const;
  std::size_t write_alike(std::size_t turn, const AlikeTurns& alike);
  bool same_calls(std::uint32_t first, std::uint32_t middle, std::uint32_t events) const;
  void visit(WriterState& state, std::size_t next, std::size_t ahead);
  bool any_first_backward(std::size_t first, std::size_t end) const;
  void count_turns(std::size_t first, std::size_t turns);
  void sum_shared_gradients();
  void tail();

  const StepInputs in_;
  KernelTable& table_;
  std::int64_t stage_;
  StageParameters parameters_;
  Calls calls_;
  DataParallelCalls data_;
  PipelineExchange exchange_;
  Pieces pieces_;
  UnitRange units_;  // of the chunk whose turn it is
  std::int64_t forwards_ = 0, backwards_ = 0;
  std::vector<std::int64_t> backwards_of_chunk_;
};

StageWriter::StageWriter(const StepInputs& in, KernelTable& table, std::int64_t stage)
    : in_(in),
      table_(table),
      stage_(stage),
      parameters_(
          stage_parameters(in.shape, in.plan, in.precision, in.software.products.packed, stage)),
      calls_(in.software.tensor.overlap && in.plan.tensor > 1),
      data_(make_data_calls(table)),
      exchange_(in_, table, calls_, stage),
      backwards_of_chunk_(parameters_.chunk_layers.size(), 0) {
  make_pieces();
}

void StageWriter::make_pieces() {
  for (const AlikeLayers& alike : parameters_.kinds)
    pieces_.layers.push_back(layer_pieces(in_, table_, alike));
  if (first_stage()) {
    pieces_.embedding_forward = embedding_forward(in_, table_);
    pieces_.embedding_backward = embedding_backward(in_, table_, parameters_.root);
  }
  if (last_stage()) {
    pieces_.head_forward = head_forward(in_, table_);
    pieces_.head_backward = head_backward(in_, table_, parameters_.root);
  }
}

void StageWriter::replay(const Piece& piece, std::size_t unit) {
  for (const Action& action : piece) switch (action.kind) {
      case Action::Kind::kernel:
        calls_.kernel(compute, action.index);
        break;
      case Action::Kind::forward_kernel:
        calls_.forward_kernel(compute, action.index);
        break;
      case Action::Kind::module:
        calls_.host_work(module_call);
        break;
      case Action::Kind::collective:
        calls_.tensor_collective(action.index);
        break;
      case Action::Kind::begin:
        calls_.begin_tensor_collective(action.index);
        break;
      case Action::Kind::end:
        calls_.end_tensor_collective();
        break;
      case Action::Kind::ring_start:
        calls_.start_ring(action.index);
        break;
      case Action::Kind::ring_wait:
        calls_.wait_ring();
        break;
      case Action::Kind::context:
        calls_.join(compute, GroupKind::context, action.index);
        break;
      case Action::Kind::gradient:
        data([&](auto& d) { d.gradient(unit, action.index); });
        break;
    }
}

/// The units of a stage are its root, if it has one, then the layers chunk by chunk.
void StageWriter::enter(const Turn& turn) {
  const auto chunk = parameters_.chunk_layers.begin() + turn.chunk;
  const std::int64_t root = parameters_.root.empty() ? 0 : 1;
  const std::int64_t before = std::accumulate(parameters_.chunk_layers.begin(), chunk, root);
  units_ = {static_cast<std::size_t>(before), static_cast<std::size_t>(before + *chunk)};
  if (auto* sharded = std::get_if<ShardedUnits>(&data_)) sharded->enter(units_);
}

void StageWriter::forward(std::size_t turn) {
  const Turn& now = exchange_.turns()[turn];
  enter(now);
  const bool first = forwards_++ == 0;
  data([&](auto& d) { d.start_forward(first); });
  exchange_.before(turn);
  if (has_root(now)) data([&](auto& d) { d.before_forward(0); });
  if (exchange_.first_part(now)) replay(pieces_.embedding_forward, 0);
  for (std::size_t unit = units_.begin; unit < units_.end; ++unit) {
    data([&](auto& d) { d.before_forward(unit); });
    replay(pieces_of(unit).forward, unit);
    data([&](auto& d) { d.after_forward(unit); });
  }
  if (exchange_.last_part(now)) replay(pieces_.head_forward, 0);
  exchange_.after(turn);
}

void StageWriter::backward(std::size_t turn) {
  const Turn& now = exchange_.turns()[turn];
  enter(now);
  const std::int64_t of_chunk = ++backwards_of_chunk_[static_cast<std::size_t>(now.chunk)];
  const bool last = ++backwards_ == in_.batch.micro_batches * in_.plan.virtual_stages;
  data([&](auto& d) { d.start_backward(of_chunk == 1, of_chunk == in_.batch.micro_batches); });
  exchange_.before(turn);
  if (has_root(now)) data([&](auto& d) { d.before_backward(0); });
  if (exchange_.last_part(now)) replay(pieces_.head_backward, 0);
  for (std::size_t unit = units_.end; unit-- > units_.begin;) {
    data([&](auto& d) { d.before_backward(unit); });
    const auto of_part = static_cast<std::int64_t>(unit - units_.begin);
    const bool again = of_part % in_.plan.recompute_every == 0;
    replay(again ? pieces_of(unit).backward : pieces_of(unit).kept_backward, unit);
    data([&](auto& d) { d.after_backward(unit); });
  }
  if (exchange_.first_part(now)) replay(pieces_.embedding_backward, 0);
  exchange_.after(turn);
  if (has_root(now)) data([&](auto& d) { d.after_backward(0); });
  data([](auto& d) { d.after_micro_batch(); });
  if (last || in_.plan.reduce == ReduceWhen::each) data([](auto& d) { d.finish_backward(); });
}

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
    const std::int64_t norms =
        parameters_.over_layers(replicated_elements_of) + replicated_elements_of(parameters_.root);
    // A stage of the embedding alone has none.
    if (norms > 0)
      calls_.tensor_collective(fp32_all_reduce("norms.reduce", GroupKind::tensor, norms));
  }
  if (embedding_on_both_ends(in_.shape, in_.plan) && (first_stage() || last_stage()))
    calls_.join(compute, GroupKind::embedding,
                fp32_all_reduce("embedding.reduce", GroupKind::embedding,
                                Sizes(in_).vocab * in_.shape.hidden));
}

/// After the last backward: what is left of communication, then the optimizer.
void StageWriter::tail() {
  sum_shared_gradients();
  write_optimizer(in_, table_, calls_, parameters_);
  data([](auto& d) { d.after_optimizer(); });
  if (in_.software.host.step_sync && !in_.software.fused())
    calls_.host_wait(calls_.record(compute));  // loss.item()
}

void StageWriter::write_turn(std::size_t turn) {
  if (exchange_.turns()[turn].pass == Pass::forward)
    forward(turn);
  else
    backward(turn);
}

void StageWriter::visit(WriterState& state, std::size_t next, std::size_t ahead) {
  calls_.visit(state);
  data([&](auto& d) { d.visit(state); });
  exchange_.visit(state, next, ahead);
}

/// Whether the calls from `middle` on are those from `first` to there again, with events that are
/// `events` later.
bool StageWriter::same_calls(std::uint32_t first, std::uint32_t middle,
                             std::uint32_t events) const {
  const std::vector<engine::Instruction>& all = calls_.builder().instructions();
  if (all.size() - middle != middle - first) return false;
  return std::equal(
      all.begin() + first, all.begin() + middle, all.begin() + middle,
      [events](engine::Instruction a, const engine::Instruction& b) {
        if (a.op == engine::Op::record || a.op == engine::Op::wait || a.op == engine::Op::host_wait)
          a.arg += events;
        return a == b;
      });
}

/// Whether a chunk has its first backward among turns [first, end), which come next.
bool StageWriter::any_first_backward(std::size_t first, std::size_t end) const {
  const auto turns = exchange_.turns().begin();
  return std::any_of(turns + static_cast<std::ptrdiff_t>(first),
                     turns + static_cast<std::ptrdiff_t>(end), [&](const Turn& turn) {
                       return turn.pass == Pass::backward &&
                              backwards_of_chunk_[static_cast<std::size_t>(turn.chunk)] == 0;
                     });
}

/// The alike turns from `turn` on. Of a stage between the others all chunks are alike, where none
/// has data-parallel calls of its own: one micro-batch is as the next. The first and the last stage
/// have a chunk unlike the others, and repeat in rounds over all; where a step has too few rounds,
/// the other chunks' micro-batches.
AlikeTurns StageWriter::alike_from(std::size_t turn) const {
  const std::vector<Turn>& turns = exchange_.turns();
  const PipelineShape shape{in_.plan.schedule, in_.plan.pipeline, in_.batch.micro_batches,
                            in_.plan.virtual_stages};
  const auto& layers = parameters_.chunk_layers;
  const bool chunks_alike = layers.size() > 1 && std::holds_alternative<GradientBuckets>(data_) &&
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
    const bool first_backward = any_first_backward(turn, turn + alike.period);
    for (std::size_t t = turn; t < turn + alike.period; ++t) write_turn(t);
    const std::uint32_t each = calls_.builder().num_events() - events;
    const std::size_t next = turn + alike.period, left = alike.blocks - block - 1;
    WriterState after;
    visit(after, next, ahead);
    const bool again = block > 0 && left > 0 && !first_backward && after.follows(before, each) &&
                       same_calls(previous, first, each);
    previous = first;
    if (!again) continue;
    const auto more = static_cast<std::uint32_t>(left);
    calls_.repeat(first, more, each);
    WriterState carried(before, each, more);
    visit(carried, next, ahead);
    exchange_.pass(next, left * alike.period);
    count_turns(next, left * alike.period);
    return next + left * alike.period;
  }
  return turn;
}

/// Counts turns [first, first + turns) as written.
void StageWriter::count_turns(std::size_t first, std::size_t turns) {
  for (std::size_t t = first; t < first + turns; ++t) {
    const Turn& turn = exchange_.turns()[t];
    if (turn.pass == Pass::forward) {
      ++forwards_;
    } else {
      ++backwards_;
      ++backwards_of_chunk_[static_cast<std::size_t>(turn.chunk)];
    }
  }
}

engine::Program StageWriter::write(bool repeating) {
  calls_.host_work(step_call);
  for (std::size_t turn = 0; turn < exchange_.turns().size();) {
    const AlikeTurns alike = repeating ? alike_from(turn) : AlikeTurns{};
    if (alike.blocks > 2)
      turn = write_alike(turn, alike);
    else
      write_turn(turn++);
  }
  tail();
  engine::Program program = calls_.take();
  if (in_.software.host.collectives_hold_core) keep_on_one_lane(program);
  program.num_lanes = lanes_of(program);
  return program;
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
