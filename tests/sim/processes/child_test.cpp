#include "sim/processes/child.hpp"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

ChildPlan shell(const std::string& script) {
  return {.words = {"sh", "-c", script}, .in = Stream::channel, .out = Stream::channel};
}

}  // namespace

TEST_CASE("a child is talked to where its streams lead to the channel") {
  ChildPlan plan = shell("read word; echo \"$word $MORE\"; echo error >&2");
  plan.environment = {{"MORE", "more"}};
  plan.errors = Stream::channel;
  Child child(plan);
  CHECK(child.running());
  child.channel().send("said");
  CHECK(child.channel().receive(in_seconds(20)) == "said more");
  CHECK(child.channel().receive(in_seconds(20)) == "error");
  CHECK_THROWS_AS(child.channel().receive(in_seconds(20)), ChannelBroken);
  CHECK(child.wait() == 0);
}

TEST_CASE("a stream that leads nowhere is at its end and swallows all") {
  ChildPlan plan = shell("read word || echo nothing; echo lost >&2");
  plan.in = plan.errors = Stream::nowhere;
  Child child(plan);
  CHECK(child.channel().receive(in_seconds(20)) == "nothing");
  CHECK_THROWS_WITH(child.channel().receive(in_seconds(20)), "the other process is gone");
}

TEST_CASE("how a child ended is told, also by which signal") {
  Child seven(shell("exit 7"));
  CHECK(WEXITSTATUS(seven.wait()) == 7);
  CHECK_FALSE(seven.running());
  Child asked(shell("exec sleep 100"));
  CHECK(asked.status() == std::nullopt);
  asked.ask_to_end();
  CHECK(WTERMSIG(asked.wait()) == SIGTERM);
}

TEST_CASE("a program that cannot be started is refused at once, with the reason") {
  CHECK_THROWS_WITH(Child({.words = {"no-such-program"}}),
                    "no-such-program: cannot be started: it is not on PATH");
  CHECK_THROWS_WITH(Child({.words = {"/nowhere/worker"}}), Catch::Contains("No such file"));
  CHECK_THROWS_WITH(Child({.words = {"/etc/passwd"}}), Catch::Contains("Permission denied"));
  CHECK(become({"no-such-program"}) == "No such file or directory");
}

TEST_CASE("a child apart is ended with what it has started") {
  ChildPlan plan = shell("sleep 100 & echo there; wait");
  plan.apart = true;
  std::optional<Child> child(std::in_place, plan);
  CHECK(child->channel().receive(in_seconds(20)) == "there");
  LineChannel channel = std::move(child->channel());  // whose other end both of them hold
  child.reset();
  CHECK_THROWS_WITH(channel.receive(in_seconds(20)), "the other process is gone");
}

TEST_CASE("what a program says first") {
  CHECK(first_line_of({"printf", "3.1\\nmore"}) == "3.1");
  CHECK(first_line_of({"true"}).empty());
  CHECK(first_line_of({"no-such-program"}).empty());
}

}  // namespace stepcast::sim
