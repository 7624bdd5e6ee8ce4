// Connections of one process to all others: messages in channels, sent without waiting and taken in
// as they come, over TCP. Knows no collective (sockets.hpp).
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/units.hpp"
#include "sim/processes/line_channel.hpp"

namespace stepcast::validate {

/// One thread's, until allow_threads(). What fails is a PeerLost that names both ranks.
class PeerMesh {
 public:
  using Message = std::vector<std::byte>;

  /// What a message belongs to: the group, and in it the collectives or what is sent and received.
  using Channel = std::uint32_t;

  /// `connections[r]` leads to rank r; the one of this rank is not looked at.
  PeerMesh(std::int64_t rank, std::vector<sim::Descriptor> connections, Duration patience);
  ~PeerMesh();
  PeerMesh(const PeerMesh&) = delete;
  PeerMesh& operator=(const PeerMesh&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return peers_.size(); }

  Channel next_group = 1;  // that no group of this rank has

  /// From here on a thread moves the bytes, and others send and receive.
  void allow_threads();

  /// This rank is to end: what it waits for will not come.
  void give_up();

  /// `what` is the word for the caller's work in errors.
  void send(std::size_t to, Channel channel, std::span<const std::byte> values, const char* what);
  Message receive(std::size_t from, Channel channel, const char* what);

  /// Takes in what has come.
  void look();

  /// Tells all peers that this is an end, not a death, and waits until all have.
  void say_goodbye();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Header {
    std::uint64_t size = 0;
    Channel channel = 0;
    std::uint32_t reserved = 0;
  };

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

  void wait_for(Lock& lock, std::size_t from, const char* what, const std::function<bool()>& ready);
  void complain_of_dead(const char* what) const;
  void complain_of_slow(std::size_t from, const char* what) const;
  void wake() const;
  bool pump(Lock& lock, int milliseconds);
  std::size_t write_to(Peer& peer, std::array<iovec, 2> pieces);
  std::size_t send_now(Peer& peer, Header header, std::span<const std::byte> values);
  bool send_rest(Peer& peer);
  bool take_in(Peer& peer);
  static void make_room(Peer& peer);
  static void put_by(Peer& peer);

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

}  // namespace stepcast::validate
