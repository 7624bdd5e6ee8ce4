// Collectives and overlaps as tasks, done by a team of worker processes (worker_team.hpp), one team
// for each forced algorithm and protocol, one at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "calibrate/device/device.hpp"
#include "calibrate/device/worker_team.hpp"

namespace stepcast::calibrate {

class Collectives {
 public:
  /// Waits for the other nodes, if any. `options.gpus` is the number of this node's GPUs.
  explicit Collectives(const TeamOptions& options);

  std::int64_t num_ranks() const { return nodes_ ? nodes_->num_ranks() : 1; }
  std::int64_t num_nodes() const { return nodes_ ? nodes_->num_nodes() : 1; }
  std::string library() const { return library_; }  // "NCCL 2.28.9"; "" where none is used

  std::unique_ptr<Prepared> make(const CollectiveTask& task, std::uint64_t seed);
  std::unique_ptr<Prepared> make(const OverlapTask& task, std::uint64_t seed);

 private:
  WorkerTeam& team_for(const Forced& forced);
  /// A team that breaks is not started again: the reason is kept, and the task is left out.
  template <class Make>
  std::unique_ptr<Prepared> with_team(const CollectiveTask& task, Make make);

  TeamOptions options_;
  std::string library_;
  std::optional<Nodes> nodes_;
  std::unique_ptr<WorkerTeam> team_;
  Forced forced_;                         // of team_
  std::map<Forced, std::string> broken_;  // and why
};

}  // namespace stepcast::calibrate
