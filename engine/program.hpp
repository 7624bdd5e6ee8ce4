// What a GPU would be given in one training step: the calls of its host thread, in order.
// Every call starts something on a lane (a CUDA stream) or makes the host wait. Ranks that do the
// same share one Program (a role); nothing here is per rank. Knows no durations and no hardware:
// `arg` and `communicator` are indexes into tables that the caller of run() supplies.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::engine {

/// The lane whose idle time the report explains; kernels of the model run here.
inline constexpr std::uint8_t compute_lane = 0;

enum class Op : std::uint8_t {
  work,       // lane runs work `arg` (a kernel)
  join,       // lane takes part in transfer `arg` of communicator slot `communicator`
  record,     // event `arg` happens when the lane gets here
  wait,       // lane waits for event `arg` of the same step
  host_wait,  // the host thread itself waits for event `arg`; later calls are launched after it
  host_work,  // the host thread is busy for its host cost; no lane is involved
  mark,       // all ranks have just met in a global collective: the steady state is entered here
};

/// One call of the host thread. A lane executes its instructions in order; each starts when the
/// host has launched it, the lane is free and its waits are met.
struct Instruction {
  Op op{};
  std::uint8_t lane = 0;
  std::uint8_t host_cost = 0;  // index into System::host_costs: the host is busy that long first
  std::uint32_t arg = 0;
  std::uint32_t communicator = 0;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// Instructions [first, end) of a program, which run `count` times in a row but stand there once.
/// The events that they record and await are those of the first time; each time `events` higher.
struct Repeat {
  std::uint32_t first = 0, end = 0;
  std::uint32_t count = 1;
  std::uint32_t events = 0;

  friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// The host-ordered calls of one role for one step. Events are recorded at most once per step.
struct Program {
  std::vector<Instruction> instructions;
  std::vector<Repeat> repeats;  // in order, apart
  std::uint32_t num_events = 0;
  std::uint8_t num_lanes = 1;

  friend bool operator==(const Program&, const Program&) = default;
};

/// Calls f(instruction, times) for every instruction with how often a step runs it.
template <class F>
void each_call(const Program& program, F&& f) {
  auto repeat = program.repeats.begin();
  for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
    if (repeat != program.repeats.end() && i == repeat->end) ++repeat;
    const bool repeated = repeat != program.repeats.end() && i >= repeat->first;
    f(program.instructions[i], repeated ? std::int64_t{repeat->count} : std::int64_t{1});
  }
}

/// The same program with every instruction as often as it runs.
Program unrolled(const Program& program);

/// Writes a Program call by call, as the framework's host thread would.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::uint8_t num_lanes) { program_.num_lanes = num_lanes; }

  void work(std::uint8_t lane, std::uint32_t work_index, std::uint8_t host_cost) {
    push({Op::work, lane, host_cost, work_index, 0});
  }
  void join(std::uint8_t lane, std::uint32_t communicator, std::uint32_t transfer,
            std::uint8_t host_cost) {
    push({Op::join, lane, host_cost, transfer, communicator});
  }
  /// A new event that happens when `lane` has done everything launched on it so far.
  std::uint32_t record(std::uint8_t lane, std::uint8_t host_cost = 0) {
    push({Op::record, lane, host_cost, program_.num_events, 0});
    return program_.num_events++;
  }
  void wait(std::uint8_t lane, std::uint32_t event, std::uint8_t host_cost = 0) {
    expects(event < program_.num_events, "wait for an event recorded earlier");
    push({Op::wait, lane, host_cost, event, 0});
  }
  void host_wait(std::uint32_t event, std::uint8_t host_cost = 0) {
    expects(event < program_.num_events, "host_wait for an event recorded earlier");
    push({Op::host_wait, 0, host_cost, event, 0});
  }
  void host_work(std::uint8_t host_cost) { push({Op::host_work, 0, host_cost, 0, 0}); }
  void mark() { push({Op::mark, 0, 0, 0, 0}); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(program_.instructions.size()); }
  std::uint32_t num_events() const { return program_.num_events; }
  const std::vector<Instruction>& instructions() const { return program_.instructions; }
  /// What was written since `first` runs `more` times again; `events` of it were new.
  void repeat(std::uint32_t first, std::uint32_t more, std::uint32_t events) {
    program_.repeats.push_back({first, size(), 1 + more, events});
    program_.num_events += more * events;
  }

  Program take() { return std::move(program_); }

 private:
  void push(Instruction i) {
    expects(i.lane < program_.num_lanes, "lane exists");
    program_.instructions.push_back(i);
  }
  Program program_;
};

}  // namespace stepcast::engine
