// Lines of text between processes over TCP, every wait with an end. Knows not what they say.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace stepcast::calibrate {

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

class LineChannel {
 public:
  explicit LineChannel(Descriptor socket) : socket_(std::move(socket)) {}

  void send(const std::string& line);
  /// The next line without its end.
  std::string receive(Deadline deadline);

 private:
  Descriptor socket_;
  std::string unread_;
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

/// One attempt. Throws ChannelBroken where nobody answers there until then.
Descriptor open_connection(const std::string& address, Deadline deadline);
/// Tries until somebody listens there.
LineChannel connect_to(const std::string& address, Deadline deadline);

}  // namespace stepcast::calibrate
