#include "workloads/step/gradient_buckets.hpp"

#include <algorithm>
#include <utility>

#include "engine/arithmetic.hpp"
#include "workloads/plan/low_precision.hpp"

namespace stepcast::workloads {
namespace {

using enum KernelFamily;

constexpr std::int64_t first_bucket_bytes = 1 << 20;  // reducer.hpp kDefaultFirstBucketBytes

/// bytes x part / whole, rounded down: exact where bytes are a multiple of whole.
std::int64_t share_of(std::int64_t bytes, std::int64_t part, std::int64_t whole) {
  return bytes / whole * part +
         static_cast<std::int64_t>(static_cast<double>(bytes % whole) * static_cast<double>(part) /
                                   static_cast<double>(whole));
}

}  // namespace

std::int64_t bucket_limit(const Software& software, const ParallelPlan& plan, bool first) {
  const std::int64_t bytes =
      std::max(software.data.bucket_bytes, software.data.bucket_bytes_per_rank * plan.copies());
  return first ? std::min(first_bucket_bytes, bytes) : bytes;
}

bool in_own_bucket(const StepInputs& in, const ParameterTensor& tensor) {
  return in.software.own() && in.plan.data == DataParallel::zero1 && in.plan.shards() > 1 &&
         in.software.data.reduce_scatter && in.shape.tied_embeddings && in.plan.pipeline > 1 &&
         (tensor.name == "embedding" || tensor.name == "head");
}

GradientBuckets::GradientBuckets(const StepInputs& in, KernelTable& table, Calls& calls,
                                 const StageParameters& whole_stage)
    : GradientBuckets(in, table, calls, whole_stage,
                      adapted(in.shape)
                          ? static_cast<const StageParameters&>(trained_of(whole_stage))
                          : whole_stage) {}

/// Of what is frozen no gradient is reduced, and no weight changes.
GradientBuckets::GradientBuckets(const StepInputs& in, KernelTable& table, Calls& calls,
                                 const StageParameters& whole, const StageParameters& stage)
    : in_(in),
      table_(table),
      calls_(calls),
      has_root_(!whole.root.empty()),
      all_elements_(stage.elements()),
      all_tensors_(stage.tensors()),
      kind_of_(stage.kind_of),
      gradient_dtype_(in.gradient_dtype()),
      reduce_dtype_(in.software.data.widened_reduction ? in.precision.gradient_reduce
                                                       : gradient_dtype_),
      root_(tensor_kernels("root", whole.root, table)),
      pools_{Pool{shard_group(in.plan), data_lane, in.plan.copies(), in.plan.shards()},
             Pool{GroupKind::expert_data, expert_data_lane, in.plan.expert_copies(),
                  in.plan.expert_copies()}} {
  pools_[1].all = stage.over_layers(expert_elements_of) + expert_elements_of(stage.root);
  pools_[0].all = all_elements_ - pools_[1].all;
  for (const AlikeLayers& alike : whole.kinds)
    layers_.push_back(tensor_kernels("layer", alike.tensors, table));
  for (const ParameterTensor& tensor : whole.root)
    in_own_bucket_.push_back(in_own_bucket(in, tensor));
  const std::int64_t in_root[] = {elements_of(stage.root) - expert_elements_of(stage.root),
                                  expert_elements_of(stage.root)};
  for (std::size_t i = 0; i < pools_.size(); ++i)
    pools_[i].bytes = pools_[i].root_bytes = bytes_per_element(in.precision.compute) * in_root[i];
  for (const AlikeLayers& alike : stage.kinds) {
    for (Pool& pool : pools_) {
      const bool experts = &pool == &pools_[1];
      pool.layer_bytes.push_back(gathered_bytes_of(in.precision, part_of(alike, experts)));
      pool.bytes += alike.count * pool.layer_bytes.back();
    }
    if (in.precision.recipe != Recipe::none)
      weight_casts_.push_back(weight_casts(in, table, alike));
  }
  if (!weight_casts_.empty()) quantized_.assign(kind_of_.size(), false);
  // torch.autocast casts each weight once per forward: read 4, write 2.
  if (!in.software.data.autocast) return;
  for (const AlikeLayers& alike : stage.kinds)
    layer_casts_.push_back(
        table.pass("layer.autocast", pointwise, in.precision.compute,
                   (4 + bytes_per_element(in.precision.compute)) * elements_of(alike.tensors)));
}

/// Gradients come out of backward in the compute dtype (e bytes) and live in g bytes. Megatron's
/// GEMMs add to the buffer themselves; the other tensors are added (e + 2g). torch: cast to g if it
/// differs (e + g), then added to what earlier micro-batches left (3g). Our trainer adds in one go
/// (e + 2g), the first micro-batch's are cast (e + g).
std::vector<GradientBuckets::TensorKernels> GradientBuckets::tensor_kernels(
    const std::string& name, const ParameterTensors& tensors, KernelTable& table) const {
  const std::int64_t e = bytes_per_element(in_.precision.compute);
  const std::int64_t g = bytes_per_element(gradient_dtype_);
  std::vector<TensorKernels> out;
  for (const ParameterTensor& t : tensors) {
    TensorKernels k{.elements = t.elements, .expert = t.expert, .widen = {}, .accumulate = {}};
    if (t.frozen) {
      k.elements = 0;
      out.push_back(k);
      continue;
    }
    const std::string prefix = name + "." + t.name;
    if (megatron()) {
      if (!t.matmul || !in_.software.products.accumulate)
        k.widen = table.pass(prefix + ".accumulate", pointwise, gradient_dtype_,
                             (e + 2 * g) * t.elements);
    } else {
      if (e != g)
        k.widen = table.pass(prefix + ".widen", pointwise, gradient_dtype_, (e + g) * t.elements);
      k.accumulate = table.pass(prefix + ".accumulate", pointwise, gradient_dtype_,
                                ((own() ? e : g) + 2 * g) * t.elements);
    }
    out.push_back(k);
  }
  return out;
}

void GradientBuckets::start_forward(bool first) {
  if (!first) return;
  for (const Pool& pool : pools_)
    if (pool.all > 0 || pool.lane == data_lane) calls_.after(pool.lane, compute);
  if (gathers_ahead()) gather_for_forward();
  if (megatron())  // the main gradients start from zero: write 4 bytes each
    calls_.kernel(compute, table_.pass("gradients.zero", pointwise, gradient_dtype_,
                                       bytes_per_element(gradient_dtype_) * all_elements_));
}

void GradientBuckets::before_forward(std::size_t unit) {
  if (unit < gathered_.size()) {
    for (const Event gathered : gathered_[unit]) calls_.wait(compute, gathered);
    gathered_[unit].clear();
  }
  if (!layer_casts_.empty() && !is_root(unit)) calls_.kernel(compute, layer_casts_[kind_of(unit)]);
  if (!weight_casts_.empty() && !is_root(unit)) quantize_weights(unit);
}

void GradientBuckets::quantize_weights(std::size_t unit) {
  const WeightCasts& casts = weight_casts_[kind_of(unit)];
  const std::size_t layer = unit - (has_root_ ? 1 : 0);
  if (!quantized_[layer])
    for (const std::uint32_t kernel : casts.once) calls_.kernel(compute, kernel);
  quantized_[layer] = true;
  for (const std::uint32_t kernel : casts.forward) calls_.forward_kernel(compute, kernel);
}

void GradientBuckets::before_backward(std::size_t unit) {
  if (weight_casts_.empty() || is_root(unit)) return;
  for (const std::uint32_t kernel : weight_casts_[kind_of(unit)].backward)
    calls_.kernel(compute, kernel);
}

void GradientBuckets::start_backward(bool first, bool last) {
  first_backward_ = first;
  reduces_ = last || in_.plan.reduce == ReduceWhen::each;
  for (Pool& pool : pools_) pool.first = true;
}

void GradientBuckets::gradient(std::size_t unit, std::size_t tensor) {
  const TensorKernels& k = tensors_of(unit)[tensor];
  if (in_.software.host.gradient_hook > Duration{}) calls_.host_work(hook_call);
  if (k.widen && (first_backward_ || !own())) calls_.kernel(compute, *k.widen);
  if (!first_backward_ && k.accumulate && !sums_shards()) calls_.kernel(compute, *k.accumulate);
  if (!reduces_) return;
  Pool& pool = pools_[k.expert ? 1 : 0];
  const bool alone = is_root(unit) && in_own_bucket_[tensor];
  if (alone) close_bucket(pool);
  pool.waiting += k.elements;
  const bool full =
      pool.waiting * bytes_of_bucket() >= bucket_limit(in_.software, in_.plan, pool.first);
  if (alone || (full && in_.software.data.gradient_overlap)) close_bucket(pool);
}

void GradientBuckets::close_bucket(Pool& pool) {
  if (in_.software.data.gradient_overlap) return reduce_bucket(pool);
  if (pool.waiting > 0) pool.closed.push_back(std::exchange(pool.waiting, 0));
}

/// torch copies gradients into the bucket (read g, write g, divided on the way) and back after the
/// reduction; Megatron's live in the bucket and are divided there (read g, write g). The trainer's
/// live in the bucket, and its loss is divided. Widened ones: read g, write r, and back.
void GradientBuckets::reduce_bucket(Pool& pool) {
  const std::int64_t elements = std::exchange(pool.waiting, 0);
  if (elements == 0) return;
  const std::int64_t bytes = elements * bytes_per_element(reduce_dtype_);
  const std::int64_t copied = bytes + elements * bytes_per_element(gradient_dtype_);
  if (!own()) calls_.kernel(compute, table_.pass("bucket.copy_in", copy, reduce_dtype_, copied));
  if (pool.copies > 1) {
    calls_.after(pool.lane, compute);
    const bool scatter = in_.plan.data != DataParallel::ddp && in_.software.data.reduce_scatter;
    const auto kind = scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const bool dense = pool.lane == data_lane;
    const GroupKind group = scatter || !dense ? pool.group : GroupKind::data;
    const bool replicas = group == GroupKind::shard;
    if (scatter && in_.software.data.owners() && pool.shards > 1)
      each_owner({"bucket.reduce", CollectiveKind::reduce, group, reduce_dtype_, Bytes(bytes)});
    else
      calls_.join(
          pool.lane, group,
          table_.index_of(Collective{"bucket.reduce", kind, group, reduce_dtype_, Bytes(bytes)}));
    if (replicas) sum_replicas(bytes / pool.shards);
    pool.reduced = calls_.record(replicas ? replica_lane : pool.lane);
  }
  if (sums_shards())
    copies_back_.push_back(
        table_.pass("bucket.shard_sum", pointwise, gradient_dtype_,
                    3 * bytes_per_element(gradient_dtype_) * elements / pool.shards));
  else if (!megatron() && !own())
    copies_back_.push_back(table_.pass("bucket.copy_out", copy, gradient_dtype_, copied));
  if (own()) pool.buckets.push_back(elements);
  pool.first = false;
}

/// zero2, reduced with each micro-batch: a rank adds its shard to what earlier ones left (3g), and
/// the next micro-batch's gradients are new (DeepSpeed stage_1_and_2.py,
/// copy_grads_in_partition and average_tensor).
bool GradientBuckets::sums_shards() const {
  return in_.plan.data == DataParallel::zero2 && in_.plan.reduce == ReduceWhen::each &&
         in_.batch.micro_batches > 1;
}

/// Several instances of the distributed optimizer: each sums its shard with the others'.
void GradientBuckets::sum_replicas(std::int64_t bytes) {
  calls_.after(replica_lane, data_lane);
  calls_.join(replica_lane, GroupKind::replica,
              table_.index_of(Collective{"bucket.sum_replicas", CollectiveKind::all_reduce,
                                         GroupKind::replica, reduce_dtype_,
                                         Bytes(std::max<std::int64_t>(1, bytes))}));
}

/// NVIDIA's TensorFlow BERT (DeepLearningExamples optimization.py, num_accumulation_steps) unscales
/// each micro-batch's gradients (read 4, write 4), checks that they are finite (4), takes their
/// norm (4) and clips them (4 + 4), tensor by tensor, before they are added; both branches on the
/// result are taken by the host, and the run of the session ends with the loss on the host.
void GradientBuckets::after_micro_batch() {
  if (!in_.software.optimizer.clips_each_micro_batch) return;
  const std::int64_t tensors = all_tensors_;
  const auto each_tensor = [&](const char* name, std::int64_t bytes) {
    const std::uint32_t index =
        table_.pass(name, pointwise, Dtype::fp32, bytes * all_elements_ / tensors);
    for (std::int64_t t = 0; t < tensors; ++t) calls_.kernel(compute, index);
  };
  each_tensor("micro_batch.unscale", 8);
  each_tensor("micro_batch.finite", 4);
  calls_.host_wait(calls_.record(compute));
  each_tensor("micro_batch.norm", 4);
  each_tensor("micro_batch.clip", 8);
  calls_.host_wait(calls_.record(compute));
}

void GradientBuckets::finish_backward() {
  if (!reduces_) return;
  for (Pool& pool : pools_) {
    pool.closed.push_back(pool.waiting);
    for (const std::int64_t elements : std::exchange(pool.closed, {})) {
      pool.waiting = elements;
      reduce_bucket(pool);
    }
  }
  for (Pool& pool : pools_) {
    if (pool.reduced) calls_.wait(compute, *pool.reduced);
    pool.reduced.reset();
  }
  for (const std::uint32_t copy_out : copies_back_) calls_.kernel(compute, copy_out);
  copies_back_.clear();
}

bool GradientBuckets::gathers() const {
  return in_.plan.data != DataParallel::ddp && (gathers(pools_[0]) || gathers(pools_[1]));
}

void GradientBuckets::gather(const Pool& pool, std::int64_t bytes) {
  calls_.join(pool.lane, pool.group,
              table_.index_of(Collective{"parameters.gather", CollectiveKind::all_gather,
                                         pool.group, in_.precision.compute, Bytes(bytes)}));
}

/// Elements of a bucket.
std::int64_t GradientBuckets::bucket() const {
  return std::max<std::int64_t>(1, bucket_limit(in_.software, in_.plan, false) / bytes_of_bucket());
}

/// What fills a bucket per element: torch DDP's own buckets hold gradients as backward leaves them,
/// also where a hook reduces fp32 sums of them.
std::int64_t GradientBuckets::bytes_of_bucket() const {
  const bool torch = in_.software.data.reducer_buckets && !in_.software.data.autocast;
  return bytes_per_element(torch && !megatron() && !own() ? in_.precision.compute
                                                          : gradient_dtype_);
}

/// Bucket by bucket, so many elements in so many bytes.
void GradientBuckets::gather_buckets(const Pool& pool, std::int64_t elements, std::int64_t bytes) {
  for (std::int64_t left = elements; left > 0;) {
    const std::int64_t part = std::min(left, bucket());
    const std::int64_t of_part = left == part ? bytes : share_of(bytes, part, left);
    gather(pool, of_part);
    bytes -= of_part;
    left -= part;
  }
}

/// Units in the order of forward, a bucket when it is full; each unit waits for that of its last
/// element (Megatron core param_and_grad_buffer.py: bucket i + 1 is dispatched when bucket i is
/// first needed; here all are queued, and run one after the other).
void GradientBuckets::gather_for_forward() {
  const std::size_t units = (has_root_ ? 1 : 0) + kind_of_.size();
  gathered_.assign(units, {});
  for (const Pool& pool : pools_) {
    if (!gathers(pool)) continue;
    const bool experts = &pool == &pools_[1];
    std::int64_t waiting = 0, bytes = 0;
    std::size_t first = 0;
    for (std::size_t unit = 0; unit < units; ++unit) {
      for (const TensorKernels& tensor : tensors_of(unit))
        waiting += tensor.expert == experts ? tensor.elements : 0;
      bytes += is_root(unit) ? pool.root_bytes : pool.layer_bytes[kind_of(unit)];
      if (waiting < bucket() && unit + 1 < units) continue;
      gather_buckets(pool, std::exchange(waiting, 0), std::exchange(bytes, 0));
      const Event done = calls_.record(pool.lane);
      for (; first <= unit; ++first) gathered_[first].push_back(done);
    }
  }
}

/// One message for each owner, of its part: as many as the group has ranks. Owners are evened out
/// by size (InternEvo _partition_param_list(), read 2026-11), so parts are taken as equal.
/// fairscale's ShardedDDP reduces to owners (sharded_ddp.py, read 2026-11), tensor by tensor there.
void GradientBuckets::each_owner(Collective whole) {
  const std::int64_t owners = in_.plan.shards();
  whole.bytes = Bytes(std::max<std::int64_t>(1, ceil_div(whole.bytes.value, owners)));
  const GroupKind group = whole.group;
  const std::uint32_t part = table_.index_of(std::move(whole));
  for (std::int64_t owner = 0; owner < owners; ++owner) calls_.join(data_lane, group, part);
}

/// Owners send what they have updated, one after the other (InternEvo hybrid_zero_optim.py
/// broadcast_params(), read 2026-11).
void GradientBuckets::after_optimizer() {
  if (!gathers() || gathers_ahead()) return;
  for (const Pool& pool : pools_)
    if (gathers(pool)) gather_updated(pool);
  for (const Pool& pool : pools_)
    if (gathers(pool)) calls_.after(compute, pool.lane);
}

void GradientBuckets::gather_updated(const Pool& pool) {
  calls_.after(pool.lane, compute);
  if (in_.software.data.owners()) {
    const Dtype dtype = in_.precision.compute;
    each_owner(
        {"parameters.broadcast", CollectiveKind::broadcast, pool.group, dtype, Bytes(pool.bytes)});
  } else if (own()) {  // the parameters of each bucket of gradients
    for (const std::int64_t elements : pool.buckets)
      gather(pool, bytes_per_element(in_.precision.compute) * elements);
  } else if (in_.software.data.gather_whole) {
    gather(pool, pool.bytes);
  } else {
    gather_buckets(pool, pool.all, pool.bytes);
  }
}

void GradientBuckets::visit(WriterState& state) {
  state.value(static_cast<std::int64_t>(copies_back_.size()));
  for (const bool quantized : quantized_) state.value(quantized ? 1 : 0);
  for (Pool& pool : pools_) {
    for (const std::int64_t v :
         {pool.waiting, std::int64_t{pool.first}, static_cast<std::int64_t>(pool.buckets.size())})
      state.value(v);
    state.event(pool.reduced);
  }
  for (std::vector<Event>& unit : gathered_) state.all(unit);
}

}  // namespace stepcast::workloads
