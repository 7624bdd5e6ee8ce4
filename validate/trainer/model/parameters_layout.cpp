#include "validate/trainer/model/parameters_layout.hpp"

#include <cmath>
#include <numbers>

#include "engine/check.hpp"
#include "workloads/step/gradient_buckets.hpp"

namespace stepcast::validate {
namespace {

/// SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::uint64_t hash_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = mixed(seed);
  for (const char c : text) hash = mixed(hash ^ static_cast<unsigned char>(c));
  return hash;
}

double uniform(std::uint64_t bits) {  // in (0, 1]
  return (static_cast<double>(bits >> 11U) + 1.0) * 0x1p-53;
}

/// Box and Muller 1958.
double normal(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t a = mixed(key ^ mixed(2 * index)), b = mixed(key ^ mixed(2 * index + 1));
  return std::sqrt(-2.0 * std::log(uniform(a))) * std::cos(2.0 * std::numbers::pi * uniform(b));
}

std::size_t elements(std::int64_t count) { return static_cast<std::size_t>(count); }

/// The experts of a rank are rows of all experts' weights.
TensorPart experts_part(const std::string& name, const RankShare& s) {
  const ExpertShare& e = s.experts;
  const bool down = name.ends_with("down");
  const std::size_t rows = e.here * (down ? s.hidden : e.ffn), columns = down ? e.ffn : s.hidden;
  TensorPart part{name, rows, columns, e.rank * rows, 0, columns, false};
  part.expert = true;
  return part;
}

/// Weights are stored (out, in). Column-parallel ones are cut by rows, row-parallel by columns.
TensorPart part_of(const std::string& name, const RankShare& s, std::size_t num_ranks) {
  const std::size_t rank = elements(s.at.tensor);
  const auto rows_cut = [&](std::size_t out) {
    return TensorPart{name, out, s.hidden, rank * out, 0, s.hidden, false};
  };
  const auto columns_cut = [&](std::size_t in) {
    return TensorPart{name, s.hidden, in, 0, rank * in, in * num_ranks, false};
  };
  if (name.ends_with("norm1") || name.ends_with("norm2") || name == "final_norm")
    return {name, 1, s.hidden, 0, 0, s.hidden, true};
  if (name == "embedding" || name == "head") return rows_cut(elements(s.vocab.size));
  if (name.ends_with("attention.q")) return rows_cut(s.query);
  if (name.ends_with("attention.k") || name.ends_with("attention.v")) return rows_cut(s.kv);
  if (name.ends_with("mlp.gate") || name.ends_with("mlp.up")) return rows_cut(s.ffn);
  if (name.ends_with("attention.o")) return columns_cut(s.query);
  if (name == "router") return rows_cut(elements(s.experts.choice.experts));
  if (name.starts_with("experts.")) return experts_part(name, s);
  expects(name.ends_with("mlp.down"), "a tensor of a Llama-like model");
  return columns_cut(s.ffn);
}

}  // namespace

std::vector<TensorPart> tensors_of_unit(const TrainerJob& job, const RankShare& share,
                                        std::size_t unit) {
  const bool root = share.has_root && unit == 0;
  std::vector<TensorPart> out;
  for (const workloads::ParameterTensor& t : share.tensors_of(unit)) {
    TensorPart part = part_of(t.name, share, elements(job.plan.tensor));
    if (!root) part.name = "layer." + std::to_string(share.layer_of_unit(unit)) + "." + t.name;
    if (job.model.tied_embeddings && t.name == "head") part.same_as = "embedding";
    expects(part.elements() == elements(t.elements), "the part that the simulator counts");
    out.push_back(std::move(part));
  }
  return out;
}

std::vector<UnitLayout> unit_layouts(const TrainerJob& job, const RankShare& share) {
  std::vector<UnitLayout> out;
  for (std::size_t unit = 0; unit < share.units(); ++unit) {
    UnitLayout layout;
    layout.tensors = tensors_of_unit(job, share, unit);
    const bool root = share.has_root && unit == 0;
    layout.offsets.push_back(0);
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
      const workloads::ParameterTensor& known = share.tensors_of(unit)[i];
      layout.names.push_back((root ? "root." : "layer.") + known.name);
      layout.offsets.push_back(layout.offsets.back() + layout.tensors[i].elements());
    }
    out.push_back(std::move(layout));
  }
  return out;
}

namespace {

/// As Layer::backward() completes them.
constexpr LayerTensor dense_mlp_order[]{mlp_down, mlp_gate, mlp_up};
constexpr LayerTensor experts_order[]{experts_down, experts_gate, experts_up, experts_router};
constexpr LayerTensor attention_order[]{norm2,       attention_o, attention_q,
                                        attention_k, attention_v, norm1};
std::span<const LayerTensor> mlp_order(bool experts) {
  if (experts) return experts_order;
  return dense_mlp_order;
}

/// Tensors of one kind, from 0.
class KindWriter {
 public:
  explicit KindWriter(const TrainerJob& job) : job_(job) {}

