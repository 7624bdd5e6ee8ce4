// NCCL among the threads of a process, on emulated streams, at its most unhelpful: a kernel waits
// until all have come, a message until it is taken, and the first call of a communicator is on its
// way (ncclInProgress) until the peers have called as well.
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/validate/nccl/emulated_runtime.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace {

using stepcast::validate::Reduction;
using stepcast::validate::Scalar;
using Message = std::vector<std::byte>;

/// What the ranks of a communicator share.
struct Circle {
  struct Meeting {
    std::vector<Message> given;
    int arrived = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, joined = 0, called = 0;
  std::map<int, Meeting> meetings;  // by the number of the collective
  std::map<std::pair<int, int>, std::deque<Message>> messages;
};

std::mutex all_mutex;
std::map<std::string, std::shared_ptr<Circle>> all;

Scalar scalar_of_type(ncclDataType_t type) {
  if (type == ncclFloat32) return Scalar::float32;
  if (type == ncclFloat64) return Scalar::float64;
  return type == ncclBfloat16 ? Scalar::bfloat16 : Scalar::float16;
}
std::size_t width(ncclDataType_t type) {
  return type == ncclInt8 ? 1 : stepcast::validate::size_of(scalar_of_type(type));
}

Message sum_of(const std::vector<Message>& given, ncclDataType_t type, ncclRedOp_t how) {
  const std::vector<std::span<const std::byte>> parts(given.begin(), given.end());
  Message sum(given[0].size());
  stepcast::validate::reduce(parts, sum, scalar_of_type(type),
                             how == ncclMax ? Reduction::max : Reduction::sum);
  return sum;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Circle> circle;
  int rank = 0;
  int collectives = 0;
  bool has_called = false;
  // Jobs outlive the communicator.
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
};

namespace {

ncclResult_t call_of(ncclComm_t comm) {
  if (!comm->has_called) {
    comm->has_called = true;
    const std::lock_guard lock(comm->circle->mutex);
    ++comm->circle->called;
  }
  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(comm, &state);
  return state;
}

/// All give and then look at what the others have given.
template <class Take>
ncclResult_t meet(ncclComm_t comm, const void* given, std::size_t size, cudaStream_t stream,
                  Take take) {
  const int number = comm->collectives++, rank = comm->rank;
  on_stream(stream, [=, circle = comm->circle, aborted = comm->aborted] {
    const auto* bytes = static_cast<const std::byte*>(given);
    std::unique_lock lock(circle->mutex);
    if (*aborted) return;  // what was given may be gone
    Circle::Meeting& meeting = circle->meetings[number];
    meeting.given.resize(static_cast<std::size_t>(circle->size));
    meeting.given[static_cast<std::size_t>(rank)].assign(bytes, bytes + size);
    ++meeting.arrived;
    circle->changed.notify_all();
    circle->changed.wait(lock, [&] { return *aborted || meeting.arrived == circle->size; });
    if (!*aborted) take(meeting.given);
  });
  return call_of(comm);
}

void copy(void* to, const Message& from) { std::memcpy(to, from.data(), from.size()); }

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an emulated error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next = 0;
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "circle %d", next++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;  // nobody would notice a lost peer
  const std::lock_guard lock(all_mutex);
  auto& circle = all[id.internal];
  if (!circle) circle = std::make_shared<Circle>();
  const std::lock_guard inner(circle->mutex);
  circle->size = size;
  ++circle->joined;
  *comm = new ncclComm{.circle = circle, .rank = rank};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  Circle& circle = *comm->circle;
  const std::lock_guard lock(circle.mutex);
  const bool connected = !comm->has_called || circle.called == circle.size;
  *state = circle.joined == circle.size && connected ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(comm->circle->mutex);
    *comm->aborted = true;
    comm->circle->changed.notify_all();
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t how, ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, from, count * width(type), stream,
              [=](const auto& given) { copy(to, sum_of(given, type, how)); });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, from, count * width(type), stream, [=](const auto& given) {
    auto* at = static_cast<std::byte*>(to);
    for (const Message& one : given) {
      copy(at, one);
      at += one.size();
    }
  });
}

/// `count`: of each rank's part.
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t how, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t part = count * width(type), rank = static_cast<std::size_t>(comm->rank);
  const auto size = static_cast<std::size_t>(comm->circle->size);
  return meet(comm, from, size * part, stream, [=](const auto& given) {
    std::memcpy(to, sum_of(given, type, how).data() + rank * part, part);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, from, count * width(type), stream,
              [=](const auto& given) { copy(to, given[static_cast<std::size_t>(root)]); });
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  const std::pair<int, int> way(comm->rank, peer);
  on_stream(stream, [=, circle = comm->circle, aborted = comm->aborted] {
    const auto* bytes = static_cast<const std::byte*>(from);
    std::unique_lock lock(circle->mutex);
    auto& box = circle->messages[way];
    circle->changed.wait(lock, [&] { return *aborted || box.empty(); });
    if (*aborted) return;
    box.emplace_back(bytes, bytes + count * width(type));
    circle->changed.notify_all();
    circle->changed.wait(lock, [&] { return *aborted || box.empty(); });
  });
  return call_of(comm);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const std::pair<int, int> way(peer, comm->rank);
  on_stream(stream, [=, circle = comm->circle, aborted = comm->aborted] {
    std::unique_lock lock(circle->mutex);
    auto& box = circle->messages[way];
    circle->changed.wait(lock, [&] { return *aborted || !box.empty(); });
    if (*aborted) return;
    std::memcpy(to, box.front().data(), std::min(count * width(type), box.front().size()));
    box.pop_front();
    circle->changed.notify_all();
  });
  return call_of(comm);
}

}  // extern "C"
