#include "sim/study/output_place.hpp"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* format_name = "stepcast results 1";
const std::string log_begin = "results", log_end = ".jsonl";
constexpr const char* ready_name = "ready";  // in the staging folder: what is to be moved

bool is_ours(const std::string& name) {
  for (const char* own : {"sweep.json", "scenario.toml", "results.json", "results.h5", "points"})
    if (name == own) return true;
  return is_log(name);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out.insert(entry.path().filename().string());
  return out;
}

std::string old_in(const std::string& folder) { return folder + "/stepcast.old"; }

/// What stepcast wrote; a file that the user put among the points stays, in stepcast.old.
void remove_old(const fs::path& old) {
  std::error_code error;
  for (const std::string& name : names_in(old))
    if (name != "points") fs::remove(old / name, error);
  const fs::path points = old / "points";
  if (fs::is_directory(fs::symlink_status(points, error)))
    for (const std::string& name : names_in(points))
      if (name.ends_with(".toml") &&
          name.find_first_not_of("0123456789") == name.size() - std::string_view(".toml").size())
        fs::remove(points / name, error);
  fs::remove(points, error);
  fs::remove(old, error);
}

}  // namespace

void refuse_links(const std::string& folder) {
  const fs::path staging = staging_in(folder);
  std::error_code error;
  for (const fs::path& inside :
       {staging, fs::path(old_in(folder)), fs::path(folder) / "points", staging / "points"})
    if (fs::is_symlink(inside, error))
      throw InputError("--out", "'" + inside.string() + "' is a link, which is not followed",
                       "remove it, or take another folder");
}

std::optional<OutputMark> read_mark(const std::string& folder) {
  std::ifstream file(fs::path(folder) / "sweep.json");
  const Json json =
      ordered_json_or_discarded(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!json.is_object() || json.value("format", "") != format_name) return std::nullopt;
  const auto texts = [&](const char* key) { return json.value(key, std::vector<std::string>{}); };
  return OutputMark{json.value("study", ""), json.value("scenario", ""), texts("options"),
                    json.value("from", ""),  json.value("verb", ""),     texts("answer")};
}

void write_mark(const std::string& folder, const OutputMark& mark) {
  Json json{{"format", format_name}, {"study", mark.study}, {"scenario", mark.scenario}};
  if (!mark.options.empty()) json["options"] = mark.options;
  if (!mark.from.empty()) json["from"] = mark.from;
  if (!mark.verb.empty()) json["verb"] = mark.verb;
  if (!mark.answer.empty()) json["answer"] = mark.answer;
  write_whole((fs::path(folder) / "sweep.json").string(), json_text(json, 2) + "\n");
}

void refuse_foreign_files(const std::string& folder, const std::optional<OutputMark>& mark) {
  const fs::path scenario = fs::path(folder) / "scenario.toml";
  std::string foreign;
  if (!mark) {
    for (const std::string& name : names_in(folder))
      if (is_ours(name)) foreign = name;
  } else if (fs::exists(scenario) && id_of_file(scenario) != mark->scenario) {
    foreign = "scenario.toml";
  }
  if (!foreign.empty())
    throw InputError("--out",
                     "'" + (fs::path(folder) / foreign).string() +
                         "' is not what stepcast wrote, and would be overwritten",
                     "move it away, or take another folder");
}

std::string id_of_text(const std::string& text) {
  boost::uuids::name_generator_sha1 generator(boost::uuids::ns::oid());
  return to_string(generator(text));
}

std::string id_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "-";
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return id_of_text(bytes.str());
}

bool is_log(const std::string& name) {
  return name.starts_with(log_begin) && name.ends_with(log_end);
}

std::string log_name(const std::string& part) {
  return log_begin + (part.empty() ? "" : "." + part) + log_end;
}

std::string part_of_log(const std::string& name) {
  const std::size_t begin = log_begin.size() + 1, end = name.size() - log_end.size();
  return end > begin ? name.substr(begin, end - begin) : "";
}

std::string staging_in(const std::string& folder) { return folder + "/stepcast.new"; }

void replace_by_staging(const std::string& folder) {
  const fs::path staging = staging_in(folder);
  std::string names;
  for (const std::string& name : names_in(staging)) names += name + "\n";
  write_whole((staging / ready_name).string(), names);
  finish_replacing(folder);
}

void finish_replacing(const std::string& folder) {
  const fs::path staging = staging_in(folder), old = old_in(folder);
  std::ifstream ready(staging / ready_name);
  if (!ready) return;
  const std::set<std::string> names{std::istream_iterator<std::string>(ready), {}};
  try {
    fs::create_directories(old);
    // A name that has left the staging folder is in place already.
    for (const std::string& name : names_in(folder))
      if (is_ours(name) && (!names.contains(name) || fs::exists(staging / name)))
        fs::rename(fs::path(folder) / name, old / name);
    for (const std::string& name : names)
      if (fs::path(name).filename() == name && fs::exists(staging / name))
        fs::rename(staging / name, fs::path(folder) / name);
    remove_old(old);
    fs::remove_all(staging);
  } catch (const fs::filesystem_error& error) {
    throw OutputError(folder, std::string("cannot be written anew: ") + error.what(),
                      "the new files are in " + staging.string());
  }
}

}  // namespace stepcast::sim
