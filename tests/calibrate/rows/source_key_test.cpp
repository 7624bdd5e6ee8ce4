#include "calibrate/rows/source_key.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

std::string key(const std::string& reference) {
  return calibrate::source_key({"", reference, "high"});
}

}  // namespace

TEST_CASE("files and versions of one repository are one source") {
  CHECK(key("github:NVIDIA/cudnn-frontend@v1.5.0 benchmark/a.csv") ==
        "github:NVIDIA/cudnn-frontend");
  CHECK(key("github:NVIDIA/cudnn-frontend other/b.csv") == "github:NVIDIA/cudnn-frontend");
  CHECK(key("https://example.com/page#table") == "https://example.com/page");
}

TEST_CASE("pages and documents are sources of their own") {
  CHECK(key("https://example.com/issues/1") != key("https://example.com/issues/2"));
  CHECK(key("2 x DGX H100 log") == "2 x DGX H100 log");
  CHECK(key("arxiv.org/abs/2411.13055") == "arxiv.org/abs/2411.13055");
}

TEST_CASE("all rows of a source go, and no other") {
  std::vector<sim::CollectiveRow> rows(3);
  rows[0].source = {"", "github:a/b one.csv", "high"};
  rows[1].source = {"", "github:a/c one.csv", "high"};
  rows[2].source = {"", "github:a/b two.csv", "high"};
  const auto left = calibrate::without_source(rows, "github:a/b");
  REQUIRE(left.size() == 1);
  CHECK(left[0] == rows[1]);
}
