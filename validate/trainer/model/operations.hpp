// What one rank of the trainer did in a step: kernels and collectives with their shapes, by lane,
// in order, with times. And what the simulator's program says it should have done, for comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/units.hpp"
#include "validate/trainer/device/lanes.hpp"
#include "validate/trainer/model/kernel_waits.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

struct Operation {
  workloads::Lane lane{};
  std::variant<workloads::Kernel, workloads::Collective> what;
  Duration start{}, end{};  // since the step began
};

/// Fills up while the host thread fills the lanes; the times are read once the lanes are empty.
class OperationLog {
 public:
  void start() {
    operations_.clear();
    marks_.clear();
  }

  /// From now on kernels are waited for; null: run.
  void wait_for_kernels(KernelWaits* waits) { waits_ = waits; }

  template <class What, class Work>
  void run(Lanes& lanes, workloads::Lane lane, What what, Work&& work) {
    const Lanes::Mark begin = lanes.mark();
    if constexpr (std::is_same_v<What, workloads::Kernel>) {
      waits_ != nullptr ? waits_->wait(what) : work();
    } else {
      work();
      if (waits_ != nullptr) waits_->interrupt();
    }
    marks_.emplace_back(begin, lanes.mark());
    operations_.push_back({lane, std::move(what), {}, {}});
  }

  void read_times(Lanes& lanes) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      operations_[i].start = lanes.time_of(marks_[i].first);
      operations_[i].end = lanes.time_of(marks_[i].second);
    }
  }

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
  std::vector<std::pair<Lanes::Mark, Lanes::Mark>> marks_;
  KernelWaits* waits_ = nullptr;
};

/// The operations of one pipeline stage in the order of the host's calls, without times.
std::vector<Operation> operations_of(const workloads::StepProgram& program, std::int64_t stage);

/// Where `done` first leaves `planned` on any lane, in words; none where both agree: kernels in
/// every field, collectives in kind, group, dtype, bytes and name.
std::optional<std::string> first_difference(const std::vector<Operation>& done,
                                            const std::vector<Operation>& planned);

/// "layer.mlp.up.dgrad gemm 512x256x704, 2.4 MB".
std::string to_text(const Operation& operation);

}  // namespace stepcast::validate
