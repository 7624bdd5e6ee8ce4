#include "workloads/step_program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "workloads/calls.hpp"
#include "workloads/ends_piece.hpp"
#include "workloads/gradient_buckets.hpp"
#include "workloads/layer_piece.hpp"
#include "workloads/optimizer_calls.hpp"
#include "workloads/pipeline_exchange.hpp"
#include "workloads/sharded_units.hpp"

namespace stepcast::workloads {
namespace {

/// The pieces that every stage replays.
struct Pieces {
  Piece embedding_forward, layer_forward, head_forward;
  Piece head_backward, layer_backward, embedding_backward;
  Piece kept_layer_backward;  // of a layer whose activations were kept although others' were not
};

/// A processor has no streams: what would run beside compute runs in its place, in the order of the
/// calls. Messages between stages stay beside it: two blocking sends would wait for each other.
void keep_on_one_lane(engine::Program& program) {
  for (engine::Instruction& i : program.instructions)
    if (i.lane == tensor_lane || i.lane == data_lane || i.lane == copy_lane) i.lane = compute;
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
  engine::Program write();

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
  void replay(const Piece& piece, std::size_t unit);
  void forward(std::size_t turn);
  void backward(std::size_t turn);
  void enter(const Turn& turn);
  bool has_root(const Turn& turn) const {
    return exchange_.first_part(turn) || exchange_.last_part(turn);
  }
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
      parameters_(stage_parameters(in.shape, in.plan, in.software.packed_projections, stage)),
      calls_(in.software.tensor_overlap && in.plan.tensor > 1),
      data_(make_data_calls(table)),
      exchange_(in_, table, calls_, stage),
      backwards_of_chunk_(parameters_.chunk_layers.size(), 0) {
  make_pieces();
}

void StageWriter::make_pieces() {
  pieces_.layer_forward = layer_forward(in_, table_);
  pieces_.layer_backward = layer_backward(in_, table_, parameters_.layer);
  if (in_.plan.recompute_every > 1) {
    ParallelPlan keeping = in_.plan;
    keeping.recompute = Recompute::none;
    pieces_.kept_layer_backward = layer_backward(
        {in_.shape, keeping, in_.batch, in_.precision, in_.software}, table_, parameters_.layer);
  }
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
        calls_.join(compute, context_slot, action.index);
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
    replay(pieces_.layer_forward, unit);
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
    replay(again ? pieces_.layer_backward : pieces_.kept_layer_backward, unit);
    data([&](auto& d) { d.after_backward(unit); });
  }
  if (exchange_.first_part(now)) replay(pieces_.embedding_backward, 0);
  exchange_.after(turn);
  if (has_root(now)) data([&](auto& d) { d.after_backward(0); });
  data([](auto& d) { d.after_micro_batch(); });
  if (last || in_.plan.reduce == ReduceWhen::each) data([](auto& d) { d.finish_backward(); });
}

/// Gradients that more ranks share than the data-parallel group: norms under sequence parallel
/// (one flattened all-reduce over the tensor group, fp32), and tied embeddings on the first and the
/// last stage (FRAMEWORKS 3.3). Sharded ones are reduced as shards.
void StageWriter::sum_shared_gradients() {
  const std::int64_t shards = in_.sharded() ? in_.plan.shards() : 1;
  const auto fp32_all_reduce = [&](const char* name, GroupKind group, std::int64_t elements) {
    return table_.index_of(Collective{name, CollectiveKind::all_reduce, group, Dtype::fp32,
                                      Bytes(4 * ((elements + shards - 1) / shards))});
  };
  if (in_.plan.tensor > 1 && in_.plan.sequence_parallel) {
    const std::int64_t norms = parameters_.layers * replicated_elements_of(parameters_.layer) +
                               replicated_elements_of(parameters_.root);
    calls_.tensor_collective(fp32_all_reduce("norms.reduce", GroupKind::tensor, norms));
  }
  if (in_.shape.tied_embeddings && in_.plan.pipeline > 1 && (first_stage() || last_stage()))
    calls_.join(compute, embedding_slot,
                fp32_all_reduce("embedding.reduce", GroupKind::embedding,
                                in_.shape.vocab / in_.plan.tensor * in_.shape.hidden));
}

/// After the last backward: what is left of communication, then the optimizer.
void StageWriter::tail() {
  sum_shared_gradients();
  write_optimizer(in_, table_, calls_, parameters_);
  data([](auto& d) { d.after_optimizer(); });
  if (in_.software.step_sync && in_.software.fusion != Fusion::fused)
    calls_.host_wait(calls_.record(compute));  // loss.item()
}

engine::Program StageWriter::write() {
  calls_.host_work(step_call);
  for (std::size_t turn = 0; turn < exchange_.turns().size(); ++turn) {
    if (exchange_.turns()[turn].pass == Pass::forward)
      forward(turn);
    else
      backward(turn);
  }
  tail();
  engine::Program program = calls_.take();
  if (in_.software.collectives_hold_core) keep_on_one_lane(program);
  program.num_lanes = lanes_of(program);
  return program;
}

}  // namespace

StepProgram make_step_program(const TransformerShape& shape, const ParallelPlan& plan,
                              const Batch& batch, const Precision& precision,
                              const Software& software) {
  expects(plan.tensor >= 1 && plan.pipeline >= 1 && plan.context >= 1 &&
              shape.heads % plan.tensor == 0 && batch.micro_batches >= 1,
          "a plan that check() accepts");
  expects(precision.compute != Dtype::fp8, "a precision that check() accepts");
  const StepInputs in{shape, plan, batch, precision, software};
  KernelTable table;
  StepProgram out;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage)
    out.roles.push_back(StageWriter(in, table, stage).write());
  out.kernels = table.take_kernels();
  out.collectives = table.take_collectives();
  return out;
}

}  // namespace stepcast::workloads
