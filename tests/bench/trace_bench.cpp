// Group whole: reading a trace of the PyTorch profiler, laid out as Kineto's output_json.cpp does:
// of each eight events one kernel. 250 MB; figures of bytes per second.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "validate/trace/records/events.hpp"

namespace stepcast::bench {
namespace {

constexpr std::string_view names[] = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_execute_"
    "segment",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false> >(Params)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
constexpr const char* collective =
    ",\n      \"Collective name\": \"_allgather_base\", \"In msg nelems\": 1048576, \"Out msg "
    "nelems\": 16777216, \"Group size\": 16, \"dtype\": \"BFloat16\", \"Process Group Name\": "
    "\"0\", \"Process Group Ranks\": \"[0, 1, 2, 3, 4, 5, 6, 7]\"";

/// A launch with the events around it.
std::string events(std::int64_t i) {
  const std::int64_t at = 1'763'750'000'123'456 + 20 * i;
  std::string out;
  for (const char* operation : {"aten::mul", "aten::linear", "aten::empty_strided"})
    out += fmt::format(
        ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 1000, "
        "\"tid\": "
        "1000,\n    \"ts\": {}.456, \"dur\": 5.123,\n    \"args\": {{\n      \"External id\": "
        "{},\"Record function id\": 0, \"Sequence number\": {}, \"Ev Idx\": {}\n    }}\n  }}",
        operation, at, i, i, i);
  out += fmt::format(
      ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
      "\"pid\": 1000, \"tid\": 1000,\n    \"ts\": {}.789, \"dur\": 4.012,\n    \"args\": {{\n      "
      "\"External id\": {}, \"cbid\": 211, \"correlation\": {}\n    }}\n  }}",
      at + 3, i, i);
  const std::size_t kind = static_cast<std::size_t>(i) % std::size(names);
  out += fmt::format(
      ",\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": 7,\n"
      "    \"ts\": {}.456, \"dur\": 17.{},\n    \"args\": {{\n      \"External id\": {},\n      "
      "\"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {},\n"
      "      \"registers per thread\": 32,\n      \"blocks per SM\": 15.515152,\n      \"grid\": "
      "[2048, 1, 1],\n      \"block\": [128, 1, 1]{}\n    }}\n  }}",
      names[kind], at + 50, 100 + i % 800, i, i, kind == 3 ? collective : "");
  for (const char* end : {"s", "f"})
    out += fmt::format(
        ",\n  {{\n    \"ph\": \"{}\", \"id\": {}, \"pid\": 1000, \"tid\": 1000, \"ts\": {}.456,\n  "
        "  "
        "\"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }}",
        end, i, at);
  return out;
}

void read_kineto(benchmark::State& state) {
  constexpr std::int64_t size = 250'000'000;
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("stepcast_bench_{}.json", ::getpid());
  std::int64_t written = 0;
  {
    std::ofstream file(path);
    file << "{\n  \"deviceProperties\": [{\"name\": \"NVIDIA H100 80GB HBM3\"}],\n  "
            "\"traceEvents\": [\n  {}";
    for (std::int64_t i = 0; written < size; ++i) {
      const std::string text = events(i);
      file << text;
      written += static_cast<std::int64_t>(text.size());
    }
    file << "\n  ]\n}\n";
  }
  for (auto _ : state) {
    validate::TraceFile file(path);
    benchmark::DoNotOptimize(validate::read_trace(path, file).kernels.size());
  }
  state.SetBytesProcessed(written * static_cast<std::int64_t>(state.iterations()));
  std::filesystem::remove(path);
}
BENCHMARK(read_kineto)->Name("whole/trace of 250 MB")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast::bench
