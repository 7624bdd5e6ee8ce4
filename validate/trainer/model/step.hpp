// One rank of the trainer: its part of the model through the micro-batches of a step in the order
// of the plan's schedule, then the optimizer. In the spirit of llm.c: nothing is inferred from a
// graph, forward and backward are written out (layer.hpp, ends.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/device/rank_device.hpp"
#include "validate/trainer/model/ends.hpp"
#include "validate/trainer/model/layer.hpp"
#include "validate/trainer/model/operations.hpp"
#include "validate/trainer/model/optimizer.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/ranks/text.hpp"
#include "workloads/plan/pipeline.hpp"

namespace stepcast::validate {

/// What a step of this rank says of its data.
struct StepResult {
  /// Mean loss over the tokens of this replica, before the update; only on the last stage.
  std::optional<double> loss;
  double gradient_norm = 0.0;  // of the whole model
};

/// All that a rank must keep to go on later, in its device's memory.
template <class Real>
struct TrainerState {
  std::span<Wide<Real>> weights, first_moments, second_moments;
  std::int64_t& steps;
  LossScale& scale;
};

template <class Real>
class Trainer {
 public:
  /// This replica's sequences of a micro-batch.
  using Data = std::function<Samples(std::int64_t micro_batch)>;

  /// The device's groups are cut by the job's plan. check(job) has passed.
  Trainer(const TrainerJob& job, RankDevice<Real> device);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() { device_.lanes->stop(); }

  /// One optimizer step. `log`, where given, is started and filled.
  StepResult step(const Data& data, OperationLog* log = nullptr);
  /// The same without the optimizer: gradients stay as they are before clipping.
  StepResult forward_and_backward(const Data& data);

  TrainerState<Real> state();
  /// The weights have been set from outside.
  void after_load() { parameters_->after_update(); }
  Parameters<Real>& parameters() { return *parameters_; }
  const RankShare& share() const { return share_; }
  const Groups& groups() const { return device_.groups; }
  const RankDevice<Real>& device() const { return device_; }
  Kernels<Real>& kernels() { return calls_.kernels(); }
  Bytes allocated() const { return device_.kernels->allocated(); }

 private:
  using Mark = Lanes::Mark;
  struct Slot {                         // of a micro-batch between its forward and its backward
    Buffer<Token> tokens;               // (T), in the first part
    std::vector<Buffer<Real>> outputs;  // (L,H) of each layer
    std::vector<LayerActivations<Real>> kept;
    std::optional<HeadActivations<Real>> head;
    Buffer<Real> gradient;                   // (L,H), on its way down
    std::optional<Mark> sent_up, sent_down;  // the last output, the gradient
  };
  /// What a model chunk keeps. Micro-batches take turns, each for itself in both lists.
  struct Chunk {
    std::vector<Slot> slots;
    std::vector<Buffer<Real>> inputs;  // (L,H) of the first layer
    std::int64_t backwards = 0;

    Slot& slot(std::int64_t micro_batch) {
      return slots[static_cast<std::size_t>(micro_batch) % slots.size()];
    }
    std::span<Real> input(std::int64_t micro_batch) {
      return inputs[static_cast<std::size_t>(micro_batch) % inputs.size()].all();
    }
  };

  Chunk make_chunk(std::size_t index);
  Slot make_slot(const ChunkShare& part);
  LayerActivations<Real>& kept(Slot& slot, std::size_t layer);
  const ChunkShare& part_of(const workloads::Turn& turn) const;
  Chunk& chunk_of(const workloads::Turn& turn);
  /// The input of a layer, or of what follows the last, in the turn's micro-batch.
  std::span<Real> input(const workloads::Turn& turn, std::size_t layer);
  void read(Slot& slot, const Samples& samples);
  void run_turn(std::size_t turn, const Data& data);
  void forward(const workloads::Turn& turn, const Data& data);
  void backward(const workloads::Turn& turn);
  bool receives(const workloads::Turn& turn) const;
  void receive(std::size_t turn);
  void receive_ahead(std::size_t turn);
  StepResult put_forward_and_backward(const Data& data);
  void finish(StepResult& result);

  TrainerJob job_;
  RankDevice<Real> device_;
  RankShare share_;
  StepCalls<Real> calls_;
  std::unique_ptr<Parameters<Real>> parameters_;
  Workspace<Real> work_;
  Layer<Real> layer_;
  Ends<Real> ends_;
  Optimizer<Real> optimizer_;
  std::vector<workloads::Turn> turns_;
  std::vector<std::optional<Mark>> received_;  // by turn, of this step
  std::vector<Chunk> chunks_;
  std::optional<LayerActivations<Real>> again_;  // full recompute: of the layer at hand
  std::int64_t backwards_ = 0;
};

}  // namespace stepcast::validate
