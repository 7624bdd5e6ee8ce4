#pragma once

#include <cuda_runtime_api.h>

#include <functional>

/// Does the job when those before it on the stream are done.
void on_stream(cudaStream_t stream, std::function<void()> job);
