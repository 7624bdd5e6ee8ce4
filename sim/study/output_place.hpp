// Whose the files of an output folder are, and how those of another study take their place at once.
// Knows no results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::sim {

/// What sweep.json says.
struct OutputMark {
  std::string study;     // hash of the study's document and options
  std::string scenario;  // hash of the scenario.toml that stepcast wrote; empty: none yet
  std::vector<std::string> options{};  // that changed answers: "ignore-memory"
  std::string from{};                  // the file that it was read from: what it names is beside it
  std::string verb{};  // "search": whose answer comes of plans; empty: a sweep or a run
  std::vector<std::string> answer{};  // of such a verb: "search.json HASH" of each file it wrote
};

/// None where the folder is not stepcast's.
std::optional<OutputMark> read_mark(const std::string& folder);
void write_mark(const std::string& folder, const OutputMark& mark);

/// Throws InputError (where: --out) when a file that would be overwritten is not stepcast's.
void refuse_foreign_files(const std::string& folder, const std::optional<OutputMark>& mark);

/// Throws InputError (where: --out) when a folder in it, where stepcast writes and deletes, is a
/// link.
void refuse_links(const std::string& folder);

/// Hash of a text, and of a file ("-" where there is none): a UUID of version 5 (RFC 4122), 122
/// bits of SHA-1.
std::string id_of_text(const std::string& text);
std::string id_of_file(const std::filesystem::path& path);

/// "results.jsonl", "results.2-of-8.jsonl"
bool is_log(const std::string& name);
std::string log_name(const std::string& part);
/// "2-of-8"; of a whole study's ""
std::string part_of_log(const std::string& name);

/// Where another study's files wait until they are whole.
std::string staging_in(const std::string& folder);

/// Puts all files of the staging folder in the place of the folder's own. Files of others stay.
/// Ended half-way, finish_replacing() does the rest. Throws OutputError.
void replace_by_staging(const std::string& folder);
void finish_replacing(const std::string& folder);

}  // namespace stepcast::sim
