#include "workloads/step_program.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "workloads/calls.hpp"
#include "workloads/ends_piece.hpp"
#include "workloads/gradient_buckets.hpp"
#include "workloads/layer_piece.hpp"
#include "workloads/optimizer_calls.hpp"
#include "workloads/pipeline.hpp"
#include "workloads/sharded_units.hpp"

namespace stepcast::workloads {
namespace {

/// The pieces that every stage replays.
struct Pieces {
  Piece embedding_forward, layer_forward, head_forward;
  Piece head_backward, layer_backward, embedding_backward;
};

/// A processor has no streams: what would run beside compute runs in its place, in the order of the
/// calls. Messages between stages stay beside it: two blocking sends would wait for each other.
void keep_on_one_lane(engine::Program& program) {
  for (engine::Instruction& i : program.instructions)
    if (i.lane == tensor_lane || i.lane == data_lane || i.lane == copy_lane) i.lane = compute;
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
  std::size_t num_layers() const { return static_cast<std::size_t>(parameters_.layers); }
  std::size_t layer_unit(std::size_t layer) const { return layer + (has_root_ ? 1 : 0); }

  void make_pieces();
  void replay(const Piece& piece, std::size_t unit);
  void forward();
  void backward();
  void receive(Lane lane, Slot slot, GroupKind group, const char* name);
  void send(Lane lane, Slot slot, GroupKind group, const char* name);
  std::uint32_t exchange_collective(GroupKind group, const char* name);
  void sum_shared_gradients();
  void tail();

  const StepInputs in_;
  KernelTable& table_;
  std::int64_t stage_;
  StageParameters parameters_;
  bool has_root_;
  Calls calls_;
  DataParallelCalls data_;
  Pieces pieces_;
  std::int64_t forwards_ = 0, backwards_ = 0;
  std::optional<Event> sent_;  // pipeline_sync: the host waits for it after the next receive
};

StageWriter::StageWriter(const StepInputs& in, KernelTable& table, std::int64_t stage)
    : in_(in),
      table_(table),
      stage_(stage),
      parameters_(stage_parameters(in.shape, in.plan, in.software.packed_projections, stage)),
      has_root_(!parameters_.root.empty()),
      calls_(in.software.tensor_overlap && in.plan.tensor > 1),
      data_(make_data_calls(table)) {
  make_pieces();
}

void StageWriter::make_pieces() {
  pieces_.layer_forward = layer_forward(in_, table_);
  pieces_.layer_backward = layer_backward(in_, table_, parameters_.layer);
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
      case Action::Kind::gradient:
        data([&](auto& d) { d.gradient(unit, action.index); });
        break;
    }
}

void StageWriter::forward() {
  const bool first = forwards_++ == 0;
  data([&](auto& d) { d.start_forward(first); });
  if (!first_stage())
    receive(receive_previous_lane, receive_previous_slot, GroupKind::pipeline_forward,
            "pipeline.forward");
  if (has_root_) data([&](auto& d) { d.before_forward(0); });
  if (first_stage()) replay(pieces_.embedding_forward, 0);
  for (std::size_t layer = 0; layer < num_layers(); ++layer) {
    const std::size_t unit = layer_unit(layer);
    data([&](auto& d) { d.before_forward(unit); });
    replay(pieces_.layer_forward, unit);
    data([&](auto& d) { d.after_forward(unit); });
  }
  if (last_stage())
    replay(pieces_.head_forward, 0);
  else
    send(send_next_lane, send_next_slot, GroupKind::pipeline_forward, "pipeline.forward");
}

void StageWriter::backward() {
  const bool first = backwards_++ == 0;
  const bool last = backwards_ == in_.batch.micro_batches;
  data([&](auto& d) { d.start_backward(first, last); });
  if (!last_stage())
    receive(receive_next_lane, receive_next_slot, GroupKind::pipeline_backward,
            "pipeline.backward");
  if (has_root_) data([&](auto& d) { d.before_backward(0); });
  if (last_stage()) replay(pieces_.head_backward, 0);
  for (std::size_t layer = num_layers(); layer-- > 0;) {
    const std::size_t unit = layer_unit(layer);
    data([&](auto& d) { d.before_backward(unit); });
    replay(pieces_.layer_backward, unit);
    data([&](auto& d) { d.after_backward(unit); });
  }
  if (first_stage())
    replay(pieces_.embedding_backward, 0);
  else
    send(send_previous_lane, send_previous_slot, GroupKind::pipeline_backward, "pipeline.backward");
  if (has_root_) data([&](auto& d) { d.after_backward(0); });
  if (last || in_.plan.reduce == ReduceWhen::each) data([](auto& d) { d.finish_backward(); });
}

/// One hidden tensor A between stages, cut by t with sequence parallel (core_v0.12.0 schedules.py
/// get_tensor_shapes).
std::uint32_t StageWriter::exchange_collective(GroupKind group, const char* name) {
  return table_.index_of(Collective{name, CollectiveKind::send_receive, group,
                                    in_.precision.compute, Bytes(Sizes(in_).local_bytes())});
}

/// Posted when the host gets here: the lane starts where compute stands, as torch's irecv does.
void StageWriter::receive(Lane lane, Slot slot, GroupKind group, const char* name) {
  calls_.after(lane, compute);
  calls_.join(lane, slot, exchange_collective(group, name));
  const Event received = calls_.after(compute, lane);
  if (!in_.software.pipeline_sync) return;
  // Megatron synchronises after an exchange. A send is waited for only here, after the receive
  // that the neighbour may need first (its exchanges are batched: send and receive at once).
  calls_.host_wait(received);
  if (sent_) calls_.host_wait(*sent_);
  sent_.reset();
}

void StageWriter::send(Lane lane, Slot slot, GroupKind group, const char* name) {
  calls_.after(lane, compute);
  calls_.join(lane, slot, exchange_collective(group, name));
  if (in_.software.pipeline_sync) sent_ = calls_.record(lane);
}

/// Gradients that more ranks share than the data-parallel group: norms under sequence parallel
/// (one flattened all-reduce over the tensor group, fp32), and tied embeddings on the first and the
/// last stage (FRAMEWORKS 3.3). Sharded ones are reduced as shards.
void StageWriter::sum_shared_gradients() {
  const std::int64_t shards = in_.sharded() ? in_.plan.data_degree : 1;
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
  for (const Turn& turn :
       turns_of_stage(in_.plan.schedule, in_.plan.pipeline, stage_, in_.batch.micro_batches)) {
    if (turn.pass == Pass::forward)
      forward();
    else
      backward();
  }
  tail();
  engine::Program program = calls_.take();
  if (in_.software.collectives_hold_core) keep_on_one_lane(program);
  return program;
}

}  // namespace

StepProgram make_step_program(const TransformerShape& shape, const ParallelPlan& plan,
                              const Batch& batch, const Precision& precision,
                              const Software& software) {
  expects(plan.tensor >= 1 && plan.pipeline >= 1 && plan.pipeline <= shape.layers &&
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
