// One rank of an NCCL communicator and the collectives that it runs, as nccl-tests does: fp32,
// sums, out of place, wall-clock time of a loop after a barrier. Part of stepcast-nccl-worker.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

#include "calibrate/device/device.hpp"
#include "calibrate/kernels/memory.hpp"

namespace stepcast::calibrate {

struct NcclFree {
  void operator()(ncclComm* communicator) const { ncclCommAbort(communicator); }
};

class NcclRank {
 public:
  /// Joins the communicator of that id (make_nccl_id); returns when all its ranks have.
  NcclRank(const std::string& id, int rank, int num_ranks, cudaStream_t stream);

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }
  ncclComm_t communicator() const { return communicator_.get(); }
  cudaStream_t stream() const { return stream_; }
  /// Returns when every rank has come here.
  void barrier();

 private:
  int rank_, num_ranks_;
  cudaStream_t stream_;
  std::unique_ptr<ncclComm, NcclFree> communicator_;
  DeviceMemory one_;
};

/// An ncclUniqueId as hexadecimal digits.
std::string make_nccl_id();

/// A collective with its buffers filled with random data. Made without talking to the others, so
/// that one rank may lack the memory; all else needs all ranks.
class NcclCollective {
 public:
  /// Throws Unsupported where the size has not one element for each rank.
  NcclCollective(NcclRank& rank, const std::string& collective, Bytes size, std::uint64_t seed);

  void warm_up();
  /// Puts it on the rank's stream.
  void launch();
  /// Of samples of this rank's result against sums in float64, over the largest of them.
  double relative_error();
  Duration run(std::int64_t repetitions);

 private:
  struct Piece {
    std::int64_t rank, element;  // of a sender's buffer
  };
  Piece origin_of(std::int64_t element) const;
  double expected(std::int64_t element) const;
  void fill();

  enum class Kind { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive };
  static Kind kind_of(const std::string& collective);

  NcclRank& rank_;
  Kind kind_;
  std::int64_t block_;            // elements per rank, or of the message
  std::int64_t sent_, received_;  // elements of both buffers
  std::uint64_t seed_;
  DeviceMemory send_, receive_;
};

}  // namespace stepcast::calibrate
