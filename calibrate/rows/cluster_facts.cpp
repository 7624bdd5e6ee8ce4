#include "calibrate/rows/cluster_facts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <vector>

#include "calibrate/rows/numbers.hpp"
#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {

void Unsaid::add(bool missing, const std::string& what, const std::string& option) {
  if (!missing) return;
  what_ += (count_ == 0 ? "" : ", ") + what;
  options_ += (count_ == 0 ? "" : " ") + option;
  ++count_;
}

void check_fabric(const std::string& fabric) {
  const std::vector<std::string> known = {"infiniband", "roce",   "efa",
                                          "ethernet",   "nvlink", "pcie"};
  if (std::find(known.begin(), known.end(), fabric) == known.end())
    throw InputError("--fabric", "unknown fabric '" + fabric + "'", sim::suggestion(fabric, known));
}

std::optional<std::string> collective_named(std::string_view name) {
  std::string word = sim::plain_word(std::filesystem::path(name).filename().string());
  for (const std::string_view tail : {"mpi", "perf"})
    if (word.ends_with(tail)) word.resize(word.size() - tail.size());
  const auto kind = sim::collective_named(word);
  return kind ? std::optional(sim::row_word(*kind)) : std::nullopt;
}

std::optional<std::string> collective_in_file_name(std::string_view name) {
  const auto kind = sim::collective_within(std::filesystem::path(name).filename().string());
  return kind ? std::optional(sim::row_word(*kind)) : std::nullopt;
}

std::optional<std::string> gpu_named(std::string_view name, const sim::GpuIdentities& gpus) {
  if (const auto* found = gpus.by_cuda_name(name)) return sim::table_name(found->gpu.name);
  name = sim::without_maker(name);
  if (name.find(' ') != std::string_view::npos || gpus.nearest(name) == nullptr)
    return std::nullopt;
  return sim::table_name(name);
}

std::optional<std::string> nccl_of_code(std::int64_t code) {
  // nccl.h: NCCL_VERSION(X,Y,Z) has X*1000 up to 2.8 and X*10000 since 2.9.
  if (code < 2000 || code > 99999) return std::nullopt;
  const std::int64_t major = code < 10000 ? 1000 : 10000;
  return std::to_string(code / major) + "." + std::to_string(code % major / 100) + "." +
         std::to_string(code % 100);
}

std::optional<std::string> nccl_in_text(std::string_view text) {
  constexpr std::string_view mark = "NCCL version ";
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + mark.size());
  std::size_t end = 0;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 ||
                               (text[end] == '.' && end > 0)))
    ++end;
  while (end > 0 && text[end - 1] == '.') --end;
  const std::string version(text.substr(0, end));
  return version.find('.') == std::string::npos ? std::nullopt : std::optional(version);
}

}  // namespace stepcast::calibrate
