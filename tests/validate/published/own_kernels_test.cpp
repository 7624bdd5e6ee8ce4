#include "validate/published/own_kernels.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;
using namespace stepcast::validate;

TEST_CASE("a run of a source that measured kernels of the same GPU rests on its own neighbours") {
  sim::CalibrationTable table;
  sim::GemmRow row;
  row.gpu = "A100-SXM4-80GB";
  row.source = {"a profile", "github:lab/profiles@v1 gemm.csv", "high"};
  table.gemm.push_back(row);
  const OwnKernels own(table);
  CHECK(own.measured("github:lab/profiles@v2 training/README.md", "a100-sxm4-80gb"));
  CHECK_FALSE(own.measured("github:lab/profiles@v2 training/README.md", "h100-sxm5-80gb"));
  CHECK_FALSE(own.measured("github:lab/another README.md", "a100-sxm4-80gb"));
  table.gemm[0].source = table.gemm[0].source.with_confidence("low");
  CHECK_FALSE(OwnKernels(table).measured("github:lab/profiles x", "a100-sxm4-80gb"));
}
