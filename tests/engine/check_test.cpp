#include "engine/check.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("a mistake of the user says where, what and how to put it right") {
  const InputError error("run.toml:3", "bandwidth needs a unit", "e.g. \"50 GB/s\"");
  CHECK(std::string(error.what()) == "run.toml:3: bandwidth needs a unit, e.g. \"50 GB/s\"");
  CHECK(error.where() == "run.toml:3");
  CHECK(error.problem() == "bandwidth needs a unit");
  CHECK(error.hint() == "e.g. \"50 GB/s\"");
}

TEST_CASE("a mistake without a hint ends with what is wrong") {
  CHECK(std::string(InputError("--gpu", "is missing").what()) == "--gpu: is missing");
}

TEST_CASE("a promise that holds is silent and a broken one names its line") {
  CHECK_NOTHROW(expects(true));
  const std::string line = std::to_string(__LINE__ + 2);
  try {
    expects(false, "apples are green");
    FAIL("must throw");
  } catch (const BrokenPromise& broken) {
    CHECK_THAT(broken.what(), Catch::Contains("check_test.cpp:" + line));
    CHECK_THAT(broken.what(), Catch::Contains("apples are green"));
  }
  CHECK_THROWS_AS(ensures(false), BrokenPromise);
}
