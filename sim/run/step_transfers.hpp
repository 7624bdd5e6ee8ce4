// The collectives of a step on a layout: how long each takes, which links it loads, how much of a
// GPU it holds meanwhile.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "engine/system.hpp"
#include "sim/network/model.hpp"
#include "sim/network/nccl/protocol_choice.hpp"
#include "sim/run/layout.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::sim {

/// Times that a rank of one role runs each kernel and joins each collective in a step.
struct RoleCalls {
  std::vector<double> works, joins;
};
std::vector<RoleCalls> calls_of(const workloads::StepProgram& program);

/// The most that collectives of one class, or copies beside them, hold of a GPU.
struct ClassLoad {
  std::int64_t ctas = 0;
  BytesPerSecond memory{};
};
using ClassLoads = std::array<ClassLoad, engine::num_classes>;

/// How the groups of a plan lie, as far as times depend on it.
struct GroupForms {
  std::vector<GroupShape> shapes;                   // by pattern
  std::vector<std::vector<std::uint32_t>> of_kind;  // patterns of each kind, ascending
  std::function<double(const Movement&)> unit_of;   // as Layout::unit_of()
  std::size_t num_patterns() const { return std::max<std::size_t>(1, shapes.size()); }
};

/// Collectives of a step by kind, bytes and pattern of the group; what is borrowed outlives it.
class StepTransfers {
 public:
  StepTransfers(const workloads::StepProgram& program, const Layout& layout,
                const NetworkModel& network);
  StepTransfers(const workloads::StepProgram& program, GroupForms forms,
                const NetworkModel& network);

  /// Collectives launched under another micro-batch's compute take that much longer: their kernels
  /// wait for SMs.
  void wait_for_sms(Duration wait);
  /// How each kind and pattern moves bytes, and the fastest that its transfers ever drain. From now
  /// on transfers count the bytes of one flow; once.
  struct Flow {
    Movement movement;
    double fastest = 0.0;
  };
  std::vector<Flow> count_by_flow(const std::vector<RoleCalls>& calls);
  /// As System::transfers.
  const std::vector<engine::Transfer>& transfers() const { return transfers_; }
  /// Puts transfers, links and the communicators' loads on the system of the layout's groups; once.
  /// Returns, by link of the system, one of those that it stands for.
  std::vector<topology::LinkId> put_on(engine::System& system, const std::vector<RoleCalls>& calls);
  /// Of the first pattern of its group.
  const CollectiveTime& time_of(std::size_t collective) const;
  const ClassLoads& class_loads() const { return classes_; }
  /// Those that NCCL chose a protocol for by its own estimate, no measured curve at hand.
  std::vector<ProtocolChoice> choices(const std::vector<RoleCalls>& calls) const;

 private:
  std::uint8_t copy_engine_class(engine::Traffic traffic) const;
  const std::vector<std::uint32_t>& patterns_of(workloads::GroupKind kind) const {
    return forms_.of_kind[static_cast<std::size_t>(kind)];
  }
  Movement heaviest(workloads::GroupKind kind, std::uint32_t pattern,
                    const std::vector<RoleCalls>& calls);
  double fastest(workloads::GroupKind kind, std::uint32_t pattern) const;
  std::size_t index(std::size_t collective, std::uint32_t pattern) const {
    return collective * forms_.num_patterns() + pattern;
  }

  const workloads::StepProgram& program_;
  const Layout* layout_ = nullptr;  // none: transfers alone
  GroupForms forms_;
  std::vector<engine::Transfer> transfers_;  // by index()
  std::vector<CollectiveTime> times_;
  ClassLoads classes_{};
};

}  // namespace stepcast::sim
