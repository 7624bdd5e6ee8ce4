#include "validate/compare/kernels.hpp"

#include <catch2/catch.hpp>

#include "tests/validate/measured_csv.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

const std::string header =
    "gpu,kind,shape_or_bytes,dtype,value,unit,source,url_or_repo_path,confidence,implementation,"
    "data\n";

/// A product on an H100 at this rate; `reference` has measured it.
std::string gemm(int size, double tflops, const std::string& reference) {
  const std::string n = std::to_string(size);
  return "H100-SXM5-80GB,gemm,m=" + n + ";n=" + n + ";k=" + n + ",bf16," + std::to_string(tflops) +
         ",TFLOP/s,s," + reference + ",high,,random\n";
}

Comparison compare(const std::string& text, LeaveOut leave_out = LeaveOut::source) {
  return compare_kernels("x.csv", rows_of(header + text), {}, catalogue(), leave_out);
}

}  // namespace

TEST_CASE("a product is not predicted from its own source where there is another") {
  // Both sources measured one shape, a at 700, b at 350: each is predicted as the other has it.
  const Comparison out = compare(gemm(4096, 700, "github:a/a x") + gemm(4096, 350, "github:b/b x"));
  REQUIRE(out.rows.size() == 2);
  CHECK(out.rows[0].error() == Approx(1.0));
  CHECK(out.rows[1].error() == Approx(-0.5));
  CHECK(out.rows[0].group.back() == "source");
}

TEST_CASE("where a GPU has one source, only the shape is left out, and the group says so") {
  const std::string text = gemm(4096, 700, "github:a/a x") + gemm(8192, 350, "github:a/a y");
  const Comparison out = compare(text);
  for (const ComparedRow& row : out.rows) {
    CHECK(row.group.back() == "shape");
    CHECK(row.provenance != "measured");
    CHECK(std::abs(row.error()) > 0.2);  // the other row says something else
  }
}

TEST_CASE("leaving out the shape sees the other shapes of the same source") {
  const std::string text = gemm(4096, 350, "github:a/a x") + gemm(4100, 350, "github:a/a x") +
                           gemm(512, 300, "github:b/b x");
  const double shape = std::abs(compare(text, LeaveOut::shape).rows[0].error());
  const double source = std::abs(compare(text, LeaveOut::source).rows[0].error());
  INFO(shape << " without the shape, " << source << " without the source");
  CHECK(shape < 0.15);
  CHECK(source > 2 * shape);
}

TEST_CASE("forward and backward together are compared as one time") {
  const auto row = [](const char* kind, double rate, const char* reference) {
    return std::string("H100-SXM5-80GB,") + kind + ",b=2;h=16;s=4096;d=128;causal=1,bf16," +
           std::to_string(rate) + ",TFLOP/s,s," + reference + ",high,flash2,\n";
  };
  // 1 FLOP at 400 and 2.5 at 300 take 1/400 + 2.5/300; as one rate 3.5 / that = 323.08.
  const Comparison out = compare(row("attention_fwd_bwd", 323.0769, "github:a/a x") +
                                 row("attention_fwd", 400, "github:b/b x") +
                                 row("attention_bwd", 300, "github:b/b x"));
  CHECK(out.rows[0].error() == Approx(0).margin(0.01));
}

TEST_CASE("kernels that cannot be predicted are kept with their reason") {
  const auto reason = [](const std::string& line) { return compare(line).rows[0].not_scored; };
  CHECK(reason("H800-SXM,gemm,m=64;n=64;k=64,fp16,9,TFLOP/s,s,r,high,,\n") ==
        "H800-SXM is not in the catalogue");
  CHECK(reason("H100-SXM5,gemm,m=64;n=64;k=64,fp16,9,TFLOP/s,s,r,high,,zeros\n") ==
        "a product of zeros");
  CHECK(reason("H100-SXM5,attention_fwd,b=1;h=8;s=512;d=64;causal=unknown,fp16,9,TFLOP/s,s,r,high,"
               "flash2,\n") == "mask not stated");
  CHECK(reason("H100-SXM5,gemm,m=64;n=64;k=64,fp16,9,TFLOP/s,s,r,low,,\n") == "low confidence");
}
