#include "calibrate/published_name.hpp"

#include <algorithm>
#include <vector>

namespace stepcast::calibrate {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' || c == '-')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

}  // namespace

/// NVIDIA's names of data-centre cards leave out what rows need: "NVIDIA H100 80GB HBM3" is the SXM
/// module ("NVIDIA H100 PCIe" is not), "NVIDIA H200" has 141 GB.
std::string published_name(const std::string& nvidia_name, Bytes memory) {
  std::vector<std::string> words = words_of(nvidia_name);
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word == "NVIDIA" || word == "Tesla" || word.starts_with("HBM");
  });
  if (words.empty()) return nvidia_name;
  const std::string chip = words.front();
  const auto is_form = [](const std::string& word) {
    return word.starts_with("SXM") || word == "PCIe" || word == "PCIE" || word == "NVL";
  };
  const auto is_size = [](const std::string& word) { return word.ends_with("GB"); };
  const bool has_form = std::any_of(words.begin(), words.end(), is_form);
  const bool has_size = std::any_of(words.begin(), words.end(), is_size);
  if (!has_form && (chip == "H100" || chip == "H800")) words.insert(words.begin() + 1, "SXM5");
  if (!has_form && chip == "H200") words.insert(words.begin() + 1, "SXM");
  if (!has_size && chip == "H200") {
    words.emplace_back("141GB");
  } else if (!has_size) {
    const std::int64_t gib = (memory.value + (1 << 29)) >> 30;
    words.push_back(std::to_string(gib > 64 && gib < 81 ? 80 : gib) + "GB");
  }
  std::string name;
  for (const auto& word : words) name += (name.empty() ? "" : "-") + word;
  return name;
}

}  // namespace stepcast::calibrate
