#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "made_up_answers.hpp"
#include "sim/files/text_table.hpp"
#include "sim/told/json.hpp"
#include "sim/told/metrics.hpp"
#include "sim/told/shared_sentences.hpp"
#include "sim/told/text.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

constexpr const char* cluster = "[cluster]\nnode = \"dgx-h100\"\nnodes = 16\n";

Results one_run(const Simulator& simulator = made_up_simulator()) {
  return results_of("[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n" + std::string(cluster),
                    simulator);
}

Results one_collective() {
  return results_of("[collective]\nkind = \"all_reduce\"\nbytes = \"64 MiB\"\n" +
                    std::string(cluster));
}

void require_explained(const json& object, const std::string& prefix) {
  for (const auto& [key, value] : object.items()) {
    INFO(prefix + key);
    CHECK(find_explanation(prefix + key) != nullptr);
  }
}

}  // namespace

TEST_CASE("the JSON of a run has the promised keys, and the parts add up to the step") {
  const json run = json::parse(to_json(one_run()));
  for (const char* key : {"gpu",
                          "gpus",
                          "nodes",
                          "step_time_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "model_tflops_per_gpu",
                          "mfu",
                          "memory_gib_per_gpu",
                          "power_w_per_gpu",
                          "energy_j",
                          "tokens_per_joule",
                          "provenance",
                          "plan",
                          "cluster",
                          "warnings",
                          "compute_s",
                          "interference_s",
                          "exposed_communication_s",
                          "bubble_s",
                          "wait_s",
                          "host_s",
                          "communication_s"}) {
    INFO(key);
    CHECK(run.contains(key));
  }
  CHECK(run["gpu"] == "h100-sxm5-80gb");
  CHECK(run["gpus"] == 128);
  CHECK(run["gpus"].is_number_integer());
  CHECK(run["memory_gib_per_gpu"] == 40.0);
  CHECK(run["memory_parts_gib"]["activations"] == 30.0);
  CHECK(run["plan"]["data_degree"] == 128);
  const json& exposed = run["exposed_communication_s"];
  CHECK(exposed["total"].get<double>() ==
        Approx(exposed["tensor"].get<double>() + exposed["pipeline"].get<double>() +
               exposed["data"].get<double>() + exposed["expert"].get<double>()));
  CHECK(run["step_time_s"].get<double>() ==
        Approx(run["compute_s"].get<double>() + exposed["total"].get<double>() +
               run["bubble_s"].get<double>() + run["wait_s"].get<double>() +
               run["host_s"].get<double>()));
}

TEST_CASE("the JSON of a collective has the promised keys") {
  const json one = json::parse(to_json(one_collective()));
  for (const char* key : {"time_us", "algbw_gb_per_s", "busbw_gb_per_s", "algorithm", "protocol",
                          "channels", "provenance"}) {
    INFO(key);
    CHECK(one.contains(key));
  }
  CHECK(one["time_us"] == 1500.0);
  CHECK(one["channels"] == 16);
}

TEST_CASE("numbers in JSON keep full precision") {
  constexpr Duration step_time(1'234'567'890'123);
  Simulator simulator = made_up_simulator();
  simulator.step = [&](const Scenario& s) {
    StepReport report = made_up_report(s);
    report.step_time = step_time;
    report.tokens_per_second = 1.0 / 3.0;
    return report;
  };
  const json run = json::parse(to_json(one_run(simulator)));
  CHECK(run["step_time_s"].get<double>() == seconds(step_time));
  CHECK(run["tokens_per_s"].get<double>() == 1.0 / 3.0);
}

TEST_CASE("a sweep prints one object per point, refused ones with their reason") {
  const auto step = [](const Scenario& s) {
    if (s.nodes == 2) throw NoFeasiblePlan("90 GiB needed, 80 GiB there");
    return made_up_report(s);
  };
  const Results results = results_of(
      "[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = "
      "\"dgx-h100\"\n[sweep]\n\"cluster.nodes\" = [1, 2, 4]\n",
      {step, made_up_collective});
  const json sweep = json::parse(to_json(results));
  REQUIRE(sweep["points"].size() == 3);
  CHECK(sweep["points"][1]["refused"] == "90 GiB needed, 80 GiB there");
  CHECK_FALSE(sweep["points"][0].contains("refused"));
  CHECK(sweep["points"][2]["nodes"] == 4);
  CHECK(sweep["points"][2]["sweep"]["cluster.nodes"] == 4);
  CHECK_THAT(report_text(results, refused_shown()),
             Contains("    2  refused: 90 GiB needed, 80 GiB there"));
  CHECK_THAT(report_text(results),
             !Contains("refused: 90") && Contains("1 of 3 points refused: 1 as 90 GiB needed; "));
}

