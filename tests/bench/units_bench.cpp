// Group frequent: the arithmetic that every event does.
#include <benchmark/benchmark.h>

#include "engine/units.hpp"

namespace stepcast {
namespace {

void bytes_over_rate(benchmark::State& state) {
  Bytes message = 1_MiB;
  BytesPerSecond rate = 450_GBps;
  for (auto _ : state) {
    benchmark::DoNotOptimize(message);
    benchmark::DoNotOptimize(rate);
    benchmark::DoNotOptimize(message / rate);
  }
}
BENCHMARK(bytes_over_rate)->Name("frequent/bytes over rate, rounded to a picosecond");

}  // namespace
}  // namespace stepcast
