#include "validate/trace/report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;
using workloads::CollectiveKind;

namespace {

TraceComparison example() {
  TraceComparison out;
  out.files = {"a.json"};
  out.scenario = "run.toml";
  out.what = "llama2-7b on 8 x h100";
  out.notes = {"Traces of 1 rank."};
  out.measured.step = 200_ms;
  out.measured.compute = 150_ms;
  out.measured.kernels[TraceKind::gemm] = {100_ms, 12, 0, true};
  out.measured.kernels[TraceKind::other] = {5_ms, 3, 0, true};
  out.measured.collectives[CollectiveKind::all_gather] = {40_ms, 8, 2e6, false};
  out.simulated.step = 190_ms;
  out.simulated.compute = 165_ms;
  out.simulated.waiting = 1_ms;
  out.simulated.kernels[TraceKind::gemm] = {90_ms, 12, 0, true};
  out.simulated.kernels[TraceKind::norm] = {2_ms, 4, 0, true};
  out.simulated.collectives[CollectiveKind::all_gather] = {50_ms, 8, 3e6, true};
  return out;
}

nlohmann::json json_of(const TraceComparison& c) { return as_json(told_of(c)); }

const nlohmann::json& with_kind(const nlohmann::json& rows, const std::string& kind) {
  for (const auto& row : rows)
    if (row["kind"] == kind) return row;
  throw std::runtime_error("no row " + kind);
}

}  // namespace

TEST_CASE("the text states measured, simulated and signed error of what was measured") {
  const std::string text = as_text(told_of(example()));
  CHECK_THAT(text, Contains("run.toml: llama2-7b on 8 x h100") && Contains("Traces of 1 rank."));
  CHECK_THAT(text, Contains("-5.0 %"));              // step: 190 / 200
  CHECK_THAT(text, Contains("+10.0 %"));             // compute: 165 / 150
  CHECK_THAT(text, Contains("-10.0 %"));             // gemm
  CHECK_THAT(text, Contains("+25.0 %"));             // all_gather
  CHECK_THAT(text, !Contains("waiting for peers"));  // nothing measured to hold it against
}

TEST_CASE("JSON has the same figures in seconds and shares, null for what is unknown") {
  const nlohmann::json json = json_of(example());
  CHECK(json["summary"]["step_time_error"].get<double>() == Approx(-0.05));
  CHECK(json["summary"]["measured_step_time_s"].get<double>() == Approx(0.2));
  CHECK(json["quantities"].size() == 2);
  CHECK(with_kind(json["kernels"], "gemm")["error"].get<double>() == Approx(-0.1));
  CHECK(with_kind(json["kernels"], "norm")["error"].is_null());
  CHECK(with_kind(json["kernels"], "other")["simulated_s"] == 0.0);
  const nlohmann::json& gather = with_kind(json["collectives"], "all_gather");
  CHECK(gather["measured_bytes"].is_null());  // the profiler did not say
  CHECK(gather["simulated_bytes"] == 3e6);
}

TEST_CASE("against a verdict no error is stated, in text and JSON") {
  TraceComparison other = example();
  other.verdict = "this trace is not this scenario: 405 products against 675";
  const std::string text = as_text(told_of(other));
  CHECK_THAT(text, Contains("Verdict: this trace is not this scenario: 405 products against 675."));
  CHECK_THAT(text, !Contains(" %"));
  CHECK_FALSE(step_error(other));
  const nlohmann::json json = json_of(other);
  CHECK(json["summary"]["verdict"] == other.verdict);
  CHECK(json["summary"]["step_time_error"].is_null());
  for (const char* table : {"quantities", "kernels", "collectives"})
    for (const auto& row : json[table]) CHECK(row["error"].is_null());
  CHECK(json_of(example())["summary"]["verdict"].is_null());
}

TEST_CASE("a log has no kernels: only its step stands there") {
  TraceComparison log = example();
  log.measured = {};
  log.measured.step = 200_ms;
  CHECK_THAT(as_text(told_of(log)), !Contains("kernels") && !Contains("all_gather"));
  CHECK(json_of(log)["collectives"].empty());
}

TEST_CASE("an error needs both sides and a measurement above zero") {
  CHECK(error_of(2.0, 3.0) == 0.5);
  CHECK_FALSE(error_of(0.0, 3.0));
  CHECK_FALSE(error_of(std::nullopt, 3.0));
  CHECK_FALSE(error_of(2.0, std::nullopt));
}
