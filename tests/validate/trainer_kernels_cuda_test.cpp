#include <catch2/catch.hpp>

#include "tests/validate/emulated_device.hpp"
#include "tests/validate/kernel_cases.hpp"

namespace stepcast::validate {
namespace {

#define STEPCAST_GPU_CASE(claim) TEMPLATE_TEST_CASE("emulated, " claim, "", Bfloat16, Half)

STEPCAST_GPU_CASE("numbers travel and are rounded to nearest even") {
  check_numbers<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("memory is counted as it is handed out") {
  check_memory<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("products are the host's") { check_products<TestType>(make_emulated_kernels); }

STEPCAST_GPU_CASE("attention is the host's") {
  for (const AttentionCase& c :
       {AttentionCase{1, 130, 2, 1, 64, true}, AttentionCase{2, 33, 2, 2, 128, true},
        AttentionCase{1, 70, 4, 2, 64, false}, AttentionCase{3, 16, 1, 1, 64, true}})
    check_attention<TestType>(make_emulated_kernels, c);
}

STEPCAST_GPU_CASE("norms are the host's") {
  check_norm<TestType>(make_emulated_kernels, 9, 64);
  check_norm<TestType>(make_emulated_kernels, 5, 100);
  check_norm<TestType>(make_emulated_kernels, 33, 31);
}

STEPCAST_GPU_CASE("sums and SwiGLU are the host's") {
  check_elements<TestType>(make_emulated_kernels, 5 * 72, 0);
  check_elements<TestType>(make_emulated_kernels, 2051, 0);
  check_elements<TestType>(make_emulated_kernels, 100, 1);
}

STEPCAST_GPU_CASE("rotary positions are the host's") {
  check_rope<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("pieces are copied, whatever their sizes, types and places") {
  check_copies<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("the embedding and its gradient are the host's, also of a part of the rows") {
  for (const VocabularyPart& part : {VocabularyPart{0, 11}, VocabularyPart{4, 5}}) {
    check_embedding<TestType>(make_emulated_kernels, 5, 64, part);
    check_embedding<TestType>(make_emulated_kernels, 290, 33, part);
    check_embedding<TestType>(make_emulated_kernels, 40, 2072, part);
  }
}

STEPCAST_GPU_CASE("the loss and its gradient are the host's, also of cut rows") {
  check_loss<TestType>(make_emulated_kernels, 5, 64);
  check_loss<TestType>(make_emulated_kernels, 37, 301);
}

STEPCAST_GPU_CASE("the norm of many gradients, its clipping and scaling are the host's") {
  check_norm_of_gradients<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("gradients that are not finite are found") {
  check_unscale<TestType>(make_emulated_kernels);
}

STEPCAST_GPU_CASE("AdamW is the host's") { check_adamw<TestType>(make_emulated_kernels); }

}  // namespace
}  // namespace stepcast::validate
