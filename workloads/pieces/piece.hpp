// A piece of a micro-batch: the calls of one layer's forward or backward, of the embedding, of the
// head. Written once, replayed for every layer and micro-batch that does the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/pieces/kernel_table.hpp"
#include "workloads/plan/layer_shape.hpp"
#include "workloads/plan/plan.hpp"
#include "workloads/plan/rank_parameters.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// What a layer with experts is parted into where its exchange runs under another micro-batch: its
/// own ranks' work up to the exchange, the way to the experts, their work, the way back, the rest.
/// A backward runs them from the last to the first. Without exchange: attention, and the MLP as
/// `experts`.
enum class LayerNode : std::uint8_t { attention, dispatch, experts, combine, rest };
inline constexpr std::size_t num_layer_nodes = 5;

struct Action {
  enum class Kind : std::uint8_t {
    kernel,          // kernel `index` on the compute lane
    forward_kernel,  // the same, launched from the framework's Python, not by autograd
    graph,           // a CUDA graph is launched: of the kernels in it that follow
    graph_kernel,    // kernel `index`, one of a graph's
    module,          // the host enters a product or an attention
    collective,      // tensor collective `index`, compute waits for it
    begin,           // tensor collective `index` starts; compute goes on
    tensor_ring,     // every tensor rank sends `index` to the next; compute goes on until end
    end,             // compute waits for the one that began last
    ring_start,      // every context rank sends `index` to the next; compute goes on
    ring_wait,       // compute waits for what the rank before has sent
    context,         // collective `index` of the context group, compute waits for it
    tokens,          // collective `index` of the expert group, compute waits for it
    begin_tokens,    // the same starts; compute goes on
    end_tokens,      // compute waits for the one that began last
    expert_tensor,   // collective `index` of the expert tensor group, compute waits for it
    host_wait,       // the host waits until compute is done with all that is launched
    host_call,       // the host calls at HostCost `index`, for something that no lane sees
    gradient,        // the gradient of tensor `index` of the piece's unit is complete
  };
  Kind kind{};
  std::uint32_t index = 0;
  bool weights = false;  // of a backward: for the weight gradients alone
  bool library = false;  // one of several that a library launches behind one call
  LayerNode node = LayerNode::attention;
};

/// `index` is a kernel's.
inline bool launches(const Action& action) {
  return action.kind == Action::Kind::kernel || action.kind == Action::Kind::forward_kernel ||
         action.kind == Action::Kind::graph_kernel;
}

using Piece = std::vector<Action>;

/// Those actions of a backward that its weight gradients alone need, or all others.
Piece part_of_backward(const Piece& backward, bool weights);
/// Those of a layer that belong to one of its nodes.
Piece node_of(const Piece& layer, LayerNode);

/// All that a step is made of.
struct StepInputs {
  const TransformerShape& shape;
  const ParallelPlan& plan;
  const Batch& batch;
  const Precision& precision;
  const Software& software;

  /// Parameters are sharded between steps (FSDP), not replicated with gradients in buckets.
  bool sharded() const;
  /// Collectives of the tensor group run beside compute, some of them or all.
  bool overlaps_tensor() const;
  /// What recompute does: backward runs the attention core again, or all but saved operators.
  bool core_again() const;
  bool operators_again() const;
  /// In which replicated gradients wait: fp32 where weights are kept so (autocast), else that of
  /// the reduction, unless they are widened for it alone.
  Dtype gradient_dtype() const;
};

/// The same for a layer of that form: the model's sizes are the layer's.
class LayerInputs {
 public:
  LayerInputs(const StepInputs& in, const LayerForm& form)
      : own_(has_own_sizes(in.shape, form)
                 ? std::make_shared<const TransformerShape>(sizes_of(in.shape, form))
                 : nullptr),
        in_{own_ ? *own_ : in.shape, in.plan, in.batch, in.precision, in.software} {}
  const StepInputs& get() const { return in_; }

 private:
  std::shared_ptr<const TransformerShape> own_;  // null: the model's
  StepInputs in_;
};

/// A micro-batch of the positions that the vocabulary's logits are made for, and no others.
Batch predicted_batch(const StepInputs&);

/// Sizes of one micro-batch on one rank, in elements.
struct Sizes : RankWidths {
  explicit Sizes(const StepInputs&);

