#include "sim/gpu_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

namespace stepcast::sim {
namespace {

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

/// Chips of one generation and their 16-bit tensor peaks in TFLOP/s, dense, SXM (NVIDIA datasheets
/// by way of hardware figures collected 2026-11).
struct Chip {
  std::string_view name;
  int generation;
  double tensor_tflops;
  double pcie_tflops;  // of its PCIe card; 0: none published here
  double nvlink;       // GB/s, all links of the SXM module, per direction
};
constexpr std::array<Chip, 8> chips = {{{"v100", 70, 125, 112, 150},
                                        {"a100", 80, 312, 312, 300},
                                        {"a800", 80, 312, 312, 200},
                                        {"h100", 90, 989, 756, 450},
                                        {"h200", 90, 989, 0, 450},
                                        {"h800", 90, 989, 756, 200},
                                        {"gh200", 90, 989, 0, 450},
                                        {"b200", 100, 2250, 0, 900}}};

const Chip* chip_of(std::string_view word) {
  const auto* found =
      std::find_if(chips.begin(), chips.end(), [&](const Chip& chip) { return chip.name == word; });
  return found == chips.end() ? nullptr : found;
}

bool is_pcie(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "pcie") != words.end();
}

}  // namespace

Kinship kinship(std::string_view measured, std::string_view catalogue) {
  const auto a = words_of(measured), b = words_of(catalogue);
  const Chip *chip_a = chip_of(a.front()), *chip_b = chip_of(b.front());
  if (a.front() == b.front()) {
    const auto& shorter = a.size() <= b.size() ? a : b;
    const auto& longer = a.size() <= b.size() ? b : a;
    const bool inside = std::all_of(shorter.begin(), shorter.end(), [&](const std::string& word) {
      return std::find(longer.begin(), longer.end(), word) != longer.end();
    });
    if (inside) return Kinship::same;
    return is_pcie(a) == is_pcie(b) ? Kinship::same_chip : Kinship::sibling;
  }
  const bool relatives =
      chip_a != nullptr && chip_b != nullptr && chip_a->generation == chip_b->generation;
  return relatives ? Kinship::sibling : Kinship::foreign;
}

std::optional<FlopsPerSecond> tensor_peak_of(std::string_view measured) {
  const auto words = words_of(measured);
  const Chip* chip = chip_of(words.front());
  if (chip == nullptr) return std::nullopt;
  const double tflops =
      is_pcie(words) && chip->pcie_tflops > 0 ? chip->pcie_tflops : chip->tensor_tflops;
  return FlopsPerSecond(tflops * 1e12);
}

std::optional<BytesPerSecond> nvlink_of(std::string_view measured) {
  const auto words = words_of(measured);
  const Chip* chip = chip_of(words.front());
  if (chip == nullptr || is_pcie(words)) return std::nullopt;
  return BytesPerSecond(chip->nvlink * 1e9);
}

bool altered(std::string_view measured, FlopsPerSecond catalogue_peak) {
  const auto peak = tensor_peak_of(measured);
  return peak && std::abs(catalogue_peak / *peak - 1.0) > 0.005;
}

}  // namespace stepcast::sim
