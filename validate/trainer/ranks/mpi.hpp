// Ranks as MPI processes: the collectives that calibrate times between the same ranks
// (calibrate/host/ranks_main.cpp). A peer that does not come in time ends this process, and mpirun
// then ends the others.
#pragma once

#include <memory>

#include "engine/units.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

/// MPI of this process, from MPI_Init to MPI_Finalize; one at a time. A call that takes longer than
/// `limit` prints which one and exits with `exit_code`: MPI itself would wait for ever.
class MpiSession {
 public:
  MpiSession(Duration limit, int exit_code);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// All ranks of the run.
  std::unique_ptr<Communicator> world();

 private:
  class Watch;
  friend class MpiCommunicator;
  std::unique_ptr<Watch> watch_;
};

}  // namespace stepcast::validate