  std::int64_t tokens;        // T = b s / c: of the micro-batch on a context rank
  std::int64_t local_tokens;  // T / t with sequence parallel, else T: norms, residuals
  std::int64_t hidden;        // h
  std::int64_t element;       // bytes of an activation
  std::int64_t hidden_bytes() const { return element * tokens * hidden; }  // A
  std::int64_t local_elements() const { return local_tokens * hidden; }
  std::int64_t local_bytes() const { return element * local_elements(); }
  std::int64_t ffn_bytes() const { return element * tokens * ffn; }  // F
};

/// Writes a Piece call by call; names and bytes go into the table.
class PieceWriter {
 public:
  PieceWriter(const StepInputs& in, KernelTable& table, LayerKind kind = {})
      : in_(in), sizes_(in), table_(table), kind_(kind) {}

  const StepInputs& in() const { return in_; }
  const Sizes& sizes() const { return sizes_; }
  /// Of the layer whose piece it is.
  LayerKind kind() const { return kind_; }
  bool eager() const { return in_.software.eager(); }
  bool compiled() const { return in_.software.compiled(); }
  bool fused() const { return in_.software.fused(); }
  bool own() const { return in_.software.own(); }
  bool packed() const { return in_.software.products.packed; }
  bool split() const { return in_.plan.tensor > 1; }
  bool sequence_parallel() const { return split() && in_.plan.sequence_parallel; }

  /// Whether a recipe holds for the products of the layer whose piece it is.
  bool low() const { return in_.precision.recipe != Recipe::none && !kind_.plain; }

