#include "validate/trainer/ranks/rendezvous_words.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <utility>

namespace stepcast::validate {
namespace {

constexpr std::size_t longest_line = 1 << 16;  // the addresses of 3000 ranks
constexpr double longest_silence_s = 5.0;

}  // namespace

Guest::Guest(sim::Descriptor socket)
    : channel(std::move(socket), longest_line), until_(sim::in_seconds(longest_silence_s)) {}

std::string Guest::heard() const {
  std::string text = channel.begun().substr(0, 40);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '.');
  return text;
}

bool Guest::is_overdue() const { return std::chrono::steady_clock::now() >= until_; }

std::optional<RankCall> call_in(const std::string& line) {
  std::istringstream words(line);
  RankCall call;
  words >> call.program >> call.version >> call.verb >> call.token;
  if (call.verb == "join") words >> call.ranks >> call.rank >> call.port;
  if (call.verb == "peer") words >> call.rank;
  if (!words || call.program != protocol_name || (call.verb != "join" && call.verb != "peer"))
    return std::nullopt;
  for (std::string term; words >> term;) {
    const auto end = term.find('=');
    if (end == std::string::npos) return std::nullopt;
    call.terms[term.substr(0, end)] = term.substr(end + 1);
  }
  return call;
}

std::string host_of(const sim::Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  if (getpeername(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    throw sim::ChannelBroken(std::strerror(errno));
  return host.data();
}

}  // namespace stepcast::validate
