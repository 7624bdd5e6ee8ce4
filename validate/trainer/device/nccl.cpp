#include "validate/trainer/device/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "calibrate/kernels/check.hpp"
#include "engine/check.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto look_every = std::chrono::microseconds(100);
/// A call that only launches is through that early: NCCL does it on a thread of its own.
constexpr auto soon = std::chrono::milliseconds(1);

ncclDataType_t type_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::float32:
      return ncclFloat32;
    case Scalar::float64:
      return ncclFloat64;
    case Scalar::bfloat16:
      return ncclBfloat16;
    case Scalar::float16:
      return ncclFloat16;
  }
  throw BrokenPromise("a scalar without a case");
}

ncclRedOp_t operation_of(Reduction how) { return how == Reduction::sum ? ncclSum : ncclMax; }

}  // namespace

NcclRanks::NcclRanks(Communicator& processes, Duration patience)
    : processes_(processes), patience_(seconds(patience)) {}

/// A new id for each, rather than ncclCommSplit: works with any NCCL, and its start has an end in
/// time.
ncclComm_t NcclRanks::join(Communicator& group) {
  ncclUniqueId id{};
  if (group.rank() == 0) NCCL_TRY(ncclGetUniqueId(&id));
  static_assert(sizeof(id.internal) == sizeof(id));
  group.broadcast(std::span(id.internal), 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // calls return at once, so that waiting for a peer can end
  ncclComm_t communicator = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&communicator, static_cast<int>(group.size()),
                                                     id, static_cast<int>(group.rank()), &config);
  if (communicator != nullptr) communicators_.push_back(communicator);
  finish(result, communicator, "ncclCommInitRankConfig");
  return communicator;
}

void NcclRanks::leave(ncclComm_t communicator) {
  if (std::erase(communicators_, communicator) > 0) ncclCommAbort(communicator);
}

void NcclRanks::finish(ncclResult_t result, ncclComm_t communicator, const char* what) {
  if (communicator == nullptr && result == ncclInProgress) result = ncclInternalError;
  for (const Clock::time_point start = Clock::now(); result == ncclInProgress;) {
    const auto waited = Clock::now() - start;
    if (waited >= patience_)
      lose(fmt::format("rank {} waited {:.0f} s for its peers in {}", processes_.rank(),
                       patience_.count(), what));
    if (waited < soon) {
      std::this_thread::yield();
    } else {
      check_processes();
      std::this_thread::sleep_for(look_every);
    }
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result == ncclSuccess) return;
  const std::string why = fmt::format("rank {}: {}: {} ({})", processes_.rank(), what,
                                      ncclGetErrorString(result), ncclGetLastError(communicator));
  if (result == ncclRemoteError || result == ncclSystemError) lose(why);
  give_up();
  throw InputError("NCCL", why, "NCCL_DEBUG=INFO tells more");
}

void NcclRanks::check() {
  for (const ncclComm_t communicator : communicators_) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess || state == ncclInProgress) continue;
    lose(fmt::format("rank {}: NCCL: {} ({})", processes_.rank(), ncclGetErrorString(state),
                     ncclGetLastError(communicator)));
  }
  check_processes();
}

void NcclRanks::check_processes() {
  try {
    processes_.check_peers();
  } catch (const PeerLost&) {
    give_up();
    throw;
  }
}

void NcclRanks::give_up() {
  given_up_ = true;
  for (const ncclComm_t communicator : std::exchange(communicators_, {}))
    ncclCommAbort(communicator);
}

void NcclRanks::lose(const std::string& what) {
  give_up();
  throw PeerLost(what);
}

namespace {

/// A communicator that is left with its owner.
class Membership {
 public:
  Membership() = default;
  Membership(NcclRanks& ranks, Communicator& group) : ranks_(&ranks), it_(ranks.join(group)) {}
  Membership(Membership&& other) noexcept
      : ranks_(std::exchange(other.ranks_, nullptr)), it_(other.it_) {}
  Membership& operator=(Membership&& other) noexcept {
    std::swap(ranks_, other.ranks_);
    std::swap(it_, other.it_);
    return *this;
  }
  ~Membership() {
    if (ranks_ != nullptr) ranks_->leave(it_);
  }
  ncclComm_t get() const { return it_; }

 private:
  NcclRanks* ranks_ = nullptr;
  ncclComm_t it_ = nullptr;
};

/// The connections to a neighbour, one for each direction, so that what goes forward and what goes
/// back on another lane never wait for each other.
struct Neighbour {
  Membership out, in;
  int place = 0;  // of the neighbour in both
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclRanks> ranks, const CudaLanes& lanes,
                   std::unique_ptr<Communicator> processes)
      : ranks_(std::move(ranks)), lanes_(lanes), processes_(std::move(processes)) {
    if (size() > 1) all_ = Membership(*ranks_, *processes_);
  }

  /// What this rank has sent is its network's when its own kernel is done, not yet its peer's.
  ~NcclCommunicator() override {
    if (std::uncaught_exceptions() > 0 || ranks_->given_up()) return;
    try {
      processes_->barrier();
    } catch (const PeerLost&) {
      // It has done its part; those who wait for the lost one will say so.
    }
  }

