// What one rank of the trainer did in a step: kernels and collectives with their shapes, by lane,
// in order, with times. And what the simulator's program says it should have done, for comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/units.hpp"
#include "workloads/step_program.hpp"

namespace stepcast::validate {

struct Operation {
  workloads::Lane lane{};
  std::variant<workloads::Kernel, workloads::Collective> what;
  Duration start{}, end{};  // since the log was started
};

class OperationLog {
 public:
  using Clock = std::chrono::steady_clock;

  /// Forgets everything; times count from here.
  void start() {
    operations_.clear();
    start_ = Clock::now();
  }

  template <class What, class Work>
  void run(workloads::Lane lane, What what, Work&& work) {
    const Clock::time_point begin = Clock::now();
    work();
    const Clock::time_point end = Clock::now();
    operations_.push_back({lane, std::move(what), begin - start_, end - start_});
  }

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
  Clock::time_point start_ = Clock::now();
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
