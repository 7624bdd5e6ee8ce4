// A time that no step of a plan can beat in this simulator, and the least that it asks of tensor
// cores. Both come from the kernel and network models alone: no program is written (docs/search.md
// has the proof). What plans share is computed once, so that a plan costs microseconds. Not for
// threads.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/network/ablation.hpp"
#include "sim/run/machine.hpp"
#include "sim/scenario/scenario.hpp"
#include "workloads/step/step_parts.hpp"

namespace stepcast::sim {

class StepBound {
 public:
  /// Of plans on the machine of `base`, with its model, precision and software.
  StepBound(const Scenario& base, std::shared_ptr<const Network>,
            std::shared_ptr<const KernelModel>);

  /// The bound's terms; the largest counts.
  struct Terms {
    Duration pipe{};        // fill, a stage's micro-batches, drain, and what is serial around them
    Duration chain{};       // collectives of the data-parallel group, one after the other
    Duration host{};        // calls of the host thread
    double tensor_s = 0.0;  // kernels on tensor cores, mean over the ranks
    Duration longest() const { return std::max({pipe, chain, host}); }
  };
  Terms of(const workloads::ParallelPlan&, const workloads::Batch&);

 private:
  /// Compute lane, host and tensor cores of something that is called once.
  struct Span {
    Duration lane{}, host{}, tensor{};
    Span& operator+=(const Span& other);
    void at_most(const Span& other);
    friend Span operator*(std::int64_t n, const Span& s) {
      return {n * s.lane, n * s.host, n * s.tensor};
    }
    void add(const KernelTime& kernel);
  };
  struct Parts {
    Span layer_forward, layer_backward, kept_backward;
    Span embedding_forward, embedding_backward, head_forward, head_backward;
  };
  struct Data {
    Span first, later;                         // of a layer, in the first micro-batch and in others
    Duration gather{}, reduction{};            // of a layer
    Duration root_gather{}, root_reduction{};  // of the first stage's root
  };
  /// Of a stage's chunks, with each micro-batch: all of them, and those that end the chunks.
  struct Reductions {
    Duration all{}, last{};
  };
  /// What an answer is remembered by: a plan and its batch, with members that do not matter to it
  /// at their defaults. One that is forgotten costs an answer more, and never a wrong one.
  struct Question {
    workloads::ParallelPlan plan;
    workloads::Batch batch;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct QuestionHash {
    std::size_t operator()(const Question&) const;
  };
  template <class T>
  using Memo = std::unordered_map<Question, T, QuestionHash>;

  Question& asked(const workloads::ParallelPlan&, const workloads::Batch&);
  const Parts& parts(const workloads::StepInputs&);
  const Data& data(const workloads::StepInputs&);
  const Span& tail(const workloads::StepInputs&);
  Reductions reductions(const workloads::StepInputs&);
  Duration hop(const workloads::StepInputs&);

  Duration time_of(const workloads::Collective&, const workloads::ParallelPlan&);
  Span span_of(const workloads::Piece&, const workloads::MicroBatchParts&,
               const std::vector<KernelTime>& kernels, const workloads::ParallelPlan&);
  Span span_of(const workloads::PartCalls&, const workloads::ParallelPlan&);
  std::vector<KernelTime> times_of(const std::vector<workloads::Kernel>&) const;
  std::optional<GroupShape> shape_of_group(const workloads::ParallelPlan&, workloads::GroupKind);

  Scenario base_;
  std::shared_ptr<const Network> network_;
  std::shared_ptr<const KernelModel> kernels_;
  AblatedNetwork ablated_;
  std::vector<Duration> host_costs_;
  Question asked_;
  Memo<Parts> parts_;
  Memo<Data> data_;
  Memo<Span> tails_;
  Memo<Reductions> reductions_;
  std::map<std::tuple<workloads::CollectiveKind, std::int64_t, workloads::Dtype, GroupShape>,
           Duration>
      times_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::optional<GroupShape>> shapes_;
};

}  // namespace stepcast::sim
