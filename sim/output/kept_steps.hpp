// Steps that a session has simulated, kept in a folder of --out line by line as they end: a step
// that is there already, from this run or an earlier one, is not simulated again.
#pragma once

#include <mutex>
#include <unordered_map>

#include "sim/output/folder.hpp"
#include "sim/run/session.hpp"

namespace stepcast::sim {

class KeptSteps {
 public:
  /// Both are borrowed.
  KeptSteps(OutputFolder& folder, Session& session) : folder_(folder), session_(session) {}

  /// What Session::step() says, to the last digit. Threads may share it. A row that cannot be
  /// written is told of when the folder is finished.
  StepReport step(const Scenario& scenario);
  bool knows(const Scenario& scenario) { return row_of(folder_.id_of(scenario, {})).has_value(); }

  /// Looks at what other shards have added since. Returns whether that is anything.
  bool look_again() {
    const std::lock_guard lock(keeping_);
    return folder_.look_again();
  }

  /// Of this run.
  std::size_t simulated() const { return kept_.size(); }
  std::size_t recalled() const { return recalled_; }

 private:
  std::optional<std::string> row_of(const PointId& id);
  void keep(const PointId& id, std::string row);

  OutputFolder& folder_;
  Session& session_;
  std::mutex keeping_;  // of what follows, and of the folder's file
  std::unordered_map<PointId, std::string> kept_;
  std::size_t recalled_ = 0;
};

}  // namespace stepcast::sim