  /// C[m,n] = A[m,k] B[k,n]: 2 m n k FLOPs; reads A and B, writes C once, each.
  void gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k);
  /// C += A B: also reads C.
  void accumulating_gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k);
  /// A weight gradient C[m,n] over k tokens; in Megatron's buckets it is added to an fp32
  /// buffer inside the GEMM (reads and writes 4 bytes an element of C).
  void weight_gradient(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k);
  /// `count` products of unfused attention, C[m,n] = A[m,k] B[k,n].
  void batched_gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
                    std::int64_t count);
  /// A product of quantized operands, 16 bits out: reads A and B in their type, with scales.
  void quantized_gemm(const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k);
  void quantized_weight_gradient(const std::string& name, std::int64_t m, std::int64_t n,
                                 std::int64_t k);
  /// A kernel that moves `bytes`.
  void pass(const std::string& name, KernelFamily family, std::int64_t bytes);
  void pass_fp32(const std::string& name, KernelFamily family, std::int64_t bytes);
  /// The same, to or between copies in the recipe's type.
  void quantize(const std::string& name, std::int64_t bytes);
  void kernel(Kernel kernel) {
    if (kernel.family == KernelFamily::gemm) kernel.streams = streams_;
    launch(table_.index_of(std::move(kernel)));
  }
  /// The host exchanges states of random numbers around dropout of a rank's own heads.
  void fork_random();
  /// What follows is launched from Python: a forward, or one that is run again.
  void from_python(bool python) { python_ = python; }
  /// What follows is replayed by a CUDA graph where the software captures layers, until it ends.
  void begin_graph();
  void end_graph() { captured_ = false; }
  /// What follows is launched by a loop in a library, behind the call before it.
  void from_library(bool library) { library_ = library; }
  /// Products that follow are parts of one, which a library issues round robin on that many
  /// streams.
  void on_streams(std::int64_t streams) { streams_ = streams; }
  /// What follows is for weight gradients alone: it may be put off.
  void for_weights(bool weights) { weights_ = weights; }
  /// What follows belongs to that part of the layer.
  void begin_node(LayerNode node) { node_ = node; }
  /// A module, or a function of autograd's in Python, begins.
  void module();
  /// What follows is run again by operators: what a checkpoint has saved is not (see
  /// layer_piece.hpp). `saved`, where given, collects the bytes of that.
  void again_by_operators(std::vector<std::int64_t>* saved) {
    by_operators_ = true, saved_ = saved;
  }
  bool by_operators() const { return by_operators_; }
  /// Whether an operator's output of so many bytes has been saved: of products every second from
  /// the first, all of a recipe's.
  bool saves(std::int64_t bytes);
  bool saves_product(std::int64_t bytes, bool low);

  /// Deterministic torch writes `bytes` of a new tensor before the kernel that is to write them.
  void fill(std::int64_t bytes);

  /// Tensor-parallel collectives of the hidden tensor A (whole sequence).
  void all_reduce_hidden(const std::string& name);
  void all_gather_hidden(const std::string& name);
  /// Of `copies` quantized copies of a tensor of `elements`.
  void all_gather_quantized(const std::string& name, std::int64_t elements, std::int64_t copies);
  void begin_gather_quantized(const std::string& name, std::int64_t elements);
  void reduce_scatter_hidden(const std::string& name);
  void collective(const std::string& name, CollectiveKind kind, Dtype dtype, std::int64_t bytes);
  /// The same of `bytes` of activations, running beside compute until end().
  void begin(const std::string& name, CollectiveKind kind, std::int64_t bytes);
  /// Each tensor rank sends `bytes` to the next by copies that hold no SM, until end().
  void start_tensor_ring(const std::string& name, Dtype dtype, std::int64_t bytes);
  void end() { push(Action::Kind::end, 0); }

  /// Exchanges of the context group: from each rank to the next, until wait_ring(), or of all.
  void start_ring(const std::string& name, std::int64_t bytes);
  void wait_ring() { push(Action::Kind::ring_wait, 0); }
  void context_collective(const std::string& name, CollectiveKind kind, std::int64_t bytes);

  /// Of the ranks that share a layer's experts, and of those that share each.
  void expert_collective(const std::string& name, CollectiveKind kind, std::int64_t bytes);
  void expert_tensor_collective(const std::string& name, CollectiveKind kind, std::int64_t bytes);
  /// Rows of tokens to their experts or back, `bytes` from each rank; `beside` runs meanwhile.
  void exchange_tokens(const std::string& name, const TokenExchange& tokens, std::int64_t bytes,
                       const std::function<void()>& beside);
  void host_wait() {
    if (!by_operators_) push(Action::Kind::host_wait, 0);
  }
  /// Of one kernel here the host launches so many more, and calls on events.
  void host_launches(std::int64_t more, int events);

  /// All but adapters is frozen: no product or pass for a gradient of those weights.
  bool frozen() const { return adapted(in_.shape); }
  /// Marks the gradient of the tensor called `name` of `unit` complete, unless it is frozen.
  void gradient(const ParameterTensors& unit, const std::string& name);
  /// And of those called "name", or of every expert "name.0", "name.1", ...
  void gradients(const ParameterTensors& unit, const std::string& name);

  /// A writer of a part of the same layer, whose actions are appended afterwards.
  PieceWriter of_part(const StepInputs& part) const {
    PieceWriter out(part, table_, kind_);
    out.python_ = python_, out.node_ = node_, out.captured_ = captured_;
    return out;
  }
  /// Of marks of a gradient that stand several times the last.
  void keep_last_gradients();
  void append(const Piece& piece) { piece_.insert(piece_.end(), piece.begin(), piece.end()); }
  Piece take() { return std::move(piece_); }

 private:
  void push(Action::Kind kind, std::uint32_t index) {
    piece_.push_back({kind, index, weights_ || kind == Action::Kind::gradient, library_, node_});
  }
  void launch(std::uint32_t index);
  std::uint32_t hidden_collective(const std::string& name, CollectiveKind kind);
  Collective quantized_gather(const std::string& name, std::int64_t elements,
                              std::int64_t copies) const;
  bool adds_weight_gradients() const;
  std::uint32_t beside(Collective collective);

  const StepInputs& in_;
  Sizes sizes_;
  KernelTable& table_;
  LayerKind kind_;
  Piece piece_;
  bool python_ = false, captured_ = false, weights_ = false, library_ = false;
  bool by_operators_ = false;
  std::vector<std::int64_t>* saved_ = nullptr;
  std::int64_t products_ = 0;  // by operators: met so far
  std::int64_t streams_ = 1;
  LayerNode node_ = LayerNode::attention;
};

/// The plan runs this part of forward again.
inline bool recomputes(const PieceWriter& w, LayerModule module) {
  return w.in().plan.recompute_modules.has(module);
}

}  // namespace stepcast::workloads
