#include "validate/compare/report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "validate/compare/measurements.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::validate;

namespace {

ComparedRow row(std::int64_t line, Bytes bytes, Duration measured, Duration predicted) {
  ComparedRow out;
  out.line = line;
  out.gpu = "H100";
  out.kind = "allreduce";
  out.what = "made up";
  out.group = {"Hopper", bytes >= 1_MiB ? "1 - 64 MiB" : "< 64 KiB"};
  out.bytes = bytes;
  out.measured = measured;
  out.predicted = predicted;
  return out;
}

/// Errors +50 %, -10 % from 1 MiB; +20 % below; one row that does not count.
Comparison made_up() {
  Comparison out;
  out.file = "x.csv";
  out.title = "Collectives";
  out.left_out = "source";
  out.group_headings = {"GPUs", "size"};
  out.rows = {row(2, 2_MiB, 100_us, 150_us), row(3, 4_MiB, 100_us, 90_us),
              row(4, 1_KiB, 10_us, 12_us), row(5, 1_KiB, 10_us, 99_us),
              row(6, 1_KiB, 10_us, 99_us)};
  out.rows[0].nccl_estimate = 70_us;
  out.rows[3].not_scored = out.rows[4].not_scored = "low confidence";
  return out;
}

}  // namespace

TEST_CASE("a summary takes the rows that count, by size") {
  const Summary summary = summary_of(made_up());
  CHECK(summary.rows == 5);
  CHECK(summary.all->rows == 3);
  CHECK(summary.all->median_ape == Approx(0.2));
  CHECK(summary.all->mape == Approx(0.8 / 3));
  CHECK(summary.all->bias == Approx(0.2));
  CHECK(summary.from_1mib->median_ape == Approx(0.3));
  CHECK(summary.below_1mib->median_ape == Approx(0.2));
  CHECK(summary.nccl->median_ape == Approx(0.3));
}

TEST_CASE("the JSON has the agreed keys") {
  const auto json = nlohmann::json::parse(report_json(made_up()));
  const auto& summary = json.at("summary");
  for (const char* key : {"rows", "predicted", "median_ape", "median_ape_from_1mib",
                          "median_ape_below_1mib", "mape", "bias", "left_out"})
    CHECK(summary.contains(key));
  CHECK(summary.at("predicted") == 3);
  REQUIRE(json.at("rows").size() == 5);
  CHECK(json.at("rows")[0].at("measured_us") == Approx(100));
  CHECK(json.at("rows")[0].at("error") == Approx(0.5));
  CHECK(json.at("rows")[3].at("scored") == false);
  CHECK(json.at("rows")[3].at("not_scored") == "low confidence");
}

TEST_CASE("a comparison in which nothing counts has no errors") {
  Comparison none = made_up();
  for (ComparedRow& each : none.rows) each.not_scored = "low confidence";
  CHECK(nlohmann::json::parse(report_json(none)).at("summary").at("median_ape").is_null());
  CHECK(report_text(none).find("no row is scored") != std::string::npos);
}

TEST_CASE("the text has groups by size, totals, the worst rows and the lines that do not count") {
  const std::string text = report_text(made_up());
  const auto at = [&](const char* words) { return text.find(words); };
  for (const char* words : {"5 rows, 3 scored", "from 1 MiB", "worst 3 rows", "+50.0 %", "5-6"}) {
    INFO(words << " in\n" << text);
    CHECK(at(words) != std::string::npos);
  }
  CHECK(at("< 64 KiB") < at("1 - 64 MiB"));
}
