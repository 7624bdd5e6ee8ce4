#include "calibrate/cuda/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "calibrate/kernels/check.hpp"
#include "calibrate/kernels/random.hpp"

namespace stepcast::calibrate {
namespace {

constexpr char digits[] = "0123456789abcdef";
constexpr std::int64_t element_size = 4;  // fp32

ncclUniqueId id_from(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof(id.internal))
    throw InputError("NCCL", "an id of " + std::to_string(text.size()) + " digits");
  for (std::size_t i = 0; i < sizeof(id.internal); ++i)
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id{};
  NCCL_TRY(ncclGetUniqueId(&id));
  std::string text;
  for (const char c : id.internal) {
    const auto byte = static_cast<unsigned char>(c);
    text += {digits[byte / 16], digits[byte % 16]};
  }
  return text;
}

NcclRank::NcclRank(const std::string& id, int rank, int num_ranks, cudaStream_t stream)
    : rank_(rank), num_ranks_(num_ranks), stream_(stream), one_(allocate_device(Bytes(8))) {
  ncclComm_t communicator = nullptr;
  NCCL_TRY(ncclCommInitRank(&communicator, num_ranks, id_from(id), rank));
  communicator_.reset(communicator);
  CUDA_TRY(cudaMemset(one_.get(), 0, 8));
  CUDA_TRY(cudaDeviceSynchronize());  // the memory is set on another stream
  barrier();
}

void NcclRank::barrier() {
  NCCL_TRY(
      ncclAllReduce(one_.get(), one_.get() + 4, 1, ncclFloat, ncclSum, communicator(), stream_));
  CUDA_TRY(cudaStreamSynchronize(stream_));
}

NcclCollective::Kind NcclCollective::kind_of(const std::string& collective) {
  if (collective == "allreduce") return Kind::all_reduce;
  if (collective == "allgather") return Kind::all_gather;
  if (collective == "reducescatter") return Kind::reduce_scatter;
  if (collective == "alltoall") return Kind::all_to_all;
  if (collective == "sendrecv") return Kind::send_receive;
  throw Unsupported("no such collective: " + collective);
}

/// nccl-tests' sizes: the message of AllReduce and Send/Recv, otherwise what all ranks have
/// together.
NcclCollective::NcclCollective(NcclRank& rank, const std::string& collective, Bytes size,
                               std::uint64_t seed)
    : rank_(rank), kind_(kind_of(collective)), seed_(seed) {
  const bool of_all = kind_ != Kind::all_reduce && kind_ != Kind::send_receive;
  block_ = size.value / element_size / (of_all ? rank.num_ranks() : 1);
  if (block_ < 1) throw Unsupported("less than one fp32 element for each rank");
  const std::int64_t all = of_all ? block_ * rank.num_ranks() : block_;
  sent_ = kind_ == Kind::all_gather ? block_ : all;
  received_ = kind_ == Kind::reduce_scatter ? block_ : all;
  send_ = allocate_device(Bytes(sent_ * element_size));
  receive_ = allocate_device(Bytes(received_ * element_size));
  fill();
}

void NcclCollective::warm_up() {
  constexpr int repetitions = 5;  // nccl-tests' number
  for (int i = 0; i < repetitions; ++i) launch();
  CUDA_TRY(cudaStreamSynchronize(rank_.stream()));
}

/// Each rank has its own stream of numbers; the result is poisoned.
void NcclCollective::fill() {
  fill_random(send_.get(), Element::fp32, sent_, seed_ + static_cast<std::uint64_t>(rank_.rank()),
              rank_.stream());
  CUDA_TRY(cudaMemsetAsync(receive_.get(), 0xFF,  // a NaN
                           static_cast<std::size_t>(received_ * element_size), rank_.stream()));
}

void NcclCollective::launch() {
  const auto block = static_cast<std::size_t>(block_);
  const ncclComm_t communicator = rank_.communicator();
  const cudaStream_t stream = rank_.stream();
  switch (kind_) {
    case Kind::all_reduce:
      NCCL_TRY(ncclAllReduce(send_.get(), receive_.get(), block, ncclFloat, ncclSum, communicator,
                             stream));
      return;
    case Kind::all_gather:
      NCCL_TRY(ncclAllGather(send_.get(), receive_.get(), block, ncclFloat, communicator, stream));
      return;
    case Kind::reduce_scatter:
      NCCL_TRY(ncclReduceScatter(send_.get(), receive_.get(), block, ncclFloat, ncclSum,
                                 communicator, stream));
      return;
    case Kind::all_to_all:
      NCCL_TRY(ncclGroupStart());
      for (int peer = 0; peer < rank_.num_ranks(); ++peer) {
        const std::int64_t offset = peer * block_ * element_size;
        NCCL_TRY(ncclSend(send_.get() + offset, block, ncclFloat, peer, communicator, stream));
        NCCL_TRY(ncclRecv(receive_.get() + offset, block, ncclFloat, peer, communicator, stream));
      }
      NCCL_TRY(ncclGroupEnd());
      return;
    case Kind::send_receive: {
      const int n = rank_.num_ranks(), next = (rank_.rank() + 1) % n,
                previous = (rank_.rank() + n - 1) % n;
      NCCL_TRY(ncclGroupStart());
      NCCL_TRY(ncclSend(send_.get(), block, ncclFloat, next, communicator, stream));
      NCCL_TRY(ncclRecv(receive_.get(), block, ncclFloat, previous, communicator, stream));
      NCCL_TRY(ncclGroupEnd());
      return;
    }
  }
}

/// Where an element of the result comes from; the same place on every rank where they are summed.
NcclCollective::Piece NcclCollective::origin_of(std::int64_t element) const {
  const std::int64_t n = rank_.num_ranks(), self = rank_.rank();
  switch (kind_) {
    case Kind::all_reduce:
      return {self, element};
    case Kind::all_gather:
      return {element / block_, element % block_};
    case Kind::reduce_scatter:
      return {self, self * block_ + element};
    case Kind::all_to_all:
      return {element / block_, self * block_ + element % block_};
    case Kind::send_receive:
      return {(self + n - 1) % n, element};
  }
  throw BrokenPromise("a collective without a case");
}

double NcclCollective::expected(std::int64_t element) const {
  const Piece piece = origin_of(element);
  const bool summed = kind_ == Kind::all_reduce || kind_ == Kind::reduce_scatter;
  double sum = 0;
  for (std::int64_t r = 0; r < rank_.num_ranks(); ++r)
    if (summed || r == piece.rank)
      sum += static_cast<double>(random_value(seed_ + static_cast<std::uint64_t>(r),
                                              static_cast<std::uint64_t>(piece.element)));
  return sum;
}

double NcclCollective::relative_error() {
  constexpr std::int64_t samples = 1024;
  seed_ += static_cast<std::uint64_t>(rank_.num_ranks());
  fill();
  launch();
  CUDA_TRY(cudaStreamSynchronize(rank_.stream()));
  double error = 0, largest = 0;
  const std::int64_t step = std::max<std::int64_t>(1, received_ / samples);
  for (std::int64_t i = 0; i < received_; i += step) {
    float value = 0;
    CUDA_TRY(cudaMemcpy(&value, receive_.get() + i * element_size, sizeof(value),
                        cudaMemcpyDeviceToHost));
    const double wanted = expected(i);
    const double difference = std::abs(static_cast<double>(value) - wanted);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    largest = std::max(largest, std::abs(wanted));
  }
  return largest > 0 ? error / largest : error;
}

Duration NcclCollective::run(std::int64_t repetitions) {
  rank_.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repetitions; ++i) launch();
  CUDA_TRY(cudaStreamSynchronize(rank_.stream()));
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

}  // namespace stepcast::calibrate