TEST_CASE("refused points are one line with their reasons, the nearest miss of memory among them") {
  const auto step = [](const Scenario& s) {
    if (s.nodes > 1) throw OutOfMemory("too much", Bytes(s.nodes * (1LL << 30)));
    return made_up_report(s);
  };
  const Results results = results_of(
      "[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = "
      "\"dgx-h100\"\n[sweep]\n\"cluster.nodes\" = [1, 4, 2, 8]\n\"plan.tensor\" = [1, 3]\n",
      {step, made_up_collective});
  // Four with tensor 3, which divides no power of two; of the others three lack 2 GiB or more.
  CHECK_THAT(
      report_text(results),
      Contains("7 of 8 points refused: 4 as tensor 3 x pipeline 1 does not divide the 8 GPUs, "
               "3 out of memory (nearest 2.00 GiB over); --refused shows them\n"));
  CHECK_THAT(report_text(results, refused_shown()), !Contains("points refused"));
  CHECK(results.rows.row(2).number("memory_over_gib") == 4.0);
  const std::string csv = results_table(results, refused_shown()).csv();
  CHECK(std::ranges::count(csv, '\n') == 1 + 8);
  // Row by row as from a table of all.
  const TableView view = csv_written();
  std::string pieces;
  write_csv(results, view, [&](std::string_view piece) { pieces += piece; });
  CHECK(pieces == results_table(results, view).csv());
}

TEST_CASE("a warning of many points is said once, whatever its numbers") {
  const auto step = [](const Scenario& s) {
    StepReport report = made_up_report(s);
    report.warnings = {"alike", "the " + std::to_string(s.nodes) + " nodes, 1.5 of 2,048"};
    return report;
  };
  const Results results = results_of(
      "[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = "
      "\"dgx-h100\"\n[sweep]\n\"cluster.nodes\" = [1, 4, 16]\n",
      {step, made_up_collective});
  CHECK(warnings_text(results) ==
        "warning: alike (3 points)\n"
        "warning: the 1 nodes, 1.5 of 2,048 (3 points, with other numbers)\n");
  CHECK_THAT(report_text(results), !Contains("alike"));
}

TEST_CASE("every key of the JSON is explained") {
  const json run = json::parse(to_json(one_run()));
  require_explained(run, "");
  require_explained(run["exposed_communication_s"], "exposed_communication_s.");
  require_explained(json::parse(to_json(one_collective())), "");
  for (const Metric& metric : metrics()) {
    INFO(std::string(metric.key));
    CHECK(find_explanation(metric.key) != nullptr);
  }
}

TEST_CASE("the text of a run names units and the parts of the step") {
  const std::string text = report_text(one_run());
  for (const char* part :
       {"128 x h100-sxm5-80gb", "step time             1.00 s", "MFU                   41.7 %",
        "compute", "70.0 %", "exposed comm.", "10.0 %", "bubble", "6.00 %", "wait", "4.00 %",
        "host", "activations", "30.0 GiB", "650 W", "75.0 % interpolated, 25.0 % derived"})
    CHECK_THAT(text, Contains(part));
  CHECK_THAT(text, !Contains("made up"));
  CHECK(warnings_text(one_run()) == "warning               made up\n");
}

TEST_CASE("exchanges of context ranks are not told as tensor ranks'") {
  const auto told = [](std::int64_t tensor, std::int64_t context) {
    return report_text(results_of(
        fmt::format("[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 1\n[plan]\ndata = \"zero1\"\n"
                    "tensor = {}\ncontext = {}\n[software]\nframework = \"megatron-core\"\n",
                    tensor, context) +
        cluster));
  };
  CHECK_THAT(told(2, 1), Contains("%  tensor ") && !Contains("context "));
  CHECK_THAT(told(1, 4), Contains("%  context ") && !Contains("%  tensor "));
  CHECK_THAT(told(2, 4), Contains("%  tensor and context "));
}

