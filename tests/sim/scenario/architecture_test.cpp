// Architectures: files of the catalogue, or of one's own.
#include <catch2/catch.hpp>
#include <fstream>

#include "engine/check.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/kernels/sustained.hpp"
#include "tests/own_folder.hpp"
#include "tests/sim/architectures.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::Catalogue;

namespace {

const Catalogue& shipped() {
  static const Catalogue one(STEPCAST_SOURCE_DIR "/scenarios");
  return one;
}

}  // namespace

TEST_CASE("every architecture is read and says where its figures are from") {
  for (const std::string& name : shipped().names("architectures")) {
    INFO(name);
    CHECK(shipped().architecture(name, "test").name == name);
    CHECK(!shipped().sources("architectures", name).empty());
  }
}

TEST_CASE("every GPU of the catalogue names one, and no other entry's figures move with it") {
  for (const sim::GpuIdentity& one : shipped().gpus().all()) {
    INFO(one.gpu.name);
    CHECK(one.gpu.architecture == sim::architecture(one.gpu.architecture.name));
    CHECK(sim::sustained_share(one.gpu) <= 1.0);
  }
}

TEST_CASE("an architecture of one's own lies beside the GPU's file") {
  const std::string folder = tests::own_folder().string(), path = folder + "/mine.toml";
  std::ofstream(path) << "nccl = \"ampere\"\nproduct_reach = 0.5\nattention_reach = 0.3\n"
                         "tile_columns = 64\n";
  const auto mine = shipped().architecture("mine.toml", folder + "/card.toml:3");
  CHECK(mine.name == path);
  CHECK(mine.product_reach == 0.5);
  CHECK(sim::gemm_tiles({128, 128, 128, 1}, mine) == 2);
}

TEST_CASE("where nobody has measured, products take the architecture's share of the peak") {
  topology::GpuSpec gpu{.name = "nobody-has",
                        .architecture = sim::architecture("hopper"),
                        .sms = 132,
                        .tensor_peak = FlopsPerSecond(1e15)};
  const auto seconds_at = [&](double reach) {
    gpu.architecture.product_reach = reach;
    return seconds(
        sim::GemmTimes({}, gpu).time_of({8192, 8192, 8192, 1}, workloads::Dtype::bf16)->duration);
  };
  CHECK(seconds_at(0.4) == Approx(2 * seconds_at(0.8)).epsilon(0.01));
}

TEST_CASE("all keys that an entry lacks are named at once") {
  const std::string path = (tests::own_folder() / "card.toml").string();
  std::ofstream(path) << "architecture = \"hopper\"\nsms = 10\n";
  CHECK_THROWS_WITH(shipped().gpu(sim::toml_text(path, "test")),
                    Catch::Contains("tensor_peak") && Catch::Contains("memory_bandwidth") &&
                        Catch::Contains("tdp"));
}
