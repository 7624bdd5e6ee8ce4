#include "sim/tables/gpu_names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

namespace stepcast::sim {
namespace {

using topology::GpuRelative;
using topology::GpuSpec;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// "GH200-900W" -> {"gh200", "900w"}
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-')
      words.emplace_back();
    else
      words.back() += lower(c);
  }
  return words;
}

/// Whether their first words are one; thousands of rows are asked, and few are.
bool of_one_chip(std::string_view a, std::string_view b) {
  return std::ranges::equal(a.substr(0, a.find('-')), b.substr(0, b.find('-')), {}, lower, lower);
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_pcie(const std::vector<std::string>& words) { return has_word(words, "pcie"); }

bool all_in(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](const std::string& word) { return has_word(all, word); });
}

double to_three_digits(double value) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)) - 2.0);
  return std::round(value / scale) * scale;
}

}  // namespace

Kinship kinship(std::string_view measured, std::string_view catalogue) {
  if (!of_one_chip(measured, catalogue)) return Kinship::foreign;
  const auto a = words_of(measured), b = words_of(catalogue);
  if (a.size() <= b.size() ? all_in(a, b) : all_in(b, a)) return Kinship::same;
  return is_pcie(a) == is_pcie(b) ? Kinship::same_chip : Kinship::sibling;
}

const GpuRelative* relative_of(std::string_view measured, const GpuSpec& gpu) {
  const GpuRelative* best = nullptr;
  int most = 0;
  for (const GpuRelative& relative : gpu.relatives)
    if (const int fit = fitness(measured, relative.name); fit > most) most = fit, best = &relative;
  return best;
}

Kinship kinship(std::string_view measured, const GpuSpec& gpu) {
  const Kinship by_name = kinship(measured, gpu.name);
  if (by_name != Kinship::foreign || relative_of(measured, gpu) == nullptr) return by_name;
  return Kinship::sibling;
}

int fitness(std::string_view name, std::string_view catalogue) {
  if (!of_one_chip(name, catalogue)) return 0;
  const auto words = words_of(name), known = words_of(catalogue);
  const bool same_form = is_pcie(words) == is_pcie(known);
  return (all_in(words, known) ? fits_chip : 0) + (same_form ? 2 : 1);
}

std::optional<FlopsPerSecond> tensor_peak_of(std::string_view measured, const GpuSpec& gpu) {
  const GpuRelative* relative = relative_of(measured, gpu);
  if (relative == nullptr || !(relative->tensor_peak.value > 0)) return std::nullopt;
  return FlopsPerSecond(to_three_digits(relative->tensor_peak.value));
}

std::optional<FlopsPerSecond> low_peak_of(std::string_view measured, const GpuSpec& gpu,
                                          workloads::Dtype dtype) {
  const GpuRelative* relative = relative_of(measured, gpu);
  if (relative == nullptr) return std::nullopt;
  const bool four = dtype == workloads::Dtype::nvfp4;
  const FlopsPerSecond peak = four ? relative->fp4_peak : relative->fp8_peak;
  if (!(peak.value > 0)) return std::nullopt;
  return peak;
}

std::optional<BytesPerSecond> nvlink_of(std::string_view measured, const GpuSpec& gpu) {
  const GpuRelative* relative = relative_of(measured, gpu);
  if (relative == nullptr || !(relative->nvlink.value > 0)) return std::nullopt;
  return relative->nvlink;
}

bool altered(std::string_view measured, const GpuSpec& gpu) {
  const auto peak = tensor_peak_of(measured, gpu);
  return peak && std::abs(gpu.tensor_peak / *peak - 1.0) > 0.005;
}

std::string table_name(std::string_view catalogue) {
  std::string out(catalogue);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace stepcast::sim
