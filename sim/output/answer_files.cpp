#include "sim/output/answer_files.hpp"

#include <algorithm>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/study/output_place.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// As the mark has it.
std::string answer_entry(const std::string& name, const std::string& id) { return name + " " + id; }
std::string name_in(const std::string& entry) { return entry.substr(0, entry.rfind(' ')); }

}  // namespace

void write_answer_files(const std::string& folder, const NamedTexts& files) {
  OutputMark mark = read_mark(folder).value();
  const std::vector<std::string> before = std::move(mark.answer);
  const auto is_ours = [&](const std::string& name) {
    return std::ranges::count(before, answer_entry(name, id_of_file(fs::path(folder) / name))) > 0;
  };
  mark.answer.clear();
  for (const auto& [name, content] : files) {
    const fs::path path = fs::path(folder) / name;
    if (fs::exists(path) && !is_ours(name))
      throw InputError("--out", "'" + path.string() + "' is there already", "name another folder");
    mark.answer.push_back(answer_entry(name, id_of_text(content)));
  }
  std::vector<std::string> gone;
  for (const std::string& entry : before)
    if (std::ranges::count(files, name_in(entry), &NamedTexts::value_type::first) == 0 &&
        is_ours(name_in(entry)))
      gone.push_back(name_in(entry));
  OutputMark both = mark;  // wherever it is killed, what is there is ours
  both.answer.insert(both.answer.end(), before.begin(), before.end());
  write_mark(folder, both);
  write_together(folder, files);
  for (const std::string& name : gone) fs::remove(fs::path(folder) / name);
  write_mark(folder, mark);
}

}  // namespace stepcast::sim
