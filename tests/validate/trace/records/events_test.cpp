#include "validate/trace/records/events.hpp"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "engine/check.hpp"
#include "tests/validate/trace_writer.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;

namespace {

std::string small_trace() {
  TraceWriter writer(1, 2);
  writer.mark("user_annotation", 5, 10, 100);
  writer.launch(12, 41);
  writer.kernel("nvjet_hsh_128x256", 20.125, 30.5, 7, "", 41);
  writer.collective("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    60, 5, "3",
                    ", \"Collective name\": \"allreduce\", \"In msg nelems\": 1024, \"Out msg "
                    "nelems\": 1024, \"Group size\": 2, \"dtype\": \"BFloat16\"");
  return writer.text();
}

/// In the error's words; "read" for none.
std::string refusal(const std::string& bytes) {
  try {
    read_text(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

std::string zipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<unsigned char> out(text.size() + 1000);
  std::vector<unsigned char> in(text.begin(), text.end());
  stream.next_in = in.data();
  stream.avail_in = static_cast<unsigned>(in.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  const std::string packed(out.begin(),
                           out.begin() + static_cast<std::ptrdiff_t>(stream.total_out));
  deflateEnd(&stream);
  return packed;
}

}  // namespace

TEST_CASE("what the profiler says of GPU, NCCL and process groups") {
  // As torch/profiler/profiler.py (_get_distributed_info) and Kineto's output_json.cpp write them.
  const RankTrace trace = read_text(
      "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\", "
      "\"numSms\": 132}, {\"id\": 1, \"name\": \"NVIDIA H200\", \"numSms\": 132}], "
      "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 16, \"pg_count\": "
      "2, \"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": "
      "\"cuda:nccl\", \"pg_size\": 16, \"ranks\": [0, 1]}, {\"pg_name\": \"5\", \"pg_desc\": "
      "\"mesh_tp\", \"backend_config\": \"cuda:nccl\", \"pg_size\": 2, \"ranks\": [2, 3]}], "
      "\"nccl_version\": \"2.21.5\"}, \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", "
      "\"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 2}]}");
  CHECK(trace.gpu == "NVIDIA H200");
  CHECK(trace.devices == 2);
  CHECK(trace.rank == 3);
  CHECK(trace.world_size == 16);
  CHECK(trace.nccl == "2.21.5");
  REQUIRE(trace.groups.size() == 2);
  CHECK(trace.groups[1].description == "mesh_tp");
  CHECK(trace.groups[1].size == 2);
}

TEST_CASE("a trace is read: kernels, marks, launches, and what the profiler says of a collective") {
  const RankTrace trace = read_text(small_trace());
  CHECK(trace.rank == 1);
  CHECK(trace.world_size == 2);
  CHECK(trace.gpu == "NVIDIA H100 80GB HBM3");
  REQUIRE(trace.kernels.size() == 2);
  CHECK(trace.name_of(trace.kernels[0]).text == "nvjet_hsh_128x256");
  // Times count from the first event, the mark at 10 us.
  CHECK(trace.kernels[0].begin == Time(10'125_ns));
  CHECK(trace.kernels[0].duration == 30'500_ns);
  CHECK(trace.kernels[0].stream == 7);
  CHECK(trace.kernels[0].facts == -1);
  REQUIRE(trace.kernels[1].facts == 0);
  const CollectiveFacts& facts = trace.facts[0];
  CHECK(facts.group == "3");
  CHECK(facts.members == "[0, 1]");
  CHECK(facts.collective == "allreduce");
  CHECK(facts.in == 1024);
  CHECK(facts.dtype == "BFloat16");
  REQUIRE(trace.host_marks.size() == 1);
  CHECK(trace.host_marks[0].number == 5);
  CHECK(trace.host_marks[0].end - trace.host_marks[0].begin == 100_us);
  REQUIRE(trace.launches.size() == 1);
  CHECK(trace.launches[0].at == Time(2_us));
}

TEST_CASE("absolute times of nineteen digits keep their nanoseconds") {
  // As doubles the two would be the same microsecond's quarter.
  const auto event = [](const char* ts) {
    return std::string("{\"ts\": ") + ts +
           ", \"dur\": 0.001, \"name\": \"k\", \"cat\": \"kernel\", \"ph\": \"X\"}";
  };
  const RankTrace trace = read_text("{\"traceEvents\": [" + event("1763750000123456.701") + "," +
                                    event("1763750000123456.702") + "]}");
  CHECK(trace.kernels[1].begin - trace.kernels[0].begin == 1_ns);
}

TEST_CASE("traces of older profilers and a bare array of events are read") {
  const RankTrace trace = read_text(
      "[{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": \"stream 7\","
      "\"ts\": 5, \"dur\": 7},\n{\"ph\": \"X\", \"cat\": \"Operator\", \"name\": "
      "\"ProfilerStep#2\", \"ts\": 1, \"dur\": 20}]");
  REQUIRE(trace.kernels.size() == 1);
  CHECK(trace.kernels[0].stream == 7);
  CHECK(trace.host_marks.size() == 1);
}

TEST_CASE("of several devices the one with most kernels is the rank's") {
  const std::string other =
      ",\n{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy\", "
      "\"ts\": 1, \"dur\": 1, \"args\": {\"device\": 1}}";
  std::string text = small_trace();
  text.insert(text.find("\n], \"traceName"), other);
  CHECK(read_text(text).kernels.size() == 2);
}

TEST_CASE("a compressed trace is the plain one, whatever its name") {
  const RankTrace plain = read_text(small_trace()), packed = read_text(zipped(small_trace()));
  CHECK(packed.kernels.size() == plain.kernels.size());
  CHECK(packed.kernels[1].begin == plain.kernels[1].begin);
  CHECK(packed.names == plain.names);
}

TEST_CASE("every trace cut short is refused, and the message says where") {
  const std::string text = small_trace();
  for (std::size_t size = 1; size + 3 < text.size(); ++size)
    CHECK_THAT(refusal(text.substr(0, size)), Contains(":byte ") && Contains("too early"));
  const std::string packed = zipped(text);
  for (std::size_t size = 30; size < packed.size(); size += 7)
    CHECK_THAT(refusal(packed.substr(0, size)), Contains("too early") || Contains("damaged"));
}

TEST_CASE("damaged bytes are read or refused, never more") {
  std::mt19937 random(7);
  const std::string text = small_trace(), packed = zipped(text);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = i % 3 == 0 ? packed : text;
    for (int n = 0; n <= i % 4; ++n)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    CHECK_FALSE(refusal(bytes).empty());  // any other exception ends the test
  }
}

TEST_CASE("a trace of many megabytes is cut between events alone") {
  // Braces, commas, quotes and backslashes in names are none of JSON's.
  const std::string names[] = {R"(a}],[{,\"b\\)", R"(c\\\"d}})"};
  std::string text = "{\"traceEvents\": [1, [2, {\"ph\": \"X\"}]";
  std::size_t kernels = 0;
  for (std::size_t i = 0; text.size() < (std::size_t{7} << 19); ++i, ++kernels)
    text += ",{\"args\": {\"in\": [[], {\"a\": [1, 2]}], \"correlation\": " + std::to_string(i) +
            "}, \"cat\": \"kernel\", \"dur\": 2, \"ts\": " + std::to_string(3 * i) +
            ", \"ph\": \"X\", \"name\": \"" + names[i % 2] + std::string(i % 300, 'x') + "\"}";
  const std::string end = "], \"distributedInfo\": {\"rank\": 5}}";
  const RankTrace trace = read_text(text + end);
  CHECK(trace.rank == 5);
  REQUIRE(trace.kernels.size() == kernels);
  for (std::size_t i = 0; i < kernels; ++i) {
    REQUIRE(trace.kernels[i].correlation == static_cast<std::int64_t>(i));
    REQUIRE(trace.kernels[i].begin == Time(std::chrono::microseconds(3 * i)));
  }
  CHECK(trace.name_of(trace.kernels[0]).text == "a}],[{,\"b\\");
  CHECK(trace.name_of(trace.kernels[1]).text == "c\\\"d}}x");
  // Where an error stands is counted over all windows.
  const std::string at = ":byte " + std::to_string(text.size() + 3);
  CHECK_THAT(refusal(text + ",{]" + end), Contains(at) && Contains("no JSON"));
  const std::string behind = ":byte " + std::to_string(text.size() + 8);
  CHECK_THAT(refusal(text + "], \"a\":x}"), Contains(behind) && Contains("no JSON"));
  CHECK_THAT(refusal(text + ",{\"name\": \"\xff\"}" + end), Contains("not UTF-8"));
  CHECK_THAT(refusal(text + "," + end), Contains("no JSON"));
}

TEST_CASE("what is no trace is told apart") {
  CHECK_THAT(refusal("{\"events\": []}"), Contains("no traceEvents"));
  CHECK_THAT(refusal("{\"traceEvents\": []}"), Contains("no GPU kernel") && Contains("CUDA"));
  CHECK_THAT(refusal("{\"traceEvents\": [1, \"a\", null, []]}"), Contains("no GPU kernel"));
  CHECK_THAT(refusal("{\"traceEvents\": [}"), Contains("no JSON") && Contains(":byte 18"));
  CHECK_THAT(refusal("{\"traceEvents\": \"\xff\xfe\"}"), Contains("not UTF-8"));
  const auto kernel = [](const std::string& rest) {
    return refusal("{\"traceEvents\": [{}, {\"ph\": \"X\", \"cat\": \"kernel\"" + rest + "}]}");
  };
  CHECK_THAT(kernel(",\"name\": \"k\", \"ts\": 1"), Contains("traceEvents[1]") && Contains("dur"));
  CHECK_THAT(kernel(",\"name\": \"k\", \"ts\": 1, \"dur\": -1"), Contains("negative"));
  CHECK_THAT(kernel(",\"ts\": 1, \"dur\": 1"), Contains("without a name"));
  CHECK_THAT(kernel(",\"name\": \"k\", \"ts\": \"now\", \"dur\": 1"), Contains("'now' is no time"));
  CHECK_THAT(kernel(",\"name\": \"k\", \"ts\": 1e300, \"dur\": 1"), Contains("is no time"));
}

TEST_CASE("a thousand levels of brackets are refused or read, not a crash") {
  CHECK_THAT(refusal("{\"traceEvents\": " + std::string(100000, '[')), Contains("too early"));
}

TEST_CASE("a log that begins with a bracket is no trace") {
  const auto told = [](const std::string& bytes) {
    const TemporaryFile at(bytes);
    TraceFile file(at.path());
    return is_trace(file);
  };
  CHECK(told(" {\"traceEvents\""));
  CHECK(told("[\n {\"ph\""));
  CHECK(told("\xEF\xBB\xBF{"));
  CHECK_FALSE(told("[rank0]:2025-01-01 step: 1"));
  CHECK_FALSE(told("[2025-01-01 10:00:00] iteration 1/ 10"));
  CHECK_FALSE(told(""));
}

// 80 MiB of blanks and of events, in 80 kB and 400 kB of gzip: no profiler's trace is so alike.
TEST_CASE("a packed file that was made to fill the memory is refused before it does") {
  const std::string blank = "{\"traceEvents\": [" + std::string(80 << 20, ' ') + "]}";
  CHECK_THAT(refusal(zipped(blank)),
             Contains("unpacks to more than 100 times its size") && Contains("gunzip"));
  std::string events = "{\"traceEvents\": [";
  const std::string event =
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1},)";
  while (events.size() < 80 << 20) events += event;
  events.back() = ']';
  CHECK_THAT(refusal(zipped(events + "}")), Contains("unpacks to more than"));
  CHECK_THAT(refusal(blank), !Contains("unpacks"));
}
