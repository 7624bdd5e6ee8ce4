#include "sim/scenario/what_if.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "sim/kernels/calibrated_kernels.hpp"
#include "sim/scenario/file.hpp"
#include "sim/tables/calibration_table.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string base =
    "[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = 1\n";

Scenario with(const std::string& what_if) {
  return read_scenario(read_toml("what_if = " + what_if + "\n" + base, "a.toml"), catalogue());
}
Scenario without() { return read_scenario(read_toml(base, "a.toml"), catalogue()); }

std::string refusal(const std::string& what_if) {
  try {
    with("'" + what_if + "'");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// A product so large that nothing but the peak counts, of kernels that nobody measured.
Duration product_time(const Scenario& s) {
  workloads::Kernel kernel;
  kernel.family = workloads::KernelFamily::gemm;
  kernel.m = kernel.n = kernel.k = 65536;
  return CalibratedKernels({}, s.node.gpu, s.software).time_of(kernel).duration;
}

}  // namespace

TEST_CASE("a doubled clock halves what multiprocessors compute, and nothing else") {
  const Scenario once = without(), twice = with("\"gpu.clock x2\"");
  CHECK(seconds(product_time(twice)) == Approx(seconds(product_time(once)) / 2).epsilon(1e-5));
  CHECK(twice.node.gpu.fp32_peak.value == 2 * once.node.gpu.fp32_peak.value);
  CHECK(twice.node.gpu.memory_bandwidth == once.node.gpu.memory_bandwidth);
}

TEST_CASE("a factor of 1, and none at all, move no picosecond") {
  const Duration step = session().step(without()).step_time;
  for (const char* same : {"\"none\"", "\"\"", "[]", "\"gpu.tensor_peak x1\"",
                           "\"node.nic +0 %, gpu.memory / 1\"", "\"software.launch_kernel * 1\""})
    CHECK(session().step(with(same)).step_time == step);
  CHECK(session().step(with("\"gpu.tensor_peak x2\"")).step_time < step);
}

TEST_CASE("every form says the same, and an array is all of them") {
  const auto nic = [](const std::string& what_if) { return with(what_if).node.nic.value; };
  const double one = without().node.nic.value;
  for (const char* twice :
       {"\"node.nic x2\"", "\"node.nic*2\"", "\"node.nic x 2\"", "\"node.nic / 0.5\"",
        "\"node.nic +100 %\"", "\"cluster.node.nic x2\"", "\"node.nic = 800 Gbit/s\"",
        "\"node.nic=100 GB/s\"", "[\"node.nic x4\", \"node.nic -50 %\"]"})
    CHECK(nic(twice) == Approx(2 * one));
  const Scenario both = with("\"node.nic x2, plan.recompute = full\"");
  CHECK(both.node.nic.value == Approx(2 * one));
  CHECK(both.plan.recompute == workloads::Recompute::full);
}

TEST_CASE("a key of an entry that the scenario leaves to the default changes that entry") {
  const Scenario s = with("\"fabric.oversubscription = 2, software.launch_kernel x2\"");
  CHECK(s.fabric.name == without().fabric.name);
  CHECK(s.fabric.oversubscription == 2);
  CHECK(s.software.host.launch_kernel == 2 * without().software.host.launch_kernel);
}

TEST_CASE("integers stay whole") {
  CHECK(with("\"node.nics / 2\"").node.nics == without().node.nics / 2);
  CHECK_THAT(refusal("node.nics x1.3"), Contains("no whole number"));
}

TEST_CASE("a factor that can change nothing is refused") {
  CHECK_THAT(refusal("fabric.link x2"), Contains("has no effect: it is 0 here, give a value"));
  CHECK_THAT(refusal("plan.data x2"), Contains("it is no quantity but \"zero2\""));
  CHECK_THAT(refusal("batch.micro_batch x2"), Contains("it is not set here"));
}

TEST_CASE("what is no what-if is refused with its form, an unknown key with a known one") {
  for (const char* text :
       {"gpu.tensor_peak", "gpu.tensor_peak 2", "gpu.tensor_peak x", "gpu.tensor_peak x-2",
        "gpu.tensor_peak x0", "gpu.tensor_peak -100 %", "gpu.tensor_peak =", "x2"})
    CHECK_THAT(refusal(text), Contains("is no what-if, write"));
  CHECK_THAT(refusal("gpu.tensr_peak x2"), Contains("did you mean 'gpu.tensor_peak'?"));
  CHECK_THAT(refusal("gpu.clock = 2 GHz"), Contains("takes a factor"));
  CHECK_THAT(refusal("node.nic = 800"), Contains("a.toml:1"));
  CHECK_THROWS_AS(with("3"), InputError);
}

TEST_CASE("what a what-if has set stands in the resolved scenario, and it does not") {
  const TomlValue document = resolved_document(with("\"node.nic x2\""));
  CHECK(document.find("what_if") == nullptr);
  CHECK(*find_path(document, "cluster.node.nic")->text() == "100 GB/s");
}
