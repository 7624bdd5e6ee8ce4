#include "validate/diagnose/logs.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <list>

#include "engine/check.hpp"
#include "tests/session.hpp"
#include "tests/validate/trace_writer.hpp"
#include "validate/diagnose/report.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

/// Megatron-LM's print of arguments, and ten steps of so many milliseconds.
std::string log_of(std::int64_t tensor, std::int64_t batch, double ms) {
  std::string out;
  const auto argument = [&](const char* name, const auto& value) {
    out += fmt::format("  {} {} {}\n", name, std::string(20, '.'), value);
  };
  argument("num_layers", 8);
  argument("hidden_size", 2048);
  argument("num_attention_heads", 16);
  argument("seq_length", 2048);
  argument("max_position_embeddings", 2048);
  argument("padded_vocab_size", 32000);
  argument("bf16", "True");
  argument("tensor_model_parallel_size", tensor);
  argument("micro_batch_size", 1);
  argument("global_batch_size", batch);
  argument("world_size", 8);
  for (int i = 1; i <= 10; ++i)
    out += fmt::format(" iteration {}/ 10 | elapsed time per iteration (ms): {} |\n", i, ms);
  return out;
}

LogComparison compared(const std::vector<std::string>& logs) {
  std::list<TemporaryFile> files;  // they stay where they are
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    files.emplace_back(logs[i], fmt::format("{}.log", i));
    paths.push_back(files.back().path());
  }
  const std::vector<std::pair<std::string, sim::TomlValue>> settings = {
      {"cluster.node", sim::toml_text("dgx-h100", "a test")}};
  return compare_logs(read_diagnose_files(paths, catalogue()), {}, settings, nullptr, session());
}

}  // namespace

TEST_CASE("of two logs the arguments that differ explain what their forecasts differ by") {
  const LogComparison c = compared({log_of(1, 64, 200), log_of(8, 64, 500)});
  REQUIRE(c.runs.size() == 2);
  REQUIRE(c.differences.size() == 1);
  const LoggedDifference& d = c.differences[0];
  CHECK(d.measured == Approx(0.3));
  CHECK(d.expected == Approx(c.runs[1].expected - c.runs[0].expected));
  REQUIRE(d.changes.size() == 1);
  CHECK(d.changes[0].key == "plan.tensor");
  CHECK(d.changes[0].from == "1");
  CHECK(d.changes[0].to == "8");
  CHECK(*d.changes[0].seconds == Approx(d.expected).epsilon(1e-9));
  CHECK(d.expected > 0);
}

TEST_CASE("logs of other batches are compared by the token") {
  const LogComparison c = compared({log_of(1, 64, 200), log_of(1, 128, 300)});
  CHECK(c.runs[1].tokens == 2 * c.runs[0].tokens);
  CHECK(c.differences[0].measured == Approx(-0.05));
  double sum = 0;
  for (const LoggedChange& change : c.differences[0].changes) sum += change.seconds.value_or(0);
  CHECK(sum == Approx(c.differences[0].expected).epsilon(1e-6));
}

TEST_CASE("logs of the same arguments: nothing that they say explains the difference") {
  const LogComparison c = compared({log_of(2, 64, 200), log_of(2, 64, 220), log_of(2, 64, 190)});
  REQUIRE(c.differences.size() == 2);
  CHECK(c.differences[0].changes.empty());
  CHECK(c.differences[0].expected == 0);
  const std::string text = logs_form().json(c).dump();
  CHECK(text.find("said in no log") != std::string::npos);
  CHECK(logs_form().json(c)["verdict"].get<std::string>().find("B is slower than C") !=
        std::string::npos);
}
