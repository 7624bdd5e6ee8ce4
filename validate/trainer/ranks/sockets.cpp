#include "validate/trainer/ranks/sockets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/check.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace stepcast::validate {
namespace {

using Clock = std::chrono::steady_clock;
using Message = std::vector<std::byte>;

/// What a message belongs to: the group, and in it the collectives or what is sent and received.
using Channel = std::uint32_t;
constexpr Channel farewell = ~Channel{0};

struct Header {
  std::uint64_t size = 0;
  Channel channel = 0;
  std::uint32_t reserved = 0;
};

constexpr std::uint64_t longest_message = std::uint64_t{1} << 36U;
constexpr std::size_t taken_on_trust = std::size_t{64} << 20U;  // room made before the bytes come
constexpr double slowest_rate = 1e6;                            // bytes/s, of one message

struct Peer {
  explicit Peer(sim::Descriptor connection) : socket(std::move(connection)) {}

  sim::Descriptor socket;
  std::deque<Message> outgoing;  // what the socket did not take at once
  std::size_t gone = 0;          // bytes of the first of them

  Header header;  // of the message that comes in
  Message body;
  std::size_t got = 0;  // bytes of both
  Clock::time_point begun{};
  std::map<Channel, std::deque<Message>> inbox;

  bool leaving = false;  // said goodbye
  bool closed = false;
  bool garbled = false;       // closed because of what it sent
  Clock::time_point heard{};  // moved bytes, either way

  bool dead() const { return closed && !leaving; }
};

}  // namespace

