#include "validate/pasted/pasted_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/check.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "validate/pasted/lines.hpp"

namespace stepcast::validate {
namespace {

using sim::bare;
using sim::says;

class Cutter {
 public:
  Cutter(std::string_view text, const std::string& path, const sim::Catalogue& catalogue)
      : path_(path), catalogue_(catalogue) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      if (line.starts_with("> ")) line.remove_prefix(2);  // quoted
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.emplace_back(line);
      at = end + 1;
    }
    taken_.resize(lines_.size());
  }

  PastedText cut() {
    fences();
    for (std::size_t at = 0; at < lines_.size();) at = piece(at);
    std::ranges::sort(pieces_, {}, &Piece::first);
    for (Piece& one : pieces_)
      out_.configurations.push_back(
          {fmt::format("{}:{}", path_, one.first + 1), std::move(one.text)});
    for (std::size_t i = 0; i < lines_.size(); ++i)
      out_.others += taken_[i] ? "\n" : lines_[i] + "\n";
    return std::move(out_);
  }

 private:
  struct Piece {
    std::size_t first = 0;
    std::string text;
  };

  std::span<const std::string> lines(std::size_t first, std::size_t end) const {
    return std::span(lines_).subspan(first, end - first);
  }
  std::string raw(std::size_t first, std::size_t end) const {
    std::string out;
    for (const std::string& line : lines(first, end)) out += line + "\n";
    return out;
  }
  bool any(std::size_t first, std::size_t end, bool (*is)(std::string_view)) const {
    return std::ranges::any_of(lines(first, end), is);
  }

  /// Whether the lines, written as `text`, are of a format that is known; then they are taken.
  bool take(std::size_t first, std::size_t end, std::string text) {
    if (bare(text).empty() || tries_++ > most_tries) return false;
    const sim::NamedText named{path_, text};
    try {
      if (!sim::read_launch_files({&named, 1}, catalogue_)) return false;
    } catch (const InputError&) {
      return false;
    }
    std::fill(taken_.begin() + static_cast<std::ptrdiff_t>(first),
              taken_.begin() + static_cast<std::ptrdiff_t>(end), true);
    pieces_.push_back({first, std::move(text)});
    return true;
  }

  /// A block as a whole, where nothing in it was printed by a run.
  void fences() {
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      if (!is_fence(lines_[at])) continue;
      std::size_t end = at + 1;
      while (end < lines_.size() && !is_fence(lines_[end])) ++end;
      block(at + 1, end);
      at = end;
    }
  }
  void block(std::size_t first, std::size_t end) {
    while (first < end && says(lines_[first], "'''")) ++first;
    while (end > first && says(lines_[end - 1], "'''")) --end;
    if (first >= end || any(first, end, is_printed_line)) return;
    const std::string text = raw(first, end);
    if (bare(text).starts_with("{")) {
      take(first, end, text);
    } else if (const std::string python = as_yaml_of_python(text); !python.empty()) {
      take(first, end, python);
    } else if (any(first, end, is_argument_line) || any(first, end, is_command_line)) {
      take(first, end, as_shell(lines(first, end)));
    } else if (!says(text, "=")) {  // TOML is read where logs are
      take(first, end, text);
    }
  }

  /// Takes what begins at this line, if anything does; where to go on.
  std::size_t piece(std::size_t at) {
    if (taken_[at] || is_fence(lines_[at]) || bare(lines_[at]).empty()) return at + 1;
    for (const auto one :
         {&Cutter::json, &Cutter::python, &Cutter::bullets, &Cutter::yaml, &Cutter::shell})
      if (const std::size_t end = (this->*one)(at); end > at) return end;
    return at + 1;
  }

  std::size_t json(std::size_t at) {
    const std::string_view line = bare(lines_[at]);
    if (line != "{" && line != "`{" && !line.starts_with("{\"")) return at;
    int depth = 0;
    for (std::size_t end = at; end < lines_.size() && !is_fence(lines_[end]); ++end) {
      for (const char c : lines_[end]) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth > 0) continue;
      std::string text = raw(at, end + 1);
      std::erase(text, '`');
      take(at, end + 1, std::move(text));
      return end + 1;
    }
    return at;
  }

  /// From a call that configures a trainer up to the end of its block.
  std::size_t python(std::size_t at) {
    constexpr std::string_view begins[] = {"TrainingArguments(", "SFTConfig(", "GRPOConfig(",
                                           "DPOConfig("};
    if (!std::ranges::any_of(begins, [&](auto call) { return says(lines_[at], call); })) return at;
    std::size_t first = at, end = at + 1;
    while (first > 0 && !is_fence(lines_[first - 1]) && !taken_[first - 1]) --first;
    while (end < lines_.size() && !is_fence(lines_[end]) && !taken_[end]) ++end;
    const std::string yaml = as_yaml_of_python(raw(first, end));
    return !yaml.empty() && take(at, end, yaml) ? end : at;
  }

  std::size_t bullets(std::size_t at) {
    if (!says(lines_[at], "- compute_environment:") && !says(lines_[at], "- distributed_type:"))
      return at;
    std::size_t end = at + 1;
    while (end < lines_.size() && is_list_line(lines_[end]) &&
           is_key_line(bare(lines_[end]).substr(2)))
      ++end;
    return take(at, end, without_bullets(lines(at, end))) ? end : at;
  }

  /// Keys with values; lists, comments and empty lines between them.
  std::size_t yaml(std::size_t at) {
    if (!is_key_line(lines_[at])) return at;
    constexpr std::size_t least = 3;
    std::size_t keys = 0, end = at, last = at;
    for (; end < lines_.size() && !taken_[end] && !is_fence(lines_[end]); ++end) {
      const std::string_view line = lines_[end];
      const bool key = is_key_line(line);
      if (key) ++keys;
      if (key || is_list_line(line)) last = end;
      if (!key && !is_list_line(line) && !is_comment_line(line) && !bare(line).empty()) break;
    }
    if (keys >= least && !any(at, last + 1, is_printed_line)) take(at, last + 1, raw(at, last + 1));
    return last + 1;
  }

  /// Assignments, a command, its arguments.
  std::size_t shell(std::size_t at) {
    if (!is_assignment_line(lines_[at]) && !is_command_line(lines_[at]) &&
        !is_argument_line(lines_[at]))
      return at;
    std::size_t end = at;
    bool command = false, goes_on = false;
    for (; end < lines_.size() && !taken_[end] && !is_fence(lines_[end]); ++end) {
      const std::string_view line = bare(lines_[end]);
      const bool runs = is_command_line(line) || is_argument_line(line);
      if (!goes_on && !runs && !is_assignment_line(line) && !is_comment_line(line) &&
          !(line.empty() && !command))
        break;
      command = command || runs;
      goes_on = line.ends_with("\\");
    }
    if (end == at) return at;
    if (command) take(at, end, as_shell(lines(at, end)));
    return end;
  }

  static constexpr int most_tries = 200;
  const std::string& path_;
  const sim::Catalogue& catalogue_;
  std::vector<std::string> lines_;
  std::vector<bool> taken_;
  std::vector<Piece> pieces_;
  int tries_ = 0;
  PastedText out_;
};

}  // namespace

PastedText read_pasted(std::string_view text, const std::string& path,
                       const sim::Catalogue& catalogue) {
  return Cutter(text, path, catalogue).cut();
}

}  // namespace stepcast::validate
