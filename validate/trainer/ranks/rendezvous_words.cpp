#include "validate/trainer/ranks/rendezvous_words.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace stepcast::validate {
namespace {

constexpr std::size_t longest_line = 1 << 16;  // the addresses of 3000 ranks
constexpr double longest_silence_s = 5.0;

}  // namespace

Guest::Guest(calibrate::Descriptor socket)
    : socket_(std::move(socket)), until_(calibrate::in_seconds(longest_silence_s)) {}

/// One by one, as what comes behind the line belongs to whoever gets the connection.
std::optional<std::string> Guest::line() {
  for (;;) {
    char next = 0;
    const ssize_t count = recv(socket_.number(), &next, 1, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (count <= 0 || text_.size() > longest_line) {
      gone_ = true;
      return std::nullopt;
    }
    if (next == '\n') return std::exchange(text_, {});
    text_ += next;
  }
}

std::string Guest::line(calibrate::Deadline deadline) {
  for (;;) {
    if (auto whole = line()) return *whole;
    if (gone_) throw calibrate::ChannelBroken("the other process is gone");
    if (std::chrono::steady_clock::now() >= deadline)
      throw calibrate::ChannelBroken("no answer in time");
    wait_for_any({socket_.number()}, deadline);
  }
}

std::string Guest::heard() const {
  std::string text = text_.substr(0, 40);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '.');
  return text;
}

bool Guest::is_overdue() const { return std::chrono::steady_clock::now() >= until_; }

void say(const calibrate::Descriptor& socket, const std::string& line) {
  const std::string text = line + "\n";  // fits a fresh socket's buffer
  if (send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(text.size()))
    throw calibrate::ChannelBroken(std::strerror(errno));
}

void wait_for_any(const std::vector<int>& sockets, calibrate::Deadline deadline) {
  std::vector<pollfd> waiting;
  for (const int socket : sockets)
    waiting.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  poll(waiting.data(), waiting.size(),
       static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 500)));
}

std::string host_of(const calibrate::Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  if (getpeername(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    throw calibrate::ChannelBroken(std::strerror(errno));
  return host.data();
}

}  // namespace stepcast::validate
