// The parameters of one rank and where they lie between and during steps: whole with gradients in
// one buffer (ddp, zero1), or sharded in units that are gathered before use and reduced after it
// (zero2, zero3; every tensor cut in equal shards, as FSDP2 does). Units as in the simulator: the
// root first where the stage has one, then the layers. Masters and their gradients are wide.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "validate/trainer/device/plan.hpp"
#include "validate/trainer/model/step_calls.hpp"

namespace stepcast::validate {

/// Tensors of a layer, in the order of workloads::layer_tensors.
enum LayerTensor : std::size_t {
  norm1,
  attention_q,
  attention_k,
  attention_v,
  attention_o,
  norm2,
  mlp_gate,
  mlp_up,
  mlp_down,
  experts_router = mlp_gate,  // of a layer of experts
  experts_gate,
  experts_up,
  experts_down,
};

/// Which tensor of the whole model this rank holds which part of.
struct TensorPart {
  std::string name;                             // "layer.3.mlp.up", "embedding"
  std::size_t rows = 0, columns = 0;            // of the part
  std::size_t first_row = 0, first_column = 0;  // of the part in the whole
  std::size_t whole_columns = 0;
  std::size_t elements() const { return rows * columns; }
  bool replicated = false;  // whole on every tensor rank
  bool expert = false;      // its copies are those of experts
  std::string same_as{};    // the head of tied embeddings: the tensor that it is a copy of
};

/// Tensors of a unit of this rank, before sharding.
std::vector<TensorPart> tensors_of_unit(const TrainerJob& job, const RankShare& share,
                                        std::size_t unit);

/// [begin, end) of elements or units.
struct Stretch {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

template <class Real>
class Parameters {
 public:
  using Out = std::span<Real>;
  using In = std::span<const Real>;
  using WideOut = std::span<Wide<Real>>;

  virtual ~Parameters() = default;

  /// Usable between before_forward or before_backward of the unit and the matching after.
  virtual In weight(std::size_t unit, std::size_t tensor) const = 0;
  /// Where the gradient of this micro-batch is written. Until it is said to be complete, and
  /// completed once per micro-batch.
  virtual Out gradient(std::size_t unit, std::size_t tensor) = 0;
  virtual void complete(std::size_t unit, std::size_t tensor) = 0;

  virtual void start_step() = 0;
  /// A turn of the chunk with these units, beside the root, begins.
  virtual void enter(Stretch /*units*/) {}
  virtual void before_forward(std::size_t unit) = 0;
  virtual void after_forward(std::size_t unit) = 0;
  /// The first and the last of the step through the chunk.
  virtual void start_backward(bool first, bool last) = 0;
  virtual void before_backward(std::size_t unit) = 0;
  virtual void after_backward(std::size_t unit) = 0;
  virtual void finish_backward() = 0;  // after the last one: gradients are reduced

  /// The data group's sum of a tensor's gradient, as much of it as this rank is told: what other
  /// groups share of it is summed there.
  virtual WideOut reduced_gradient(std::size_t unit, std::size_t tensor) {
    return own_gradient(unit, tensor);
  }
  /// Gradients are summed: own_gradients() are as the optimizer needs them from here on.
  virtual void before_update() {}

  /// What the optimizer of this rank updates: all of it or its shards.
  virtual WideOut own_weights() = 0;
  virtual WideOut own_gradients() = 0;
  /// The part of own_gradients() that belongs to a tensor; may be empty.
  virtual WideOut own_gradient(std::size_t unit, std::size_t tensor) = 0;
  /// own_weights() have changed.
  virtual void after_update() = 0;
};

/// First weights depend on the seed and on the element's place in the whole model alone.
template <class Real>
std::unique_ptr<Parameters<Real>> make_parameters(const TrainerJob& job, const RankShare& share,
                                                  StepCalls<Real>& calls);

}  // namespace stepcast::validate
