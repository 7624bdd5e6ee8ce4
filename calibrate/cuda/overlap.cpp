#include "calibrate/cuda/overlap.hpp"

#include <algorithm>

#include "calibrate/kernels/check.hpp"

namespace stepcast::calibrate {
namespace {

Duration between(const Event& start, const Event& stop) {
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()));
  return to_duration(static_cast<double>(milliseconds) * 1e-3);
}

}  // namespace

Overlap::Overlap(CudaTask& kernel, NcclCollective& collective, NcclRank& rank)
    : kernel_(kernel), collective_(collective), rank_(rank), stream_(make_stream()) {}

OverlapTimes Overlap::alone(std::int64_t repetitions) {
  const Event start = make_event(), stop = make_event();
  CUDA_TRY(cudaEventRecord(start.get(), stream_.get()));
  for (std::int64_t i = 0; i < repetitions; ++i)
    kernel_.launch_on(stream_.get(), i % kernel_.num_sets());
  CUDA_TRY(cudaEventRecord(stop.get(), stream_.get()));
  CUDA_TRY(cudaEventSynchronize(stop.get()));
  return {.kernel = between(start, stop) / repetitions,
          .collective = collective_.run(repetitions) / repetitions};
}

OverlapTimes Overlap::together(std::int64_t num_kernels, std::int64_t num_collectives) {
  const Event start = make_event(), stop = make_event();
  std::vector<Event> ends;
  rank_.barrier();
  for (std::int64_t i = 0; i < num_collectives; ++i) {
    collective_.launch();
    ends.push_back(make_event());
    CUDA_TRY(cudaEventRecord(ends.back().get(), rank_.stream()));
    if (i == 0) {
      CUDA_TRY(cudaStreamWaitEvent(stream_.get(), ends.front().get(), 0));
      CUDA_TRY(cudaEventRecord(start.get(), stream_.get()));
    }
    // In turn, so that neither stream waits for the host, and all kernels in the first half.
    const auto launched_before = [&](std::int64_t collective) {
      return std::min(num_kernels, 2 * collective * num_kernels / num_collectives);
    };
    for (std::int64_t k = launched_before(i); k < launched_before(i + 1); ++k)
      kernel_.launch_on(stream_.get(), k % kernel_.num_sets());
  }
  CUDA_TRY(cudaEventRecord(stop.get(), stream_.get()));
  CUDA_TRY(cudaEventSynchronize(stop.get()));
  CUDA_TRY(cudaStreamSynchronize(rank_.stream()));
  const Duration kernels = between(start, stop);
  if (between(start, ends.back()) < kernels)
    throw Unsupported("the collectives ended before the kernels");
  Duration collectives{};
  std::int64_t num_beside = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    if (between(start, ends[i]) > kernels) break;
    collectives = between(ends.front(), ends[i]);
    num_beside = static_cast<std::int64_t>(i);
  }
  if (num_beside == 0) throw Unsupported("no collective ended while the kernels ran");
  return {.kernel = kernels / num_kernels, .collective = collectives / num_beside};
}

}  // namespace stepcast::calibrate
