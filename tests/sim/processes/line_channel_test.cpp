#include "sim/processes/line_channel.hpp"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

std::array<Descriptor, 2> pair() {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void put(const Descriptor& socket, const std::string& text) {
  REQUIRE(send(socket.number(), text.data(), text.size(), 0) == std::ssize(text));
}

}  // namespace

TEST_CASE("lines come one by one, however they were cut into pieces") {
  auto [here, there] = pair();
  LineChannel channel(std::move(here));
  CHECK_FALSE(channel.line());
  put(there, "one\ntwo\nthr");
  CHECK(channel.line() == "one");
  CHECK(channel.line() == "two");
  CHECK_FALSE(channel.line());
  CHECK(channel.begun() == "thr");
  put(there, "ee\n\n");
  CHECK(channel.receive(in_seconds(5)) == "three");
  CHECK(channel.line()->empty());
  const std::string longer(100'000, 'x');
  LineChannel(std::move(there)).send(longer);
  CHECK(channel.receive(in_seconds(5)) == longer);
  CHECK_THROWS_WITH(channel.receive(in_seconds(5)), "the other process is gone");
}

TEST_CASE("what follows a line is left to whoever gets the socket") {
  auto [here, there] = pair();
  put(there, "hello\nbytes");
  LineChannel channel(std::move(here));
  CHECK(channel.line() == "hello");
  const Descriptor socket = channel.release();
  std::array<char, 16> rest{};
  REQUIRE(recv(socket.number(), rest.data(), rest.size(), MSG_DONTWAIT) == 5);
  CHECK(std::string(rest.data()) == "bytes");
}

TEST_CASE("a line without end counts as gone") {
  auto [here, there] = pair();
  LineChannel channel(std::move(here), 1000);
  put(there, std::string(20'000, 'x'));
  CHECK_FALSE(channel.line());
  CHECK(channel.gone());
}

TEST_CASE("no wait is without an end") {
  auto [here, there] = pair();
  LineChannel channel(std::move(here));
  CHECK_THROWS_WITH(channel.receive(in_seconds(0.05)), "no answer in time");
  CHECK_FALSE(wait_readable({channel.number(), -1}, in_seconds(0.05)));
  CHECK_THROWS_WITH(send_line(there, std::string(10'000'000, 'x'), in_seconds(0.05)),
                    "the other process does not listen");
}

TEST_CASE("an address is a host and a port") {
  CHECK(is_address("node1:41000"));
  CHECK_FALSE(is_address("/shared/run"));
  CHECK_FALSE(is_address("run"));
  CHECK(host_in("node1:41000") == "node1");
  CHECK(port_in("node1:41000") == "41000");
  for (const char* wrong : {"node1", ":41000", "node1:"})
    CHECK_THROWS_WITH(Listener(wrong), Catch::Contains("is no address"));
}

TEST_CASE("who connects is heard") {
  Listener listener("127.0.0.1:0");
  LineChannel caller = connect_to(listener.address(), in_seconds(5));
  caller.send("hello");
  LineChannel callee = listener.accept(in_seconds(5));
  CHECK(callee.receive(in_seconds(5)) == "hello");
  CHECK_THROWS_WITH(listener.accept(in_seconds(0.05)), "no answer in time");
}

}  // namespace stepcast::sim