TEST_CASE("known figures stand beside the simulated ones") {
  // Throughput per GPU is made up as constant, so the simulated change is 0 %.
  const Results results = results_of(
      "[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = \"dgx-h100\"\n"
      "[sweep]\n\"cluster.nodes\" = [16, 256]\n[[reference]]\nmetric = \"tokens_per_s_per_gpu\"\n"
      "source = \"the study\"\nchange_from = {\"cluster.nodes\" = 16}\nkeys = "
      "[\"cluster.nodes\"]\nrows = [[256, -37.22]]\n"
      "[[reference]]\nmetric = \"mfu\"\nsource = \"x\"\nkeys = [\"cluster.nodes\"]\n"
      "rows = [[512, 0.3]]\n");
  const std::string text = references_text(results);
  CHECK_THAT(text, Contains("the study"));
  CHECK_THAT(text, Contains("  256          0      -37.2       +37.2"));
  CHECK_THAT(text, !Contains("mfu"));  // no such point was simulated
}

TEST_CASE("a change is from the same point but for the settings it starts from") {
  // Made up: with fp16 everything takes 1 s, with bf16 on 256 nodes 2 s.
  Simulator simulator = made_up_simulator();
  simulator.step = [](const Scenario& s) {
    StepReport report = made_up_report(s);
    if (s.nodes == 256 && s.precision.compute == workloads::Dtype::bf16)
      report.tokens_per_second /= 2;
    return report;
  };
  const Results results = results_of(
      "[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = \"dgx-h100\"\n"
      "[sweep]\n\"cluster.nodes\" = [16, 256]\n\"precision.compute\" = [\"bf16\", \"fp16\"]\n"
      "[[reference]]\nmetric = \"tokens_per_s_per_gpu\"\nsource = \"the study\"\n"
      "change_from = {\"cluster.nodes\" = 16}\nkeys = [\"precision.compute\", \"cluster.nodes\"]\n"
      "rows = [[\"bf16\", 256, -40], [\"fp16\", 256]]\n",
      simulator);
  const std::string text = references_text(results);
  CHECK_THAT(text, Contains("bf16    256      -50.0      -40.0       -10.0"));
  CHECK_THAT(text,
             Contains("fp16    256          0          -           -"));  // no figure known
}

TEST_CASE("noise and what was left out are said, in text and JSON") {
  const auto results = [](const std::string& more) {
    return results_of("[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n" + std::string(cluster) +
                      more);
  };
  const std::string noise =
      "[noise]\nkernel_sigma = 0.02\n[[noise.straggler]]\nnode = 3\nslowdown = 1.25\n";
  const Results both = results(noise + "[run]\nseed = 4\nwithout = \"latency\"\n");
  CHECK_THAT(report_text(both), Contains("kernels +- 2.00 %, node 3 slower by 25.0 %, mean of 5") &&
                                    Contains("seed 4") &&
                                    Contains("left out              latency"));
  const json run = json::parse(to_json(both));
  CHECK(run["noise"]["kernel_sigma"] == 0.02);
  CHECK(run["without"] == json::array({"latency"}));
  const std::string plain = report_text(results(""));
  CHECK_THAT(plain, !Contains("noise") && !Contains("left out"));
  const Results off = results(noise + "[run]\nwithout = \"jitter\"\n");
  CHECK_THAT(report_text(off), !Contains("kernels +-") && Contains("left out              jitter"));
  CHECK_FALSE(json::parse(to_json(off)).contains("noise"));
}

TEST_CASE("numbers have three significant digits") {
  CHECK(three_digits(0.04213) == "0.0421");
  CHECK(three_digits(38.249) == "38.2");
  CHECK(three_digits(9184.3) == "9,180");
  CHECK(three_digits(1294567) == "1,290,000");
  CHECK(three_digits(9.996) == "10.0");
  CHECK(three_digits(999.6) == "1,000");
  CHECK(three_digits(0) == "0");
  CHECK(three_digits(-37.22) == "-37.2");
  CHECK(three_digits(-1234.0) == "-1,230");
  CHECK(three_digits(3e-7) == "3.00e-07");
  CHECK(grouped(2048) == "2,048");
  CHECK(grouped(100) == "100");
}

TEST_CASE("tables align, and lines end without blanks") {
  TextTable table;
  table.column("name", "", TextTable::Align::left);
  table.column("x", "GB/s");
  table.row({"a", "1"});
  table.row({"long one", "22.5"});
  table.sentence({"b"}, "refused");
  CHECK(table.text() ==
        "name         x\n"
        "          GB/s\n"
        "a            1\n"
        "long one  22.5\n"
        "b         refused\n");
}