  std::int64_t rank() const override { return processes_->rank(); }
  std::int64_t size() const override { return processes_->size(); }
  void barrier() override { processes_->barrier(); }
  void check_peers() override { ranks_->check(); }

  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    auto part = processes_->split(color);
    if (!part) return nullptr;
    return std::make_unique<NcclCommunicator>(ranks_, lanes_, std::move(part));
  }

  /// Pairs that begin at an even rank first: each rank then waits for one neighbour at a time, and
  /// nobody in a circle. NCCL connects two ranks when both have called it for the first time, and
  /// the host waits for that: done here, since in a step stages post receives long before anybody
  /// sends.
  void connect_neighbours(bool ring) override {
    for (std::int64_t parity = 0; parity < 2; ++parity)
      for (std::int64_t first = parity; first + 1 < size(); first += 2) {
        if (auto link = connect(first, first + 1))
          (rank() == first ? next_ : previous_) = *std::move(link);
      }
    // Two are each other's next and previous.
    if (ring && size() > 2)
      if (auto link = connect(0, size() - 1)) (rank() == 0 ? previous_ : next_) = *std::move(link);
  }

 private:
  /// Collective over the group; none for the other ranks.
  std::optional<Neighbour> connect(std::int64_t lower, std::int64_t upper) {
    auto pair =
        processes_->split(rank() == lower || rank() == upper ? std::optional(lower) : std::nullopt);
    if (!pair) return std::nullopt;
    Membership up(*ranks_, *pair), down(*ranks_, *pair);
    const int place = rank() == lower ? 1 : 0;  // of the other
    try_out(up, rank() == lower, place);
    try_out(down, rank() != lower, place);
    if (rank() == lower) return Neighbour{std::move(up), std::move(down), place};
    return Neighbour{std::move(down), std::move(up), place};
  }

  cudaStream_t stream() const { return lanes_.stream(); }

  template <class Call>
  void on_all(const char* what, Call call) {
    ranks_->finish(call(all_.get()), all_.get(), what);
  }

  void copy(std::span<std::byte> to, std::span<const std::byte> from) const {
    expects(to.size() == from.size(), "a group of one has all there is");
    CUDA_TRY(
        cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream()));
  }

  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    if (size() == 1 || values.empty()) return;
    on_all("ncclAllReduce", [&](ncclComm_t all) {
      return ncclAllReduce(values.data(), values.data(), values.size() / size_of(scalar),
                           type_of(scalar), operation_of(how), all, stream());
    });
  }

  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                    Scalar scalar) override {
    if (size() == 1) return copy(all, mine);
    expects(all.size() == mine.size() * static_cast<std::size_t>(size()), "room for all parts");
    on_all("ncclAllGather", [&](ncclComm_t comm) {
      return ncclAllGather(mine.data(), all.data(), mine.size() / size_of(scalar), type_of(scalar),
                           comm, stream());
    });
  }

  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    if (size() == 1) return copy(mine, all);
    expects(all.size() == mine.size() * static_cast<std::size_t>(size()), "a part for each rank");
    on_all("ncclReduceScatter", [&](ncclComm_t comm) {
      return ncclReduceScatter(all.data(), mine.data(), mine.size() / size_of(scalar),
                               type_of(scalar), ncclSum, comm, stream());
    });
  }

  void broadcast_bytes(std::span<std::byte> values, std::int64_t root) override {
    if (size() == 1) return;
    on_all("ncclBroadcast", [&](ncclComm_t all) {
      return ncclBroadcast(values.data(), values.data(), values.size(), ncclInt8,
                           static_cast<int>(root), all, stream());
    });
  }

  /// A first message between the two ranks of a communicator.
  void try_out(const Membership& way, bool is_sender, int place) {
    if (!scratch_) scratch_ = calibrate::allocate_device(Bytes(1));
    const ncclComm_t pair = way.get();
    const ncclResult_t result = is_sender
                                    ? ncclSend(scratch_.get(), 1, ncclInt8, place, pair, stream())
                                    : ncclRecv(scratch_.get(), 1, ncclInt8, place, pair, stream());
    ranks_->finish(result, pair, "the connection to a neighbour");
  }

  const Neighbour& neighbour(std::int64_t peer) const {
    const std::int64_t next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size();
    const bool upwards = peer == next && next_.out.get() != nullptr;
    const Neighbour& one = upwards ? next_ : previous_;
    expects((upwards || peer == previous) && one.out.get() != nullptr,
            "messages go to neighbours, which are connected first");
    return one;
  }

  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    const Neighbour& to = neighbour(peer);
    ranks_->finish(
        ncclSend(values.data(), values.size(), ncclInt8, to.place, to.out.get(), stream()),
        to.out.get(), "ncclSend");
  }

  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    const Neighbour& from = neighbour(peer);
    ranks_->finish(
        ncclRecv(values.data(), values.size(), ncclInt8, from.place, from.in.get(), stream()),
        from.in.get(), "ncclRecv");
  }

  const std::shared_ptr<NcclRanks> ranks_;  // also of the lanes' watch: whoever goes last ends it
  const CudaLanes& lanes_;
  const std::unique_ptr<Communicator> processes_;  // the same group, over the host
  Membership all_;
  Neighbour next_, previous_;
  calibrate::DeviceMemory scratch_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_world(std::shared_ptr<NcclRanks> ranks,
                                              const CudaLanes& lanes, Communicator& processes) {
  return std::make_unique<NcclCommunicator>(std::move(ranks), lanes, processes.split(0));
}

std::string nccl_version() {
  int number = 0;
  NCCL_TRY(ncclGetVersion(&number));  // 22809: 2.28.9
  return fmt::format("NCCL {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace stepcast::validate
