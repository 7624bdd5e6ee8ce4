// A worker of a team (worker_team.hpp): does what the leader's lines say and answers each.
#pragma once

#include <memory>
#include <string>

#include "calibrate/cuda/overlap.hpp"

namespace stepcast::calibrate {

class NcclWorker {
 public:
  NcclWorker(int rank, int gpu);

  /// The answer to one line: "ok ...", "no WHY" (this task cannot be done), "fail WHY".
  ///   id                         -> the communicator's id
  ///   init ID RANKS
  ///   prepare COLLECTIVE BYTES SEED
  ///   warm
  ///   error                      -> relative error of this rank's result
  ///   run REPETITIONS            -> picoseconds of all
  ///   beside SEED KERNEL...      prepares a kernel for the prepared collective
  ///   alone REPETITIONS          -> picoseconds of a kernel, of a collective
  ///   together KERNELS COLLECTIVES -> likewise, at once
  std::string answer(const std::string& line);

 private:
  std::string done(const std::string& verb, const std::string& rest);
  std::string start(const std::string& rest);
  std::string prepare(const std::string& rest);
  std::string prepare_kernel(const std::string& rest);
  NcclCollective& collective();
  Overlap& overlap();

  int rank_;
  CudaContext context_;
  Stream stream_;  // of the collectives
  // In this order: what comes later uses what comes before.
  std::unique_ptr<NcclRank> communicator_;
  std::unique_ptr<NcclCollective> collective_;
  std::unique_ptr<CudaTask> kernel_;
  std::unique_ptr<Overlap> overlap_;
};

}  // namespace stepcast::calibrate