  void start_chunk() { first_bucket_ = true; }
  /// Where it starts.
  std::size_t complete(const TensorPart& tensor) {
    const std::size_t start = end_;
    end_ += tensor.elements();
    const auto bytes = static_cast<std::int64_t>(4 * (end_ - begin_));  // fp32
    if (job_.software.data.gradient_overlap &&
        bytes >= workloads::bucket_limit(job_.software, job_.plan, first_bucket_))
      close();
    return start;
  }
  void close() {
    if (begin_ == end_) return;
    buckets_.push_back({begin_, end_});
    begin_ = end_;
    first_bucket_ = false;
  }
  CompletionOrder::Kind take(std::size_t from) {
    close();
    for (Stretch& bucket : buckets_) bucket = {bucket.begin + from, bucket.end + from};
    return {{from, from + end_}, std::move(buckets_)};
  }

 private:
  const TrainerJob& job_;
  std::vector<Stretch> buckets_;
  std::size_t begin_ = 0, end_ = 0;  // of the bucket that fills
  bool first_bucket_ = true;
};

class OrderWriter {
 public:
  OrderWriter(const TrainerJob& job, const RankShare& share, const std::vector<UnitLayout>& units)
      : job_(job), root_(share.parameters.root), units_(units), dense_(job), experts_(job) {
    for (const UnitLayout& unit : units) order_.starts.emplace_back(unit.tensors.size());
  }

  void start_chunk() {
    dense_.start_chunk();
    experts_.start_chunk();
  }
  void complete(std::size_t unit, std::size_t tensor) {
    const TensorPart& part = units_[unit].tensors[tensor];
    order_.starts[unit][tensor] = (part.expert ? experts_ : dense_).complete(part);
  }
  void complete_root(const char* name) {
    for (std::size_t i = 0; i < root_.size(); ++i) {
      if (root_[i].name != name) continue;
      const bool alone = workloads::in_own_bucket(
          {job_.model, job_.plan, job_.batch, job_.precision, job_.software}, root_[i]);
      if (alone) dense_.close();
      complete(0, i);
      if (alone) dense_.close();
    }
  }
  CompletionOrder take() {
    order_.dense = dense_.take(0);
    order_.experts = experts_.take(order_.dense.all.end);
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      for (std::size_t i = 0; i < units_[unit].tensors.size(); ++i)
        if (units_[unit].tensors[i].expert) order_.starts[unit][i] += order_.experts.all.begin;
    return std::move(order_);
  }

 private:
  const TrainerJob& job_;
  const workloads::ParameterTensors& root_;
  const std::vector<UnitLayout>& units_;
  KindWriter dense_, experts_;
  CompletionOrder order_;
};

}  // namespace

CompletionOrder completion_order(const TrainerJob& job, const RankShare& share,
                                 const std::vector<UnitLayout>& units) {
  OrderWriter order(job, share, units);
  for (std::size_t chunk = share.chunks.size(); chunk-- > 0;) {
    const ChunkShare& part = share.chunks[chunk];
    order.start_chunk();
    if (part.last) order.complete_root("head");
    if (part.last) order.complete_root("final_norm");
    for (std::size_t layer = part.layers; layer-- > 0;) {
      const std::size_t unit = share.unit_of_layer(part.first_here + layer);
      for (const LayerTensor tensor : mlp_order(share.has_experts(unit)))
        order.complete(unit, tensor);
      for (const LayerTensor tensor : attention_order) order.complete(unit, tensor);
    }
    if (part.first) order.complete_root("embedding");
  }
  return order.take();
}

/// Projections that end in the residual stream start smaller by sqrt(2 layers), as GPT-2's do. The
/// head of tied embeddings is the embedding.
void first_weights(std::span<double> to, const TensorPart& part, std::size_t from,
                   const Learning& learning, std::int64_t layers) {
  if (part.replicated) {
    for (double& w : to) w = 1.0;
    return;
  }
  const bool residual = part.name.ends_with("attention.o") || part.name.ends_with(".down");
  const double spread =
      learning.initial_spread / (residual ? std::sqrt(2.0 * static_cast<double>(layers)) : 1.0);
  const std::uint64_t key = hash_of(part.same_as.empty() ? part.name : part.same_as, learning.seed);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t row = part.first_row + (from + i) / part.columns;
    const std::size_t column = part.first_column + (from + i) % part.columns;
    to[i] = spread * normal(key, row * part.whole_columns + column);
  }
}

}  // namespace stepcast::validate
