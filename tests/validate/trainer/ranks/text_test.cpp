#include "validate/trainer/ranks/text.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "engine/check.hpp"

namespace stepcast::validate {

TEST_CASE("the global batch of a step is the same however it is cut over ranks and micro-batches") {
  const Text text = text_of(generated_text(20000), 300);
  const auto batch_of = [&](std::int64_t replicas, std::int64_t micro_batches, std::int64_t size) {
    std::vector<Token> inputs;
    for (std::int64_t d = 0; d < replicas; ++d)
      for (std::int64_t m = 0; m < micro_batches; ++m) {
        const Samples part = samples_of(text, {size, micro_batches, 16}, 5, d, m);
        inputs.insert(inputs.end(), part.inputs.begin(), part.inputs.end());
      }
    return inputs;
  };
  const auto alone = batch_of(1, 1, 8);
  CHECK(alone.size() == 8 * 16);
  CHECK(batch_of(2, 2, 2) == alone);
  CHECK(batch_of(4, 1, 2) == alone);
  CHECK(samples_of(text, {8, 1, 16}, 6, 0, 0).inputs != alone);
}

TEST_CASE("targets are the inputs one token later") {
  const Text text = text_of(generated_text(5000), 256);
  const Samples samples = samples_of(text, {3, 1, 32}, 0, 0, 0);
  REQUIRE(samples.targets.size() == 96);
  for (std::size_t i = 0; i < 96; ++i)
    if (i % 32 != 31) CHECK(samples.targets[i] == samples.inputs[i + 1]);
}

TEST_CASE("a larger vocabulary merges frequent pairs, and all tokens are below it") {
  const std::string bytes = generated_text(20000);
  const Text plain = text_of(bytes, 256), large = text_of(bytes, 400), tiny = text_of(bytes, 50);
  CHECK(plain.tokens.size() == bytes.size());
  CHECK(large.tokens.size() < bytes.size() / 2);
  CHECK(*std::ranges::max_element(large.tokens) == 399);
  CHECK(*std::ranges::max_element(tiny.tokens) < 50);
  CHECK(std::set(large.tokens.begin(), large.tokens.end()).size() > 100);
}

TEST_CASE("a text that is missing or shorter than a sequence is the user's mistake") {
  CHECK_THROWS_AS(read_text("/nowhere/text", 256), InputError);
  CHECK_THROWS_AS(samples_of(text_of("short", 256), {1, 1, 16}, 0, 0, 0), InputError);
}

TEST_CASE("documents of this repository can be read") {
  const Text text = read_text(STEPCAST_SOURCE_DIR "/README.md", 1024);
  CHECK(text.tokens.size() > 2000);
  CHECK(*std::ranges::max_element(text.tokens) < 1024);
}

}  // namespace stepcast::validate
