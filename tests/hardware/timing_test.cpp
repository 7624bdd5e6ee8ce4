#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/hardware/gpu.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using hardware::prepared;

namespace {

double median_seconds(Prepared& kernel, std::int64_t repetitions, Cache cache) {
  std::vector<double> samples;
  for (int i = 0; i < 11; ++i)
    samples.push_back(seconds(kernel.run(repetitions, cache).total) /
                      static_cast<double>(repetitions));
  std::nth_element(samples.begin(), samples.begin() + 5, samples.end());
  return samples[5];
}

}  // namespace

TEST_CASE("the time of a repetition does not depend on how many are timed together") {
  // Launch gaps would show here: 8 MiB are copied in a few microseconds.
  const auto copy = prepared(CopyTask{"memory", 8_MiB});
  REQUIRE(copy);
  const double few = median_seconds(*copy, 50, Cache::cold),
               many = median_seconds(*copy, 400, Cache::cold);
  CHECK(few == Approx(many).epsilon(0.1));
}

TEST_CASE("a copy within the cache is faster than one through memory") {
  const auto copy = prepared(CopyTask{"memory", 4_MiB});
  REQUIRE(copy);
  CHECK(median_seconds(*copy, 100, Cache::hot) < median_seconds(*copy, 100, Cache::cold));
}

TEST_CASE("two preparations of a product agree within 3 %") {
  const GemmTask task{.dtype = "fp16", .m = 4096, .n = 4096, .k = 4096};
  std::vector<double> times;
  for (int i = 0; i < 2; ++i) {
    const auto product = prepared(task);
    REQUIRE(product);
    median_seconds(*product, 50, Cache::cold);  // clocks settle
    times.push_back(median_seconds(*product, 50, Cache::cold));
  }
  CHECK(times[0] == Approx(times[1]).epsilon(0.03));
}

TEST_CASE("a launch costs the host between half a microsecond and fifty") {
  const auto launches = prepared(LaunchTask{});
  REQUIRE(launches);
  const double each = median_seconds(*launches, 1000, Cache::hot);
  CHECK(each > 0.5e-6);
  CHECK(each < 50e-6);
}

TEST_CASE("a product draws more power than nothing at all") {
  const auto idle = prepared(CopyTask{"idle", 1_MiB});
  const auto product = prepared(GemmTask{.dtype = "fp16", .m = 8192, .n = 8192, .k = 8192});
  REQUIRE(idle);
  REQUIRE(product);
  const double idle_watts = hardware::gpu().watts_of(*idle, 1.0);
  const double busy_watts = hardware::gpu().watts_of(*product, 1.0);
  if (idle_watts < 0) {
    WARN("this machine does not tell its power");
    return;
  }
  CHECK(busy_watts > 1.2 * idle_watts);
}

TEST_CASE("the device names itself and its libraries") {
  const auto facts = hardware::gpu().facts();
  CHECK_FALSE(facts.name.empty());
  CHECK(facts.name.find("NVIDIA") == std::string::npos);
  CHECK(facts.gemm_library.starts_with("cuBLASLt "));
  CHECK(facts.cache >= 1_MiB);
}
