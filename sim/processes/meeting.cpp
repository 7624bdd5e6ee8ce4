#include "sim/processes/meeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/printable.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t longest_line = 1 << 16;  // the addresses of 3000 ranks
constexpr double longest_silence_s = 5.0;
constexpr double longest_look_s = 0.5;  // some may be overdue by then

}  // namespace

std::string token_in_environment() {
  const char* value = std::getenv(token_variable);
  std::string token = value == nullptr ? "" : value;
  std::ranges::replace(token, ' ', '_');
  return token;
}

Environment environment_with_token(const std::string& token) { return {{token_variable, token}}; }

void check_token(const std::string& place, const std::string& token) {
  if (is_address(place) && token.empty())
    throw InputError("--rendezvous " + place, "is open to whoever knocks there",
                     std::string("give every node's command the same secret word in ") +
                         token_variable + ", or take a file that all nodes see");
}

std::string reached_here(const std::string& address) {
  return host_in(address) == host_name() ? "127.0.0.1:" + port_in(address) : address;
}

std::string host_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  if (getpeername(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    throw ChannelBroken(std::strerror(errno));
  return host.data();
}

Guest::Guest(Descriptor socket)
    : channel(std::move(socket), longest_line), until_(in_seconds(longest_silence_s)) {}

std::string Guest::heard() const {
  std::string text = channel.begun().substr(0, 40);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '.');
  return text;
}

bool Guest::is_overdue() const { return std::chrono::steady_clock::now() >= until_; }

Door::Door(Listener& listener, std::string program, std::string wanted)
    : listener_(listener), program_(std::move(program)), wanted_(std::move(wanted)) {
  // A caller may be gone again between poll and accept.
  fcntl(listener.number(), F_SETFL, fcntl(listener.number(), F_GETFL) | O_NONBLOCK);
}

void Door::open(Deadline deadline, const std::vector<int>& others, const Enter& enter) {
  std::vector<int> sockets = others;
  sockets.push_back(listener_.number());
  for (const Guest& guest : guests_) sockets.push_back(guest.channel.number());
  wait_readable(sockets, std::min(deadline, in_seconds(longest_look_s)));
  while (true) {
    Descriptor connection = listener_.accept_now();
    if (connection.number() < 0) break;
    guests_.emplace_back(std::move(connection));
  }
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const auto line = guest->channel.line();
    if (line)
      hear(*guest, *line, enter);
    else if (guest->channel.gone() || guest->is_overdue())
      wonder(guest->heard());
    guest = line || guest->channel.gone() || guest->is_overdue() ? guests_.erase(guest)
                                                                 : std::next(guest);
  }
}

void Door::hear(Guest& guest, const std::string& line, const Enter& enter) {
  try {
    const Answer answer = enter(line, guest);
    if (!answer) return wonder(line.substr(0, 40));
    if (!answer->empty()) guest.channel.send("refused " + *answer);
  } catch (const ChannelBroken&) {  // it has gone meanwhile
  }
}

/// Once: it may be a scanner.
void Door::wonder(const std::string& said) {
  if (std::exchange(wondered_, true) || said.empty()) return;
  tell(stderr, fmt::format("{}: warning: something else than {} knocked at {}: \"{}\"\n", program_,
                           wanted_, listener_.address(), said));
}

}  // namespace stepcast::sim
