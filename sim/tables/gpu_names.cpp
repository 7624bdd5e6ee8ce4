#include "sim/tables/gpu_names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <utility>

namespace stepcast::sim {
namespace {

using topology::GpuRelative;
using topology::GpuSpec;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Of two chips that are one, what is added where both are cards or both modules.
constexpr int fits_form = 2, best_fit = fits_chip + fits_form;

bool alike(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Whether `holds` is true of one of "GH200" and "900W", the words of "GH200-900W".
template <class Holds>
bool any_word(std::string_view name, Holds holds) {
  while (true) {
    const std::size_t end = name.find('-');
    if (holds(name.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    name.remove_prefix(end + 1);
  }
}

std::ptrdiff_t num_words(std::string_view name) { return 1 + std::ranges::count(name, '-'); }

bool has_word(std::string_view name, std::string_view word) {
  return any_word(name, [&](std::string_view own) { return alike(own, word); });
}

bool is_pcie(std::string_view name) { return has_word(name, "pcie"); }

bool all_in(std::string_view some, std::string_view all) {
  return !any_word(some, [&](std::string_view word) { return !has_word(all, word); });
}

/// "4090" of "RTX-4090": the word in front is a family's.
std::string_view without_family(std::string_view name) {
  const bool family = name.size() > 4 && alike(name.substr(0, 4), "rtx-");
  return family ? name.substr(4) : name;
}

/// Whether their first words are one; thousands of rows are asked, and few are.
bool of_one_chip(std::string_view name, std::string_view other) {
  const std::string_view a = without_family(name), b = without_family(other);
  for (std::size_t i = 0;; ++i) {
    const char x = i < a.size() ? lower(a[i]) : '-', y = i < b.size() ? lower(b[i]) : '-';
    if (x != y) return false;
    if (x == '-') return true;
  }
}

double to_three_digits(double value) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)) - 2.0);
  return std::round(value / scale) * scale;
}

}  // namespace

Kinship kinship(std::string_view measured, std::string_view catalogue) {
  if (!of_one_chip(measured, catalogue)) return Kinship::foreign;
  if (alike(measured, catalogue)) return Kinship::same;
  const auto [fewer, more] = num_words(measured) <= num_words(catalogue)
                                 ? std::pair(measured, catalogue)
                                 : std::pair(catalogue, measured);
  if (all_in(fewer, more)) return Kinship::same;
  return is_pcie(measured) == is_pcie(catalogue) ? Kinship::same_chip : Kinship::sibling;
}

const GpuRelative* relative_of(std::string_view measured, const GpuSpec& gpu) {
  const GpuRelative* best = nullptr;
  int most = 0;
  for (const GpuRelative& relative : gpu.relatives) {
    if (const int fit = fitness(measured, relative.name); fit > most) most = fit, best = &relative;
    if (most == best_fit) break;
  }
  return best;
}

Kinship kinship(std::string_view measured, const GpuSpec& gpu) {
  const Kinship by_name = kinship(measured, gpu.name);
  if (by_name != Kinship::foreign || relative_of(measured, gpu) == nullptr) return by_name;
  return Kinship::sibling;
}

int fitness(std::string_view name, std::string_view catalogue) {
  if (!of_one_chip(name, catalogue)) return 0;
  if (alike(name, catalogue)) return best_fit;
  const bool same_form = is_pcie(name) == is_pcie(catalogue);
  return (all_in(name, catalogue) ? fits_chip : 0) + (same_form ? fits_form : 1);
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

double memory_slowdown(const GpuSpec& gpu) {
  const auto self = std::ranges::find(gpu.relatives, gpu.name, &GpuRelative::name);
  const bool known = self != gpu.relatives.end() && self->memory_bandwidth.value > 0;
  return known ? self->memory_bandwidth / gpu.memory_bandwidth : 1.0;
}

std::string table_name(std::string_view catalogue) {
  std::string out(catalogue);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace stepcast::sim
