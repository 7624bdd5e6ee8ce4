#include "sim/processes/line_channel.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    throw InputError("--rendezvous", "\"" + address + "\" is no address",
                     "write host:port, e.g. node1:41000");
  return {address.substr(0, colon), address.substr(colon + 1)};
}

Addresses resolve(const std::string& address) {
  const auto [host, port] = host_and_port(address);
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int result = getaddrinfo(host.c_str(), port.c_str(), &wanted, &list);
  if (result != 0) throw InputError("--rendezvous", address + ": " + gai_strerror(result));
  return Addresses(list);
}

Descriptor open_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.number() < 0) throw InputError("--rendezvous", std::strerror(errno));
  return made;
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

void wait_readable(const Descriptor& socket, Deadline deadline) {
  while (true) {
    pollfd waiting{.fd = socket.number(), .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, milliseconds_until(deadline));
    if (ready > 0) return;
    if (ready == 0) {
      if (std::chrono::steady_clock::now() < deadline) continue;
      throw ChannelBroken("no answer in time");
    }
    if (errno != EINTR) throw ChannelBroken(std::strerror(errno));
  }
}

void keep_alive(const Descriptor& socket) {
  const int on = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

}  // namespace

Deadline in_seconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

void LineChannel::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const auto count =
        ::send(socket_.number(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw ChannelBroken(std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
}

std::string LineChannel::receive(Deadline deadline) {
  while (true) {
    const auto end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    wait_readable(socket_, deadline);
    std::array<char, 4096> piece{};
    const auto count = recv(socket_.number(), piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw ChannelBroken(std::strerror(errno));
    if (count == 0) throw ChannelBroken("the other process is gone");
    unread_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

Listener::Listener(const std::string& address) : socket_(open_socket()) {
  const auto addresses = resolve(address);
  const int on = 1;
  setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket_.number(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      listen(socket_.number(), 4096) != 0)
    throw InputError("--rendezvous", "cannot listen on " + address + ": " + std::strerror(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  std::array<char, NI_MAXSERV> port{};
  if (getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                  NI_NUMERICSERV) != 0)
    throw InputError("--rendezvous", "cannot tell the port of " + address);
  address_ = host_and_port(address).first + ":" + port.data();
}

LineChannel Listener::accept(Deadline deadline) {
  wait_readable(socket_, deadline);
  Descriptor connection = accept_now();
  if (connection.number() < 0) throw ChannelBroken(std::strerror(errno));
  return LineChannel(std::move(connection));
}

Descriptor Listener::accept_now() {
  Descriptor connection(accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.number() >= 0) keep_alive(connection);
  return connection;
}

Descriptor open_connection(const std::string& address, Deadline deadline) {
  const auto addresses = resolve(address);
  Descriptor made = open_socket();
  const int flags = fcntl(made.number(), F_GETFL);
  fcntl(made.number(), F_SETFL, flags | O_NONBLOCK);
  int error = connect(made.number(), addresses->ai_addr, addresses->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{.fd = made.number(), .events = POLLOUT, .revents = 0};
    int ready = 0;
    while ((ready = poll(&waiting, 1, milliseconds_until(deadline))) < 0 && errno == EINTR) {
    }
    socklen_t size = sizeof(error);
    if (ready <= 0 || getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = ETIMEDOUT;
  }
  if (error == ECONNREFUSED) throw ChannelBroken("nobody listens on " + address);
  if (error != 0) throw ChannelBroken(address + ": " + std::strerror(error));
  fcntl(made.number(), F_SETFL, flags);
  keep_alive(made);
  return made;
}

LineChannel connect_to(const std::string& address, Deadline deadline) {
  while (true) {
    try {
      return LineChannel(open_connection(address, deadline));
    } catch (const ChannelBroken&) {
      if (std::chrono::steady_clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace stepcast::calibrate