class SocketRanks::Mesh {
 public:
  Mesh(std::int64_t rank, std::vector<sim::Descriptor> connections, Duration patience)
      : patience_(seconds(patience)), rank_(static_cast<std::size_t>(rank)) {
    for (auto& connection : connections) {
      peers_.emplace_back(std::move(connection));
      if (peers_.size() - 1 == rank_) continue;
      const int socket = peers_.back().socket.number(), on = 1;
      fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
  }

  ~Mesh() {
    if (!mover_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    mover_.join();
  }
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return peers_.size(); }

  Channel next_group = 1;  // that no group of this rank has

  /// From here on a thread moves the bytes, and others send and receive.
  void allow_threads() {
    if (mover_.joinable()) return;
    waker_ = sim::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    expects(waker_.number() >= 0, "an eventfd");
    mover_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!stopping_)
        if (pump(lock, -1)) changed_.notify_all();
    });
  }

  /// This rank is to end: what it waits for will not come.
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }

  void send(std::size_t to, Channel channel, std::span<const std::byte> values, const char* what) {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[to];
    const Header header{.size = values.size(), .channel = channel};
    std::size_t sent = 0;
    if (peer.outgoing.empty()) sent = send_now(peer, header, values);
    if (sent < sizeof(header) + values.size()) {
      Message rest(sizeof(header) + values.size());
      std::memcpy(rest.data(), &header, sizeof(header));
      std::ranges::copy(values, rest.begin() + sizeof(header));
      if (peer.outgoing.empty()) peer.gone = sent;
      peer.outgoing.push_back(std::move(rest));
      if (mover_.joinable()) wake();
    }
    complain_of_dead(what);
  }

  Message receive(std::size_t from, Channel channel, const char* what) {
    std::unique_lock lock(mutex_);
    auto& box = peers_[from].inbox[channel];
    wait_for(lock, from, what, [&] { return !box.empty(); });
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }

  /// Takes in what has come.
  void look() {
    std::unique_lock lock(mutex_);
    if (!mover_.joinable()) pump(lock, 0);
    complain_of_dead("training");
  }

  void say_goodbye() {
    for (std::size_t p = 0; p < size(); ++p)
      if (p != rank_) send(p, farewell, {}, "the end");
    std::unique_lock lock(mutex_);
    for (std::size_t p = 0; p < size(); ++p)
      if (p != rank_)
        wait_for(lock, p, "the end", [&peer = peers_[p]] {
          return (peer.leaving && peer.outgoing.empty()) || peer.closed;
        });
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  template <class Ready>
  void wait_for(Lock& lock, std::size_t from, const char* what, Ready ready) {
    Peer& peer = peers_[from];
    const Clock::time_point begin = Clock::now();
    while (!ready()) {
      complain_of_dead(what);
      if (given_up_) throw PeerLost(fmt::format("rank {} has given up in {}", rank_, what));
      if (peer.closed || (peer.leaving && peer.outgoing.empty()))
        throw PeerLost(
            fmt::format("rank {} needs rank {} in {}, which has ended its run", rank_, from, what));
      const std::chrono::duration<double> waited = Clock::now() - std::max(begin, peer.heard);
      if (waited >= patience_)
        throw PeerLost(fmt::format("rank {} waited {:.0f} s for its peers in {}: rank {} is silent",
                                   rank_, waited.count(), what, from));
      complain_of_slow(from, what);
      const double left_ms = std::clamp((patience_ - waited).count() * 1e3 + 1, 1.0, 1e6);
      if (mover_.joinable())
        changed_.wait_for(lock, std::chrono::duration<double, std::milli>(left_ms));
      else
        pump(lock, static_cast<int>(left_ms));
    }
  }

  void complain_of_dead(const char* what) const {
    for (std::size_t p = 0; p < size(); ++p)
      if (peers_[p].dead())
        throw PeerLost(fmt::format(
            "rank {} lost rank {} in {}: {}", rank_, p, what,
            peers_[p].garbled ? "it sent what is no message" : "its process has ended"));
  }

  /// A peer that sends a byte now and then is alive, and yet holds all up.
  void complain_of_slow(std::size_t from, const char* what) const {
    const Peer& peer = peers_[from];
    if (peer.got == 0) return;
    const std::chrono::duration<double> takes = Clock::now() - peer.begun;
    if (takes.count() > patience_.count() + static_cast<double>(peer.got) / slowest_rate)
      throw PeerLost(
          fmt::format("rank {} got {} bytes of a message in {:.0f} s in {}: rank {} is too slow",
                      rank_, peer.got, takes.count(), what, from));
  }

  void wake() const {
    const std::uint64_t one = 1;
    if (write(waker_.number(), &one, sizeof(one)) < 0 && errno != EAGAIN)
      throw BrokenPromise("an eventfd that takes a number");
  }

  /// Moves what can be moved, after waiting so long for the first of it, without the lock: whether
  /// somebody may have waited for that.
  bool pump(Lock& lock, int milliseconds) {
    waiting_.clear();
    for (const Peer& peer : peers_) {
      const bool open = !peer.closed && peer.socket.number() >= 0;
      const int events = POLLIN | (peer.outgoing.empty() ? 0 : POLLOUT);
      waiting_.push_back({.fd = open ? peer.socket.number() : -1,
                          .events = static_cast<short>(events),
                          .revents = 0});
    }
    waiting_.push_back({.fd = waker_.number(), .events = POLLIN, .revents = 0});
    lock.unlock();
    const int some = poll(waiting_.data(), waiting_.size(), milliseconds);
    lock.lock();
    if (some <= 0) return false;
    if (waiting_.back().revents != 0) {
      std::uint64_t count = 0;
      while (read(waker_.number(), &count, sizeof(count)) < 0 && errno == EINTR) continue;
    }
    bool news = false;
    for (std::size_t p = 0; p < size(); ++p) {
      if ((waiting_[p].revents & POLLOUT) != 0) news |= send_rest(peers_[p]);
      if ((waiting_[p].revents & ~POLLOUT) != 0) news |= take_in(peers_[p]);
    }
    return news;
  }

  /// How many of `count` bytes the socket took.
  std::size_t write_to(Peer& peer, std::array<iovec, 2> pieces) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    for (;;) {
      const ssize_t sent = sendmsg(peer.socket.number(), &message, MSG_NOSIGNAL);
      if (sent >= 0) {
        peer.heard = Clock::now();
        return static_cast<std::size_t>(sent);
      }
      if (errno == EINTR) continue;
      // The peer is gone: what it said before is still to be read.
      if (errno != EAGAIN && errno != EWOULDBLOCK) take_in(peer), peer.closed = true;
      return 0;
    }
  }

  std::size_t send_now(Peer& peer, Header header, std::span<const std::byte> values) {
    if (peer.closed) return 0;
    return write_to(peer, {iovec{&header, sizeof(header)},
                           iovec{const_cast<std::byte*>(values.data()), values.size()}});
  }

  /// Whether all is sent.
  bool send_rest(Peer& peer) {
    while (!peer.outgoing.empty() && !peer.closed) {
      Message& first = peer.outgoing.front();
      const std::size_t left = first.size() - peer.gone;
      const std::size_t sent = write_to(peer, {iovec{first.data() + peer.gone, left}, iovec{}});
      peer.gone += sent;
      if (sent < left) return peer.closed;
      peer.outgoing.pop_front();
      peer.gone = 0;
    }
    return true;
  }

  /// Whether a message is complete, or none will come any more.
  bool take_in(Peer& peer) {
    bool news = false;
    while (!peer.closed) {
      const bool at_header = peer.got < sizeof(Header);
      if (!at_header) make_room(peer);
      std::byte* to = at_header ? reinterpret_cast<std::byte*>(&peer.header) + peer.got
                                : peer.body.data() + (peer.got - sizeof(Header));
      const std::size_t end = sizeof(Header) + (at_header ? 0 : peer.body.size());
      const ssize_t count = recv(peer.socket.number(), to, end - peer.got, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return news;
      if (count <= 0) {
        peer.closed = true;
        return true;
      }
      peer.heard = Clock::now();
      if (peer.got == 0) peer.begun = peer.heard;
      peer.got += static_cast<std::size_t>(count);
      if (peer.got < sizeof(Header)) continue;
      if (peer.header.size > longest_message || peer.header.reserved != 0) {
        peer.closed = peer.garbled = true;
        return true;
      }
      if (peer.got < sizeof(Header) + peer.header.size) continue;
      put_by(peer);
      news = true;
    }
    return news;
  }

  /// A long message's as its bytes come: what is announced costs nothing.
  static void make_room(Peer& peer) {
    const std::size_t there = peer.got - sizeof(Header);
    if (there < peer.body.size()) return;
    peer.body.resize(std::min<std::size_t>(peer.header.size, std::max(taken_on_trust, 2 * there)));
  }

  static void put_by(Peer& peer) {
    peer.got = 0;
    Message body = std::exchange(peer.body, {});
    if (peer.header.channel == farewell)
      peer.leaving = true;
    else
      peer.inbox[peer.header.channel].push_back(std::move(body));
  }

  const std::chrono::duration<double> patience_;
  const std::size_t rank_;
  std::vector<Peer> peers_;
  std::vector<pollfd> waiting_;  // of whoever pumps
  // Where several threads use the connections: of all that can change.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_up_ = false, stopping_ = false;
  sim::Descriptor waker_;  // of the mover
  std::thread mover_;
};

