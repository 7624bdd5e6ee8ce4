#include "calibrate/rows/text_lines.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::int64_t largest_file = std::int64_t{64} << 20;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Without the escape sequences that colour a terminal: ESC [ ... letter.
std::string without_colours(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      for (i += 2; i < line.size() && (line[i] < '@' || line[i] > '~');) ++i;
    } else if (line[i] != '\r') {
      out += line[i];
    }
  }
  return out;
}

std::size_t digits_from(std::string_view line, std::size_t at) {
  while (at < line.size() && is_digit(line[at])) ++at;
  return at;
}

/// Whether `line` has from `at` on the form, whose 'd' stand for digits: "dddd-dd-dd".
bool has_form(std::string_view line, std::size_t at, std::string_view form) {
  if (line.size() < at + form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? !is_digit(line[at + i]) : line[at + i] != form[i]) return false;
  return true;
}

/// The length of "2026-11-22T16:29:33.120Z ", also "[2026-11-22 16:29:33] "; else 0.
std::size_t timestamp_prefix(std::string_view line) {
  std::size_t at = line.starts_with('[') ? 1 : 0;
  const bool date =
      has_form(line, at, "dddd-dd-ddTdd:dd:dd") || has_form(line, at, "dddd-dd-dd dd:dd:dd");
  if (!date) return 0;
  at += std::string_view("dddd-dd-dd dd:dd:dd").size();
  if (at < line.size() && (line[at] == '.' || line[at] == ',')) at = digits_from(line, at + 1);
  if (at < line.size() && line[at] == 'Z') ++at;
  if (has_form(line, at, "+dd:dd") || has_form(line, at, "-dd:dd")) at += 6;
  if (at < line.size() && line[at] == ']') ++at;
  if (at < line.size() && line[at] == ':') ++at;
  return at < line.size() && line[at] == ' ' ? at + 1 : at == line.size() ? at : 0;
}

/// The length of what launchers put before a line: "[1,0]<stdout>:" (mpirun --tag-output, whose
/// newer versions name the job in the brackets), "12: " (srun --label), a timestamp; else 0.
std::size_t launcher_prefix(std::string_view line) {
  constexpr std::size_t longest_tag = 120;
  for (const std::string_view tag : {"]<stdout>:", "]<stderr>:"})
    if (const std::size_t at = line.substr(0, longest_tag).find(tag); at != std::string_view::npos)
      return at + tag.size();
  if (const std::size_t end = timestamp_prefix(line); end > 0) return end;
  const std::size_t colon = digits_from(line, 0);
  return colon > 0 && line.substr(colon).starts_with(": ") ? colon + 2 : 0;
}

}  // namespace

std::string TextFile::name() const { return std::filesystem::path(path).filename().string(); }

void TextFile::fail(std::int64_t line, const std::string& what, const std::string& hint) const {
  throw InputError(path + ":" + std::to_string(line), what, hint);
}

TextFile parse_text(std::string path, std::string_view text) {
  TextFile file;
  file.path = std::move(path);
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), raw.size() + 1));
    ++number;
    if (raw.find('\0') != std::string_view::npos)
      file.fail(number, "a byte that is no text", "is this a log?");
    std::string line = without_colours(raw);
    while (const std::size_t prefix = launcher_prefix(line)) line.erase(0, prefix);
    file.lines.push_back({number, std::move(line)});
  }
  return file;
}

std::string read_bytes(const std::string& path) {
  return sim::read_input(path, largest_file, "cut out the part that is meant");
}

void write_bytes(const std::string& path, const std::string& bytes) {
  sim::write_whole(path, bytes);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void Ignored::add(const std::string& what, std::int64_t line) {
  Reason& reason = reasons_[what];
  if (reason.count++ == 0) reason.first_line = line;
}

void Ignored::note(const std::string& sentence, std::int64_t line) {
  reasons_[sentence] = {.first_line = line, .count = 1, .note = true};
}

std::string Ignored::text(const std::string& path) const {
  std::string out;
  for (const auto& [what, reason] : reasons_) {
    out += path + ":" + std::to_string(reason.first_line) + (reason.note ? ": " : ": ignored ");
    if (reason.count > 1) out += std::to_string(reason.count) + " x ";
    out += what + "\n";
  }
  return out;
}

}  // namespace stepcast::calibrate
