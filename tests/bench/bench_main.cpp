// Times are CPU time of one core; a case of the group "whole" also carries its peak memory. Results
// are worth keeping only with machine, commit and date.
#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (benchmark::RunSpecifiedBenchmarks() == 0) return 2;  // a filter that matches nothing
  return 0;
}
