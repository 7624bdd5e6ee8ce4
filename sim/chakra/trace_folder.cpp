#include "sim/chakra/trace_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t most_ranks = 10'000'000;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all && value >= 0 && value < most_ranks ? std::optional(value) : std::nullopt;
}

/// 7 of "step.7.et" and "step.7.et.gz".
std::optional<std::int64_t> rank_in(std::string name) {
  for (const std::string_view end : {".gz", ".et"}) {
    if (name.ends_with(end))
      name.erase(name.size() - end.size());
    else if (end == ".et")
      return std::nullopt;
  }
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return number_in(name);
  return number_in(std::string_view(name).substr(dot + 1));
}

EtGroups groups_in(const std::string& path) {
  EtGroups out;
  try {
    const Json json = parsed_ordered_json(read_packed(path));
    for (const auto& [name, ranks] : json.items())
      out[name] = ranks.get<std::vector<std::int64_t>>();
  } catch (const Json::exception& error) {
    throw InputError(path, "is no list of process groups", "{\"1\": [0, 1], ...}");
  }
  return out;
}

/// PyTorch's traces list their groups in a metadata node:
/// [{"pg_name": "0", "ranks": [0, 1], ...}, ...].
void add_groups_of(const EtFile& file, EtGroups& groups) {
  for (const EtNode& node : file.nodes) {
    if (node.type != EtType::metadata || node.inputs.find("pg_name") == std::string::npos) continue;
    const Json json = ordered_json_or_discarded(node.inputs);
    if (!json.is_array()) continue;
    for (const Json& group : json)
      if (group.contains("pg_name") && group.contains("ranks") && !group["ranks"].empty())
        groups.try_emplace(group["pg_name"].get<std::string>(),
                           group["ranks"].get<std::vector<std::int64_t>>());
  }
}

std::map<std::int64_t, std::string> rank_files(const std::string& folder) {
  std::error_code error;
  std::map<std::int64_t, std::string> out;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto rank = rank_in(entry.path().filename().string());
    if (!rank) continue;
    const auto [at, added] = out.emplace(*rank, entry.path().string());
    if (!added)
      throw InputError(entry.path().string(), fmt::format("is rank {} again", *rank),
                       at->second + " is as well: one trace in a folder");
  }
  if (error) throw InputError(folder, "cannot be read", error.message());
  if (out.empty()) throw InputError(folder, "has no Chakra trace", "NAME.RANK.et, one a rank");
  return out;
}

}  // namespace

std::string number_list(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!out.empty()) out += ",";
    out += std::to_string(numbers[i]);
    if (end > i + 1) out += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return out;
}

std::vector<std::int64_t> numbers_in(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == part.size() ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *last < *first)
      throw InputError(where, "'" + std::string(part) + "' is no range of numbers", "0-3,8");
    for (std::int64_t n = *first; n <= *last; ++n) out.push_back(n);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

EtTrace read_trace(const std::string& folder) {
  EtTrace out;
  out.folder = folder;
  std::map<std::int64_t, std::size_t> places;
  for (const auto& [rank, path] : rank_files(folder)) {
    const EtFile& file = out.files.emplace_back(read_et(path));
    const auto stands_for = file.facts.find(std::string(fact_ranks));
    const std::vector<std::int64_t> ranks =
        stands_for == file.facts.end() ? std::vector{rank} : numbers_in(stands_for->second, path);
    for (const std::int64_t r : ranks)
      if (!places.emplace(r, out.files.size() - 1).second)
        throw InputError(path, fmt::format("is rank {} again", r));
    add_groups_of(file, out.groups);
  }
  for (const auto& [rank, place] : places) {
    if (rank != out.num_ranks())
      throw InputError(folder, fmt::format("has no trace of rank {}", out.num_ranks()),
                       "all ranks of a step meet: export --ranks all or classes");
    out.file_of_rank.push_back(place);
  }
  const std::string groups = (fs::path(folder) / comm_group_file).string();
  if (fs::exists(groups))
    for (auto& [name, ranks] : groups_in(groups)) out.groups[name] = ranks;
  return out;
}

std::string comm_group_json(const EtGroups& groups) {
  // In the order of numbers, not of texts.
  std::vector<std::pair<std::int64_t, const std::vector<std::int64_t>*>> order;
  for (const auto& [name, ranks] : groups) order.emplace_back(std::stoll(name), &ranks);
  std::ranges::sort(order);
  std::string out = "{";
  for (const auto& [number, ranks] : order)
    out +=
        fmt::format("{}\n\"{}\": {}", out.size() > 1 ? "," : "", number, json_text(Json(*ranks)));
  return out + "\n}\n";
}

}  // namespace stepcast::sim
