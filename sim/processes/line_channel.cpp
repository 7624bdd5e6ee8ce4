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

namespace stepcast::sim {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& address) {
  const std::string host = host_in(address), port = port_in(address);
  if (!is_address(address) || host.empty() || port.empty())
    throw InputError("--rendezvous", "\"" + address + "\" is no address",
                     "write host:port, e.g. node1:41000");
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

/// Waits until poll() tells of one of them; false at the deadline.
bool wait_for(std::vector<pollfd> waiting, Deadline deadline) {
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    const int ready = poll(waiting.data(), waiting.size(),
                           static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw ChannelBroken(std::strerror(errno));
    if (ready == 0 && now >= deadline) return false;
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

bool wait_readable(const std::vector<int>& sockets, Deadline deadline) {
  std::vector<pollfd> waiting;
  for (const int socket : sockets)
    waiting.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  return wait_for(std::move(waiting), deadline);
}

void send_line(const Descriptor& socket, const std::string& line, Deadline deadline) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const auto count =
        send(socket.number(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      if (!wait_for({{.fd = socket.number(), .events = POLLOUT, .revents = 0}}, deadline))
        throw ChannelBroken("the other process does not listen");
    } else if (errno != EINTR) {
      throw ChannelBroken(std::strerror(errno));
    }
  }
}

std::string LineChannel::receive(Deadline deadline) {
  while (true) {
    if (auto whole = line()) return *whole;
    if (gone()) throw ChannelBroken("the other process is gone");
    if (!wait_readable({number()}, deadline)) throw ChannelBroken("no answer in time");
  }
}

std::optional<std::string> LineChannel::line() {
  std::array<char, 4096> piece{};
  while (!gone()) {
    const auto seen = recv(number(), piece.data(), piece.size(), MSG_PEEK | MSG_DONTWAIT);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0 && errno == EAGAIN) return std::nullopt;
    if (seen <= 0 || begun_.size() > longest_line_) {
      close();
      continue;
    }
    const auto end = std::find(piece.begin(), piece.begin() + seen, '\n');
    const bool whole = end != piece.begin() + seen;
    begun_.append(piece.begin(), end);
    recv(number(), piece.data(), static_cast<std::size_t>(end - piece.begin()) + (whole ? 1 : 0),
         MSG_DONTWAIT);  // it is there
    if (whole) return std::exchange(begun_, {});
  }
  return std::nullopt;
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
  address_ = host_in(address) + ":" + port.data();
}

LineChannel Listener::accept(Deadline deadline) {
  if (!wait_readable({socket_.number()}, deadline)) throw ChannelBroken("no answer in time");
  Descriptor connection = accept_now();
  if (connection.number() < 0) throw ChannelBroken(std::strerror(errno));
  return LineChannel(std::move(connection));
}

Descriptor Listener::accept_now() {
  Descriptor connection(accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.number() >= 0) keep_alive(connection);
  return connection;
}

bool is_address(const std::string& text) {
  return text.find(':') != std::string::npos && text.find('/') == std::string::npos;
}

std::string host_in(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::string port_in(const std::string& address) { return address.substr(address.rfind(':') + 1); }

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Descriptor open_connection(const std::string& address, Deadline deadline) {
  const auto addresses = resolve(address);
  Descriptor made = open_socket();
  const int flags = fcntl(made.number(), F_GETFL);
  fcntl(made.number(), F_SETFL, flags | O_NONBLOCK);
  int error = connect(made.number(), addresses->ai_addr, addresses->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    const bool ready = wait_for({{.fd = made.number(), .events = POLLOUT, .revents = 0}}, deadline);
    socklen_t size = sizeof(error);
    if (!ready || getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
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

}  // namespace stepcast::sim
