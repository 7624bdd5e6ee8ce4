#include "sim/confidence/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

constexpr std::pair<const char*, EvidenceTable> tables[] = {
    {"/steps.csv", &Evidence::steps},
    {"/memory.csv", &Evidence::memory},
    {"/died.csv", &Evidence::died},
    {"/fitted.csv", &Evidence::fitted},
    {"/collectives.csv", &Evidence::collectives}};
constexpr const char* pairs_file = "/pairs.csv";
constexpr const char* origin_file = "/origin.toml";

/// Writes a file that says something else now.
bool update(const std::string& path, const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && read_toml_text(path) == text) return false;
  write_whole(path, text);
  return true;
}

}  // namespace

std::vector<std::string> evidence_files(const std::string& folder) {
  std::vector<std::string> out{folder + pairs_file, folder + origin_file};
  for (const auto& [file, member] : tables) out.push_back(folder + file);
  return out;
}

std::vector<Residual> read_table(const std::string& folder, EvidenceTable table) {
  const auto found =
      std::ranges::find(tables, table, [](const auto& entry) { return entry.second; });
  return read_residuals(folder + found->first);
}

Evidence read_evidence(const std::string& folder) {
  Evidence out = read_outline(folder);
  for (const auto& [file, member] : tables) out.*member = read_residuals(folder + file);
  return out;
}

Evidence read_outline(const std::string& folder) {
  Evidence out;
  out.pairs = read_pairs(folder + pairs_file);
  const TomlValue document = read_toml_file(folder + origin_file);
  TableReader origin(document, "");
  out.shift = origin.required("shift", origin.number("shift"));
  out.unmeasured_gpu = origin.required("unmeasured_gpu", origin.number("unmeasured_gpu"));
  out.date = origin.required("date", origin.text("date"));
  out.version = origin.required("version", origin.text("version"));
  origin.finish();
  return out;
}

void write_evidence(const std::string& folder, const Evidence& evidence) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw OutputError(folder, "cannot be made: " + error.message());
  bool changed = false;
  for (const auto& [file, member] : tables)
    changed |= update(folder + file, residuals_csv(evidence.*member));
  changed |= update(folder + pairs_file, pairs_csv(evidence.pairs));
  const std::string shift = fmt::format(
      "shift = {:.2f}\n# The same of a GPU all of whose rows are left out.\nunmeasured_gpu = "
      "{:.2f}\n",
      evidence.shift, evidence.unmeasured_gpu);
  std::error_code ignored;
  const std::string path = folder + origin_file;
  if (!changed && std::filesystem::exists(path, ignored) &&
      read_toml_text(path).find(shift) != std::string::npos)
    return;
  write_whole(path,
              fmt::format("# Written by `stepcast-validate confidence --write scenarios/confidence`"
                          ", with the files\n# beside it: see docs/confidence.md.\n"
                          "date = \"{}\"\nversion = \"{}\"\n"
                          "# How much larger the median error of a kernel becomes when its source "
                          "is left out instead\n# of its shape alone.\n{}",
                          evidence.date, evidence.version, shift));
}

}  // namespace stepcast::sim
