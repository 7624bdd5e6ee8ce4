// Groups of ranks whose collectives and messages run on GPUs: NCCL, on the stream of the lane that
// was taken last. Every wait of the host ends when a peer is gone or the patience is over. Part of
// stepcast-trainer where it is built with NCCL.
#pragma once

#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/units.hpp"
#include "validate/trainer/device/cuda_lanes.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {

/// NCCL in this process: all its communicators, so that they can be watched and given up together.
class NcclRanks {
 public:
  /// `processes`: all ranks, over the host; asked whether the peers live.
  NcclRanks(Communicator& processes, Duration patience);
  ~NcclRanks() { give_up(); }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Joins a communicator; collective over `group`, whose ranks are the processes that do, in their
  /// order, and which carries the id there. Throws PeerLost.
  ncclComm_t join(Communicator& group);
  void leave(ncclComm_t communicator);

  /// Makes sure of a call that may still be on its way (ncclInProgress): every call of NCCL's.
  void finish(ncclResult_t result, ncclComm_t communicator, const char* what);

  /// Throws PeerLost where NCCL or the processes know that a peer is gone, after give_up().
  void check();
  /// Ends what NCCL has running on the GPU.
  void give_up();
  bool given_up() const { return given_up_; }

 private:
  void check_processes();
  [[noreturn]] void lose(const std::string& what);

  Communicator& processes_;
  const std::chrono::duration<double> patience_;
  std::vector<ncclComm_t> communicators_;
  bool given_up_ = false;
};

/// All ranks of `processes`, on the stream of `lanes`. Collective. Both outlive it, but for the
/// lanes at its end.
std::unique_ptr<Communicator> make_nccl_world(std::shared_ptr<NcclRanks> ranks,
                                              const CudaLanes& lanes, Communicator& processes);

/// "NCCL 2.28.9"
std::string nccl_version();

}  // namespace stepcast::validate
