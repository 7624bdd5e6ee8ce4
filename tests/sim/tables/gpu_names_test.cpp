#include "sim/tables/gpu_names.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "sim/tables/calibration_columns.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::kinship;
using sim::Kinship;

namespace {

/// An H100 whose catalogue has it, its card and an H800.
const topology::GpuSpec h100{.name = "h100-sxm5-80gb",
                             .tensor_peak = FlopsPerSecond(989.4e12),
                             .relatives = {{"h100-sxm5-80gb", FlopsPerSecond(989.4e12), 450_GBps},
                                           {"h100-pcie-80gb", 756_TFLOPps, {}},
                                           {"h800-sxm5-80gb", FlopsPerSecond(989.4e12), 200_GBps}}};

/// "GH200-900W" -> {"gh200", "900w"}
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-')
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::ranges::count(words, word) > 0;
}

bool all_in(const Words& some, const Words& all) {
  return std::ranges::all_of(some, [&](const std::string& word) { return has(all, word); });
}

/// The word that names the chip: behind a family's, "RTX-4090".
std::string chip(const Words& words) {
  const bool family = words.front() == "rtx" && (words.size() > 2 || !words.back().empty());
  return family && words.size() > 1 ? words[1] : words.front();
}

/// The definitions, by lists of words.
Kinship slow_kinship(std::string_view measured, std::string_view catalogue) {
  const Words a = words_of(measured), b = words_of(catalogue);
  if (chip(a) != chip(b)) return Kinship::foreign;
  if (a.size() <= b.size() ? all_in(a, b) : all_in(b, a)) return Kinship::same;
  return has(a, "pcie") == has(b, "pcie") ? Kinship::same_chip : Kinship::sibling;
}

int slow_fitness(std::string_view name, std::string_view catalogue) {
  const Words words = words_of(name), known = words_of(catalogue);
  if (chip(words) != chip(known)) return 0;
  return (all_in(words, known) ? sim::fits_chip : 0) +
         (has(words, "pcie") == has(known, "pcie") ? 2 : 1);
}

/// All names of the catalogue and of the tables that are shipped, and some that are not.
std::set<std::string> all_names() {
  std::set<std::string> out{"",           "-",    "--",    "h100-",       "-h100",
                            "H100--SXM5", "PCIe", "h-100", "H100-pcie-x", "h100-H100-h100",
                            "H100-\xC9"};
  const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  for (const sim::GpuIdentity& one : catalogue.gpus().all()) {
    out.insert(one.gpu.name);
    out.insert(one.aliases.begin(), one.aliases.end());
    out.insert(one.cuda_names.begin(), one.cuda_names.end());
  }
  const sim::CalibrationTable table =
      sim::read_calibration(STEPCAST_BINARY_DIR "/published.columns");
  for (const sim::Family& family : sim::families())
    for (std::size_t row = 0; row < family.size(table); ++row)
      out.emplace(std::get<std::string_view>(family.columns.front().get(table, row)));
  return out;
}

}  // namespace

TEST_CASE("names match as the lists of their words do") {
  const std::set<std::string> names = all_names();
  CHECK(names.size() > 60);
  for (const std::string& a : names)
    for (const std::string& b : names) {
      INFO(a + " beside " + b);
      REQUIRE(kinship(a, b) == slow_kinship(a, b));
      REQUIRE(sim::fitness(a, b) == slow_fitness(a, b));
    }
}

TEST_CASE("a measured name that says less or writes capitals is the same GPU") {
  CHECK(kinship("H100-SXM5-80GB", "h100-sxm5-80gb") == Kinship::same);
  CHECK(kinship("V100-SXM2", "v100-sxm2-32gb") == Kinship::same);
  CHECK(kinship("A100", "a100-sxm4-80gb") == Kinship::same);
}

TEST_CASE("cards of one family are as foreign as any two chips") {
  CHECK(kinship("RTX-5090", "rtx-4090") == Kinship::foreign);
  CHECK(kinship("RTX-PRO-6000-Blackwell-Server", "rtx-pro-6000") == Kinship::same);
  CHECK(kinship("RTX-A6000", "rtx-pro-6000") == Kinship::foreign);
}

TEST_CASE("the same chip with other memory is not the same GPU, but nearly") {
  CHECK(kinship("A100-SXM4-40GB", "a100-sxm4-80gb") == Kinship::same_chip);
  CHECK(kinship("V100-SXM2-16GB", "v100-sxm2-32gb") == Kinship::same_chip);
}

TEST_CASE("chips of one generation are siblings, others are foreign") {
  CHECK(kinship("H100-PCIe", h100) == Kinship::sibling);
  CHECK(kinship("H800-SXM", h100) == Kinship::sibling);
  CHECK(kinship("H100-SXM5-80GB", h100) == Kinship::same);
  CHECK(kinship("A100-SXM4-80GB", h100) == Kinship::foreign);
  CHECK(kinship("any", h100) == Kinship::foreign);
  CHECK(kinship("H800-SXM", "h100-sxm5-80gb") == Kinship::foreign);  // a name tells no generation
}

TEST_CASE("a relative's peak and NVLink are the catalogue's, the peak to three digits") {
  CHECK(sim::tensor_peak_of("H800-SXM", h100)->value == 989e12);
  CHECK(sim::tensor_peak_of("H100-PCIe", h100)->value == 756e12);
  CHECK(sim::tensor_peak_of("H100", h100)->value == 989e12);  // the usual form first
  CHECK_FALSE(sim::tensor_peak_of("A100", h100));
  CHECK(*sim::nvlink_of("H800-SXM", h100) == 200_GBps);
  CHECK_FALSE(sim::nvlink_of("H100-PCIe", h100));
}

TEST_CASE("another peak than the chip's is a what-if, a rounded one is not") {
  topology::GpuSpec gpu = h100;
  CHECK_FALSE(sim::altered("H100-SXM5-80GB", gpu));
  gpu.tensor_peak = 1200_TFLOPps;
  CHECK(sim::altered("H100-SXM5-80GB", gpu));
}
