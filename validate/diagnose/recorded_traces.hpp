// The engine's run as the traces of its ranks: what a profiler would see, and no more.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/system.hpp"
#include "engine/timeline.hpp"
#include "validate/trace/records/events.hpp"
#include "workloads/step/step_program.hpp"

namespace stepcast::validate {

/// Kernels with names and times, collectives with their groups' ranks and bytes from the rank's own
/// arrival on, so that waiting is in them as it is in NCCL's kernels.
class TraceRecorder final : public engine::TimelineSink {
 public:
  /// Both are borrowed.
  TraceRecorder(const workloads::StepProgram& program, const engine::System& system)
      : program_(program), system_(system) {}

  void start() override;
  void work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from, Time to) override;
  void transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer, Time arrived,
                Time started, Time ended) override;

  /// The last step twice, `step` apart, the first to be left out.
  std::vector<RankTrace> take(Duration step);

 private:
  std::int64_t facts_of(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer);

  const workloads::StepProgram& program_;
  const engine::System& system_;
  std::vector<RankTrace> ranks_;
  std::vector<std::vector<std::int64_t>> facts_;  // [rank][transfer and side]: index + 1; 0: none
};

}  // namespace stepcast::validate