/// A group: `members` are its ranks in the run.
class SocketCommunicator final : public Communicator {
 public:
  SocketCommunicator(SocketRanks::Mesh& mesh, Channel group, std::vector<std::size_t> members)
      : mesh_(mesh),
        collectives_(2 * group),
        messages_(2 * group + 1),
        members_(std::move(members)),
        rank_(static_cast<std::size_t>(std::ranges::find(members_, mesh.rank()) -
                                       members_.begin())) {}

  std::int64_t rank() const override { return static_cast<std::int64_t>(rank_); }
  std::int64_t size() const override { return static_cast<std::int64_t>(members_.size()); }

  /// Everybody tells the first, and the first tells everybody.
  void barrier() override {
    if (rank_ == 0) {
      for (std::size_t r = 1; r < members_.size(); ++r) get(r, "barrier");
      for (std::size_t r = 1; r < members_.size(); ++r) put(r, {}, "barrier");
    } else {
      put(0, {}, "barrier");
      get(0, "barrier");
    }
  }

  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    struct Wish {
      std::int64_t color, has_color, next_group;
    };
    const Wish mine{color.value_or(0), color ? 1 : 0, mesh_.next_group};
    std::vector<Wish> wishes(members_.size());
    all_of(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(wishes)), "split");
    std::vector<std::size_t> members;
    std::int64_t group = 0;  // that none of these ranks has used: two ranks meet in it at most once
    for (std::size_t r = 0; r < wishes.size(); ++r) {
      group = std::max(group, wishes[r].next_group);
      if (wishes[r].has_color == 1 && wishes[r].color == mine.color) members.push_back(members_[r]);
    }
    mesh_.next_group = static_cast<Channel>(group) + 1;
    if (!color) return nullptr;
    return std::make_unique<SocketCommunicator>(mesh_, static_cast<Channel>(group),
                                                std::move(members));
  }

  void check_peers() override { mesh_.look(); }
  void allow_threads() override { mesh_.allow_threads(); }
  void give_up(const std::exception_ptr& /*cause*/) override { mesh_.give_up(); }

 private:
  void put(std::size_t to, std::span<const std::byte> values, const char* what) {
    mesh_.send(members_[to], collectives_, values, what);
  }
  Message get(std::size_t from, const char* what) {
    return mesh_.receive(members_[from], collectives_, what);
  }

  template <class Work>
  void for_others(Work work) {
    for (std::size_t i = 1; i < members_.size(); ++i) work((rank_ + i) % members_.size());
  }

  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    expects(from.size() == to.size(), "ranks call a collective with equal lengths");
    std::ranges::copy(from, to.begin());
  }

  /// Rank r's share of a reduction, in bytes.
  std::span<std::byte> part(std::span<std::byte> values, std::size_t r, Scalar scalar) const {
    const std::size_t count = values.size() / size_of(scalar), n = members_.size();
    const std::size_t from = count * r / n, to = count * (r + 1) / n;
    return values.subspan(from * size_of(scalar), (to - from) * size_of(scalar));
  }

  /// `own` beside what the others have sent of it, combined in the order of ranks into `into`.
  void combine_all(std::span<const std::byte> own, std::span<std::byte> into, Scalar scalar,
                   Reduction how, const char* what) {
    std::vector<Message> messages(members_.size());
    for_others([&](std::size_t r) { messages[r] = get(r, what); });
    std::vector<std::span<const std::byte>> parts;
    for (std::size_t r = 0; r < messages.size(); ++r)
      parts.push_back(r == rank_ ? own : std::span<const std::byte>(messages[r]));
    reduce(parts, into, scalar, how);
  }

  /// Everybody sums up one part and tells it to the others; a short one everybody sums up whole.
  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    constexpr std::size_t is_short = 8192;
    const char* const what = "all-reduce";
    if (values.size() <= is_short) {
      for_others([&](std::size_t r) { put(r, values, what); });
      combine_all(values, values, scalar, how, what);
      return;
    }
    for_others([&](std::size_t r) { put(r, part(values, r, scalar), what); });
    const auto mine = part(values, rank_, scalar);
    combine_all(mine, mine, scalar, how, what);
    for_others([&](std::size_t r) { put(r, mine, what); });
    for_others([&](std::size_t r) { copy(get(r, what), part(values, r, scalar)); });
  }

  void all_of(std::span<const std::byte> mine, std::span<std::byte> all, const char* what) {
    expects(all.size() == mine.size() * members_.size(), "room for all ranks' parts");
    for_others([&](std::size_t r) { put(r, mine, what); });
    copy(mine, all.subspan(rank_ * mine.size(), mine.size()));
    for_others(
        [&](std::size_t r) { copy(get(r, what), all.subspan(r * mine.size(), mine.size())); });
  }

  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Scalar) override {
    all_of(mine, all, "all-gather");
  }

  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    const std::size_t size = mine.size();
    expects(all.size() == size * members_.size(), "one part for each rank");
    for_others([&](std::size_t r) { put(r, all.subspan(r * size, size), "reduce-scatter"); });
    combine_all(all.subspan(rank_ * size, size), mine, scalar, Reduction::sum, "reduce-scatter");
  }

  void exchange_bytes(std::span<const std::byte> mine, Counts to, std::span<std::byte> theirs,
                      Counts from) override {
    const auto part_of = [](auto all, Counts sizes, std::size_t r) {
      std::size_t before = 0;
      for (std::size_t i = 0; i < r; ++i) before += sizes[i];
      return all.subspan(before, sizes[r]);
    };
    for_others([&](std::size_t r) { put(r, part_of(mine, to, r), "all-to-all"); });
    copy(part_of(mine, to, rank_), part_of(theirs, from, rank_));
    for_others([&](std::size_t r) { copy(get(r, "all-to-all"), part_of(theirs, from, r)); });
  }

  void broadcast_bytes(std::span<std::byte> values, std::int64_t root) override {
    if (root == rank())
      for_others([&](std::size_t r) { put(r, values, "broadcast"); });
    else
      copy(get(static_cast<std::size_t>(root), "broadcast"), values);
  }

  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    mesh_.send(members_.at(static_cast<std::size_t>(peer)), messages_, values, "send");
  }

  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    copy(mesh_.receive(members_.at(static_cast<std::size_t>(peer)), messages_, "receive"), values);
  }

  SocketRanks::Mesh& mesh_;
  const Channel collectives_, messages_;
  const std::vector<std::size_t> members_;
  const std::size_t rank_;
};

SocketRanks::SocketRanks(std::int64_t rank, std::vector<sim::Descriptor> connections,
                         Duration patience)
    : mesh_(std::make_unique<Mesh>(rank, std::move(connections), patience)) {}

SocketRanks::~SocketRanks() {
  if (std::uncaught_exceptions() > 0) return;  // closed without a goodbye: the peers are to end
  try {
    mesh_->say_goodbye();
  } catch (const PeerLost&) {
    // This rank has done its work; who started the ranks hears of the other from its exit code.
  }
}

std::unique_ptr<Communicator> SocketRanks::world() {
  std::vector<std::size_t> members(mesh_->size());
  for (std::size_t r = 0; r < members.size(); ++r) members[r] = r;
  return std::make_unique<SocketCommunicator>(*mesh_, 0, std::move(members));
}

}  // namespace stepcast::validate
