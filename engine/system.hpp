// Everything run() needs: roles and their programs, who plays which role, who meets whom, how long
// things take, which links they load. Plain tables built by the caller; knows no GPUs and no
// models.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fluid.hpp"
#include "engine/jitter.hpp"
#include "engine/program.hpp"
#include "engine/units.hpp"

namespace stepcast::engine {

/// Communication classes whose presence slows the compute lane. A class is absent (0), resident
/// (1: its kernel holds SMs, from the rank's own launch on) or moving (2: bytes cross the memory as
/// well). A state is the classes' levels as digits of base 3.
inline constexpr int num_classes = 4;
inline constexpr int num_states = 81;
inline constexpr std::uint8_t side_work_class = 3;  // work on a lane other than compute

/// Why the compute lane stands still while a transfer is under way.
enum class Traffic : std::uint8_t { tensor, pipeline, data, expert, offload };
inline constexpr int num_traffic = 5;
inline constexpr std::uint8_t own_work = num_traffic;  // none of them: a kernel of the rank's own

/// A kernel: its time alone, the row of System::stretch that says how it suffers, and what waiting
/// for it is where it runs beside the compute lane.
struct Work {
  Duration duration{};
  std::uint32_t profile = 0;
  std::uint8_t traffic = own_work;
};

/// A collective as the engine sees it: an amount drained at no more than `cap`, once the last
/// member has arrived. Links carry LinkLoad::weight bytes per byte of it.
struct Transfer {
  double bytes = 0.0;
  BytesPerSecond cap{};
  Traffic traffic = Traffic::data;
  std::uint8_t interference_class = 0;  // < num_classes
};

/// Ranks that meet, with the links that their transfers load. Transfers of one communicator run one
/// after the other because each member joins from one lane only.
struct Communicator {
  std::vector<std::uint32_t> members;
  std::uint32_t pattern = 0;  // column of System::transfers: how the members lie in the cluster
  std::vector<LinkLoad> loads;
};

struct System {
  std::vector<Program> roles;
  std::vector<std::uint32_t> role_of_rank;
  std::vector<Work> works;           // Instruction::arg of Op::work
  std::vector<double> stretch;       // [profile * num_states + state], >= 1; state 0 is 1
  std::vector<Duration> host_costs;  // Instruction::host_cost
  std::uint32_t num_patterns = 1;
  std::vector<Transfer> transfers;  // [Instruction::arg of Op::join * num_patterns + pattern]
  std::vector<Communicator> communicators;
  std::vector<std::vector<std::uint32_t>> communicator_of;  // [slot][rank]; none: no_communicator
  std::vector<BytesPerSecond> link_capacity;
  std::vector<std::uint32_t> link_owner;  // the rank that alone uses the link, or no_owner
  std::vector<double> slowness;           // per rank: work takes that much longer; empty: 1
  Jitter jitter;                          // of every kernel; steps then never repeat

  std::uint32_t num_ranks() const { return static_cast<std::uint32_t>(role_of_rank.size()); }
};

inline constexpr std::uint32_t no_communicator = ~std::uint32_t{0};
inline constexpr std::uint32_t no_owner = ~std::uint32_t{0};

/// Where one rank's step went: disjoint wall time of the compute lane, in the order of StepReport.
struct RankAccount {
  Duration compute{};       // interference included
  Duration interference{};  // of compute: longer than the kernels would take alone
  std::array<Duration, num_traffic> exposed{};  // bytes move and the compute lane waits for them
  Duration bubble{};                            // waiting for a pipeline peer to arrive
  Duration wait{};                              // waiting for the last member of another group
  Duration host{};                              // nothing launched
  std::array<Duration, num_traffic> communication{};  // span of transfers, from this rank's arrival
  Duration total() const;                             // of the disjoint parts: the step
  RankAccount& operator+=(const RankAccount& other);
  RankAccount divided_by(std::int64_t n) const;
  /// Adds n times what has come since it was `before`.
  void repeat_since(const RankAccount& before, std::int64_t n);

  friend bool operator==(const RankAccount&, const RankAccount&) = default;
};

struct RunOptions {
  bool segments = true;      // false: every kernel is an event of its own (the reference)
  bool closed_forms = true;  // false: every transfer goes through the fluid layer
  bool skip_turns = true;    // false: every turn of a repeat is run, also where they are alike
  bool last_in_first_out = false;  // order of the worklist; the result may not depend on it
  bool cold = false;               // one step from rest instead of the steady state
  int max_steps = 6;               // give up waiting for the steady state after that many
  int measured = 0;  // > 0: that many steps after one to warm up, whether they repeat or not; the
                     // result is their mean
};

struct RunResult {
  Duration step{};     // distance between the ends of successive steps (cold: the step's length)
  bool steady = true;  // false: did not repeat within max_steps
  int steps = 0;       // simulated
  std::vector<Duration> measured;  // RunOptions::measured steps, one by one
  std::vector<RankAccount> ranks;
  std::int64_t works = 0;      // kernels executed, also in the turns skipped; so the next two
  std::int64_t joins = 0;      // memberships in transfers
  std::int64_t transfers = 0;  // transfers executed
  std::int64_t queued = 0;     // events of the ordered queue
  std::int64_t walked = 0;     // segments cut and walked kernel by kernel
  std::int64_t skipped = 0;    // turns of repeats that were like those before, by rank
  std::int64_t flows = 0;      // transfers of the fluid layer
};

/// Work left when nothing can run: names the blocked ranks, lanes and what each waits for.
class Stalled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace stepcast::engine
