#include "workloads/plan/low_precision.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::workloads;

namespace {

constexpr std::int64_t n = 128 * 128 * 64;

Precision of(Recipe recipe, bool hopper = false) {
  return {.recipe = recipe, .transposes = hopper};
}

std::int64_t cast_bytes(const Precision& p, OperandRole role, OperandCopies copies = {}) {
  std::int64_t sum = 0;
  for (const CastPass& pass : cast_passes(p, role, copies, n)) sum += pass.bytes;
  return sum;
}

}  // namespace

TEST_CASE("a cast reads 16 bits and writes each copy with its scales") {
  using enum OperandRole;
  // Per tensor: read 2, write 1; on Hopper a transposed copy as well.
  CHECK(cast_bytes(of(Recipe::fp8_delayed), input) == 3 * n);
  CHECK(cast_bytes(of(Recipe::fp8_delayed, true), input) == 4 * n);
  CHECK(cast_bytes(of(Recipe::fp8_delayed, true), input, {.columns = false}) == 3 * n);
  // The largest element first: 2 more.
  CHECK(cast_bytes(of(Recipe::fp8_current), gradient) == 5 * n);
  CHECK(cast_bytes(of(Recipe::fp8_current, true), gradient) == 6 * n);
  // 1 x 128 with 4 bytes of scale; weights 128 x 128.
  CHECK(cast_bytes(of(Recipe::fp8_block, true), input) == 4 * n + 2 * n * 4 / 128);
  CHECK(cast_bytes(of(Recipe::fp8_block, true), weight) == 4 * n + 2 * n * 4 / (128 * 128));
  // 1 x 32 with a byte, which a kernel of its own lays out: read and written once more.
  CHECK(cast_bytes(of(Recipe::mxfp8), input) == 4 * n + 2 * n / 32 + 4 * n / 32);
  // Half a byte and a sixteenth; the source is read for the scale, then for both copies.
  CHECK(cast_bytes(of(Recipe::nvfp4), gradient) == 4 * n + n + 2 * n / 16);
  CHECK(cast_bytes(of(Recipe::nvfp4), weight) == 4 * n + n + 2 * n / 16);
  CHECK(cast_bytes(of(Recipe::none), input) == 0);
}

TEST_CASE("products read what the recipe says, blocks on Blackwell microscaled operands") {
  Precision p = of(Recipe::fp8_block);
  CHECK(product_dtype(p) == Dtype::fp8_block);
  p.emulates_blocks = true;
  CHECK(product_dtype(p) == Dtype::mxfp8);
  CHECK(quantized_dtype(p) == Dtype::fp8_block);
  // Scales per 128 are spread to scales per 32 in each direction.
  CHECK(cast_bytes(p, OperandRole::input) == 4 * n + 2 * n * 4 / 128 + 2 * (n * 4 / 128 + n / 32));
  CHECK(product_dtype(of(Recipe::fp8_delayed)) == Dtype::fp8);
  CHECK(product_dtype(of(Recipe::nvfp4)) == Dtype::nvfp4);
  CHECK(product_dtype({}) == Dtype::bf16);
}

TEST_CASE("weights have one copy per tensor on Blackwell, two elsewhere") {
  const auto copies = [](const Precision& p) { return copies_bytes(p, OperandRole::weight, n); };
  CHECK(copies(of(Recipe::fp8_delayed)) == n);
  CHECK(copies(of(Recipe::fp8_delayed, true)) == 2 * n);
  CHECK(copies(of(Recipe::mxfp8)) == 2 * (n + n / 32));
  CHECK(copies(of(Recipe::nvfp4)) == 2 * (n / 2 + n / 16));
}

TEST_CASE("a gather of parameters moves a byte, half a byte, or for mxfp8 16 bits") {
  const AlikeLayers layer{
      {},
      {{"norm1", 64, false, true}, {"attention.qkv", n, true, false}, {"router", 32, true, true}},
      1};
  const auto gathered = [&](Recipe recipe, bool low) {
    Precision p = of(recipe);
    p.fp8_parameters = low;
    return gathered_bytes_of(p, layer) - 2 * (64 + 32);
  };
  CHECK(gathered(Recipe::fp8_current, false) == 2 * n);
  CHECK(gathered(Recipe::fp8_current, true) == n);
  CHECK(gathered(Recipe::mxfp8, true) == 2 * n);
  CHECK(gathered(Recipe::nvfp4, true) == n / 2 + n / 16);
  CHECK(quantized_elements_of(of(Recipe::mxfp8), layer) == n);
  AlikeLayers plain = layer;
  plain.kind.plain = true;
  CHECK(quantized_elements_of(of(Recipe::mxfp8), plain) == 0);
}
