#include "validate/trainer/ranks/peer_mesh.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/check.hpp"
#include "validate/trainer/ranks/communicator.hpp"

namespace stepcast::validate {
namespace {

constexpr PeerMesh::Channel farewell = ~PeerMesh::Channel{0};
constexpr std::uint64_t longest_message = std::uint64_t{1} << 36U;
constexpr std::size_t taken_on_trust = std::size_t{64} << 20U;  // room made before the bytes come
constexpr double slowest_rate = 1e6;                            // bytes/s, of one message

}  // namespace

PeerMesh::PeerMesh(std::int64_t rank, std::vector<sim::Descriptor> connections, Duration patience)
    : patience_(seconds(patience)), rank_(static_cast<std::size_t>(rank)) {
  for (auto& connection : connections) {
    peers_.emplace_back(std::move(connection));
    if (peers_.size() - 1 == rank_) continue;
    const int socket = peers_.back().socket.number(), on = 1;
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
}

PeerMesh::~PeerMesh() {
  if (!mover_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  mover_.join();
}

void PeerMesh::allow_threads() {
  if (mover_.joinable()) return;
  waker_ = sim::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  expects(waker_.number() >= 0, "an eventfd");
  mover_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stopping_)
      if (pump(lock, -1)) changed_.notify_all();
  });
}

void PeerMesh::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  changed_.notify_all();
}

void PeerMesh::send(std::size_t to, Channel channel, std::span<const std::byte> values,
                    const char* what) {
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

PeerMesh::Message PeerMesh::receive(std::size_t from, Channel channel, const char* what) {
  std::unique_lock lock(mutex_);
  auto& box = peers_[from].inbox[channel];
  wait_for(lock, from, what, [&] { return !box.empty(); });
  Message message = std::move(box.front());
  box.pop_front();
  return message;
}

void PeerMesh::look() {
  std::unique_lock lock(mutex_);
  if (!mover_.joinable()) pump(lock, 0);
  complain_of_dead("training");
}

void PeerMesh::say_goodbye() {
  for (std::size_t p = 0; p < size(); ++p)
    if (p != rank_) send(p, farewell, {}, "the end");
  std::unique_lock lock(mutex_);
  for (std::size_t p = 0; p < size(); ++p)
    if (p != rank_)
      wait_for(lock, p, "the end", [&peer = peers_[p]] {
        return (peer.leaving && peer.outgoing.empty()) || peer.closed;
      });
}

void PeerMesh::wait_for(Lock& lock, std::size_t from, const char* what,
                        const std::function<bool()>& ready) {
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

void PeerMesh::complain_of_dead(const char* what) const {
  for (std::size_t p = 0; p < size(); ++p)
    if (peers_[p].dead())
      throw PeerLost(
          fmt::format("rank {} lost rank {} in {}: {}", rank_, p, what,
                      peers_[p].garbled ? "it sent what is no message" : "its process has ended"));
}

/// A peer that sends a byte now and then is alive, and yet holds all up.
void PeerMesh::complain_of_slow(std::size_t from, const char* what) const {
  const Peer& peer = peers_[from];
  if (peer.got == 0) return;
  const std::chrono::duration<double> takes = Clock::now() - peer.begun;
  if (takes.count() > patience_.count() + static_cast<double>(peer.got) / slowest_rate)
    throw PeerLost(
        fmt::format("rank {} got {} bytes of a message in {:.0f} s in {}: rank {} is too slow",
                    rank_, peer.got, takes.count(), what, from));
}

void PeerMesh::wake() const {
  const std::uint64_t one = 1;
  if (write(waker_.number(), &one, sizeof(one)) < 0 && errno != EAGAIN)
    throw BrokenPromise("an eventfd that takes a number");
}

/// Moves what can be moved, after waiting so long for the first of it, without the lock: whether
/// somebody may have waited for that.
bool PeerMesh::pump(Lock& lock, int milliseconds) {
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
std::size_t PeerMesh::write_to(Peer& peer, std::array<iovec, 2> pieces) {
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

std::size_t PeerMesh::send_now(Peer& peer, Header header, std::span<const std::byte> values) {
  if (peer.closed) return 0;
  return write_to(peer, {iovec{&header, sizeof(header)},
                         iovec{const_cast<std::byte*>(values.data()), values.size()}});
}

/// Whether all is sent.
bool PeerMesh::send_rest(Peer& peer) {
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
bool PeerMesh::take_in(Peer& peer) {
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
void PeerMesh::make_room(Peer& peer) {
  const std::size_t there = peer.got - sizeof(Header);
  if (there < peer.body.size()) return;
  peer.body.resize(std::min<std::size_t>(peer.header.size, std::max(taken_on_trust, 2 * there)));
}

void PeerMesh::put_by(Peer& peer) {
  peer.got = 0;
  Message body = std::exchange(peer.body, {});
  if (peer.header.channel == farewell)
    peer.leaving = true;
  else
    peer.inbox[peer.header.channel].push_back(std::move(body));
}

}  // namespace stepcast::validate
