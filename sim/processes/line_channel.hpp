// Lines of text between processes over sockets, every wait with an end. Knows not what they say.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::sim {

using Deadline = std::chrono::steady_clock::time_point;
Deadline in_seconds(double seconds);

/// Nothing came in time, or the other end is gone.
class ChannelBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file descriptor that is closed at the end; -1 where it owns none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

/// Waits until one of these sockets has something, or its other end is gone: true; false at the
/// deadline. -1 is no socket.
bool wait_readable(const std::vector<int>& sockets, Deadline deadline);

/// Throws ChannelBroken where the line is not taken in time.
void send_line(const Descriptor& socket, const std::string& line, Deadline deadline);

class LineChannel {
 public:
  /// A line that is longer counts as the end of the other process.
  explicit LineChannel(Descriptor socket, std::size_t longest_line = std::string::npos)
      : socket_(std::move(socket)), longest_line_(longest_line) {}

  void send(const std::string& line) { send_line(socket_, line, Deadline::max()); }
  /// The next line without its end.
  std::string receive(Deadline deadline);
  /// The same of what is there already: none so far, or none any more. What follows the line stays
  /// unread.
  std::optional<std::string> line();
  /// What came of the next line.
  const std::string& begun() const { return begun_; }
  /// The other process is, or this side of the channel was closed.
  bool gone() const { return number() < 0; }

  /// To be polled; -1 once it is gone.
  int number() const { return socket_.number(); }
  const Descriptor& socket() const { return socket_; }
  Descriptor release() { return std::move(socket_); }
  void close() { socket_ = Descriptor(); }

 private:
  Descriptor socket_;
  std::size_t longest_line_;
  std::string begun_;
};

/// Where others connect to, "10.0.0.4:41234".
class Listener {
 public:
  /// "host:port"; port 0: any free one. Throws InputError where that is not ours to listen on.
  explicit Listener(const std::string& address);
  /// A socket that listens already, of a parent process.
  Listener(Descriptor socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  const std::string& address() const { return address_; }
  LineChannel accept(Deadline deadline);
  /// To be polled; then the connection itself, -1 where the caller has gone again.
  int number() const { return socket_.number(); }
  Descriptor accept_now();

 private:
  Descriptor socket_;
  std::string address_;
};

/// Of "host:port", which is no path.
bool is_address(const std::string& text);
std::string host_in(const std::string& address);
std::string port_in(const std::string& address);
/// This machine's.
std::string host_name();

/// One attempt. Throws ChannelBroken where nobody answers there until then.
Descriptor open_connection(const std::string& address, Deadline deadline);
/// Tries until somebody listens there.
LineChannel connect_to(const std::string& address, Deadline deadline);

}  // namespace stepcast::sim
