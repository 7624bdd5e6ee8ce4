#include "sim/scripts/python_literals.hpp"

#include <catch2/catch.hpp>

using namespace stepcast::sim;

TEST_CASE("named arguments that are literals, whatever stands around them") {
  const auto calls = python_calls_of(
      "a = 3\nif a == 4:\n    b = 'x(1, 2)'\n"
      "out = module.call(b, one=a, two=other(a, one=5), three=\"#, )\", four=1e-4, five=f(x),\n"
      "                  six=[1, 2],  # seven=7\n                  one=9)\ncall(",
      {"call", "other"});
  REQUIRE(calls.size() == 3);
  const Settings& first = calls[0].arguments;
  CHECK(*first.find("0") == "x(1, 2)");
  CHECK(*first.find("one") == "3");
  CHECK(*first.find("three") == "#, )");
  CHECK(*first.find("four") == "1e-4");
  CHECK(*first.find("six") == "[1, 2]");
  for (const char* name : {"two", "five", "seven"}) CHECK(first.find(name) == nullptr);
  CHECK(calls[1].function == "other");
  CHECK(*calls[1].arguments.find("one") == "5");
  CHECK(calls[2].arguments.empty());
}

TEST_CASE("a text of brackets alone is read in its length") {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "call(\n";
  CHECK(python_calls_of(deep, {"call"}).size() == 256);
  CHECK(python_calls_of(std::string(200'000, '"') + std::string(200'000, '\n'), {"call"}).empty());
}
