#include "sim/scripts/shell_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scripts/shell_condition.hpp"
#include "sim/scripts/shell_words.hpp"

namespace stepcast::sim {
namespace {

using Values = ShellWords::Values;

/// At most so many, the last with what is left. Blanks that separate go together, others do not.
Values fields_of(std::string_view line, std::string_view gaps, std::size_t most) {
  const auto separates = [&](char c) { return gaps.find(c) != std::string_view::npos; };
  const auto blank = [&](char c) { return (c == ' ' || c == '\t') && separates(c); };
  Values out;
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && blank(line[at])) ++at;
    std::size_t end = out.size() + 1 == most ? line.size() : at;
    while (end < line.size() && !separates(line[end])) ++end;
    out.emplace_back(line.substr(at, end - at));
    for (at = end; at < line.size() && blank(line[at]);) ++at;
    if (at < line.size() && !blank(line[at]) && separates(line[at])) ++at;
  }
  return out;
}

class Shell : public ShellWords {
 public:
  using ShellWords::ShellWords;

  ShellText take(ShellVariables variables) {
    out_.variables = std::move(variables);
    while (at_ < text_.size()) command();
    here_documents();
    return std::move(out_);
  }

 private:
  enum class Kind : std::uint8_t { choice, loop, cases, group };
  struct Block {
    Kind kind;
    bool reads, taken, above;  // this branch; one of them; the block around
    std::string subject{};     // of case
    bool pattern = false;      // one is expected
  };
  struct HereDocument {
    std::string end;
    bool literal, strips;
    std::optional<std::size_t> command;
  };

  bool reads() const { return blocks_.empty() || blocks_.back().reads; }

  void command() {
    skip_blanks();
    if (at_ >= text_.size()) return;
    if (!blocks_.empty() && blocks_.back().kind == Kind::cases && blocks_.back().pattern)
      return pattern();
    switch (look()) {
      case '#':
        return skip_line();
      case '\n':
        step();
        return here_documents();
      case ';':
        if (look(1) == ';') end_of_case();
        ++at_;
        return;
      case '&':
      case '|':
      case '(':
      case ')':
        ++at_;
        return;
      default:
        return simple_command();
    }
  }

  void end_of_case() {
    ++at_;
    if (!blocks_.empty() && blocks_.back().kind == Kind::cases) blocks_.back().pattern = true;
  }

  void pattern() {
    Block& block = blocks_.back();
    if (look() == '\n') return step();
    if (look() == '#') return skip_line();
    if (text_.substr(at_).starts_with("esac")) {
      at_ += 4;
      return blocks_.pop_back();
    }
    if (look() == '(') ++at_;
    bool fits = false;
    while (at_ < text_.size() && look() != ')') {
      Values words;
      const std::size_t before = at_;
      word(words, true);
      if (at_ == before) step();  // '|' or a blank
      for (const std::string& one : words) fits = fits || matches_pattern(one, block.subject);
    }
    if (at_ < text_.size()) ++at_;
    block.reads = block.above && !block.taken && fits;
    block.taken = block.taken || fits;
    block.pattern = false;
  }

  void open(Kind kind, bool taken) { blocks_.push_back({kind, reads() && taken, taken, reads()}); }
  void close() {
    if (!blocks_.empty()) blocks_.pop_back();
  }

  /// The words up to ';', "then", "do" or the end of the line.
  Values condition() {
    Values out;
    bool inside = false;  // [[ ... ]], where '&', '|', '<' are its own
    while (at_ < text_.size()) {
      skip_blanks();
      const char c = look();
      if (c == '\n' || (c == ';' && !inside) || c == '#') break;
      const bool operates = c == '&' || c == '|' || c == '<' || c == '>' || c == '(' || c == ')';
      if (operates) {
        const std::size_t size = look(1) == c && (c == '&' || c == '|') ? 2 : 1;
        out.emplace_back(text_.substr(at_, size));
        at_ += size;
        continue;
      }
      const std::size_t before = at_;
      word(out);
      if (at_ == before) step();
      if (!out.empty() && out.back() == "[[") inside = true;
      if (!out.empty() && out.back() == "]]") inside = false;
    }
    return out;
  }

  bool decided(const Values& words) {
    const std::optional<bool> value = shell_condition(words);
    if (!value && reads())
      out_.notes.push_back(fmt::format("line {}: '{}' is for a machine to say, taken as false",
                                       line_, joined(words)));
    return value.value_or(false);
  }

  void branch(bool taken) {
    if (blocks_.empty()) return;
    Block& block = blocks_.back();
    block.reads = block.above && !block.taken && taken;
    block.taken = block.taken || taken;
  }

  void loop() {
    Values words = condition();
    const bool over = words.size() > 2 && words[1] == "in" && !is_open({words[2]});
    if (over && reads()) {
      set(words[0], {words[2]});
      if (words.size() > 3)
        out_.notes.push_back(fmt::format("line {}: of the values of '{}' the first is taken, {}",
                                         line_, words[0], words[2]));
    }
    open(Kind::loop, over);
  }

  /// A word that steers; false: the command is another.
  bool keyword(const std::string& first) {
    if (first == "if") {
      const bool taken = decided(condition());
      open(Kind::choice, taken);
    } else if (first == "elif") {
      if (!blocks_.empty()) blocks_.back().reads = false;
      const Values words = condition();
      const bool asked = !blocks_.empty() && blocks_.back().above && !blocks_.back().taken;
      branch(asked && decided(words));
    } else if (first == "else") {
      branch(true);
    } else if (first == "fi" || first == "done" || first == "}" || first == "esac") {
      close();
    } else if (first == "while" || first == "until") {
      open(Kind::loop, false);
    } else if (first == "for" || first == "select") {
      loop();
    } else if (first == "case") {
      const Values words = condition();
      open(Kind::cases, false);
      blocks_.back().subject = words.empty() || words[0].starts_with("$") ? "" : words[0];
      blocks_.back().pattern = true;
    } else if (first == "{") {
      open(Kind::group, true);
    } else if (first == "[" || first == "[[") {
      guard(first);
    } else {
      return first == "then" || first == "do";
    }
    return true;
  }

  /// "[ ... ] && command": decides whether the command behind it is read.
  void guard(const std::string& bracket) {
    Values words{bracket};
    const std::string closed = bracket == "[" ? "]" : "]]";
    while (at_ < text_.size() && words.back() != closed && look() != '\n') {
      skip_blanks();
      const std::size_t before = at_;
      word(words);
      if (at_ != before || at_ >= text_.size()) continue;
      const std::size_t size = look(1) == look() ? 2 : 1;
      words.emplace_back(text_.substr(at_, size));
      at_ += size;
    }
    skip_blanks();
    const bool both = look() == '&' && look(1) == '&', either = look() == '|' && look(1) == '|';
    const std::optional<bool> value = shell_condition(words);
    if (both || either) skips_ = value != std::optional(both);
  }

  void simple_command() {
    ShellCommand out;
    out.line = line_;
    std::optional<HereDocument> here;
    bool declares = false;
    while (at_ < text_.size()) {
      skip_blanks();
      const char c = look();
      if (c == '\0' || c == '\n' || c == ';' || c == '|' || c == ')') break;
      if (c == '#') break;
      if (c == '&') {
        if (look(1) != '>') break;
        ++at_;
        continue;
      }
      if (c == '(') {  // a function: read where it stands
        bracketless();
        continue;
      }
      if (c == '<' || c == '>') {
        redirection(out, here);
        continue;
      }
      const auto name = out.words.empty() || declares ? assigned_name() : std::nullopt;
      if (name) {
        auto [key, values] = assignment(*name);
        if (declares)
          assign(key, values);
        else
          out.environment.emplace_back(key, joined(values)), pending_.emplace_back(key, values);
        continue;
      }
      const std::size_t before = at_;
      word(out.words);
      if (at_ == before) step();
      if (out.words.size() == 1 && out.environment.empty() && keyword(out.words[0])) return;
      if (out.words.size() == 1)
        declares = out.words[0] == "export" || out.words[0] == "local" ||
                   out.words[0] == "declare" || out.words[0] == "readonly";
    }
    finish(std::move(out), here);
  }

  void bracketless() {
    ++at_;
    if (look() == ')') ++at_;
  }

  void assign(const std::string& name, const Values& values) {
    if (reads()) set(name, values);
  }

  void finish(ShellCommand out, std::optional<HereDocument>& here) {
    if (out.words.empty() && !skips_)
      for (const auto& [name, values] : pending_) assign(name, values);
    pending_.clear();
    const bool kept = reads() && !out.words.empty() && !skips_;
    if (kept && out.words[0] == "read" && !out.input.empty()) fill(out);
    if (kept && out.words[0] == "unset")
      for (const std::string& name : out.words) out_.variables.erase(name);
    if (kept) out_.commands.push_back(std::move(out));
    skips_ = false;
    if (!here) return;
    if (kept) here->command = out_.commands.size() - 1;
    here_.push_back(std::move(*here));
  }

  /// `IFS=, read -r TP PP <<< "2,4"`: the last variable has the rest, one behind -a all of them.
  void fill(const ShellCommand& command) {
    constexpr std::string_view with_value = "dintNpu";
    std::string gaps = " \t\n";
    if (const auto said = out_.variables.find("IFS"); said != out_.variables.end())
      gaps = joined(said->second);
    for (const auto& [name, value] : command.environment)
      if (name == "IFS") gaps = value;
    std::vector<std::string> names;
    bool array = false;
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i];
      if (word.size() < 2 || word[0] != '-') {
        names.push_back(word);
        continue;
      }
      array = array || word.back() == 'a';
      if (with_value.find(word.back()) != std::string_view::npos) ++i;
    }
    if (names.empty()) return;
    const std::string line = command.input.substr(0, command.input.find('\n'));
    Values fields = fields_of(line, gaps, array ? line.size() + 1 : names.size());
    if (array) return set(names[0], std::move(fields));
    fields.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) set(names[i], {fields[i]});
  }

  void redirection(ShellCommand& command, std::optional<HereDocument>& here) {
    const bool in = look() == '<';
    ++at_;
    const bool document = in && look() == '<' && look(1) != '<';
    if (document) {
      ++at_;
      const bool strips = look() == '-';
      if (strips) ++at_;
      skip_blanks();
      const bool literal = look() == '\'' || look() == '"' || look() == '\\';
      Values end;
      word(end, true);
      here = HereDocument{end.empty() ? "" : end[0], literal, strips, std::nullopt};
      return;
    }
    const bool here_string = in && text_.substr(at_).starts_with("<<");
    while (look() == '>' || look() == '<' || look() == '&') ++at_;
    skip_blanks();
    Values target;
    word(target, true);
    if (!in && !target.empty()) command.output = target[0];
    if (here_string && !target.empty()) command.input = target[0];
    if (!command.words.empty() && !in &&
        (command.words.back() == "1" || command.words.back() == "2"))
      command.words.pop_back();  // 2>&1
  }

  void here_documents() {
    for (const HereDocument& here : here_) {
      std::string text;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        while (here.strips && line.starts_with("\t")) line.remove_prefix(1);
        if (line.ends_with("\r")) line.remove_suffix(1);
        if (line == here.end) break;
        text += std::string(line) + "\n";
      }
      if (here.command) out_.commands[*here.command].input = here.literal ? text : expanded(text);
    }
    here_.clear();
  }

  std::vector<Block> blocks_;
  std::vector<HereDocument> here_;
  bool skips_ = false;  // the command behind a guard
  std::vector<std::pair<std::string, Values>> pending_;
};

}  // namespace

ShellText read_shell(std::string_view text, const std::string& name, ShellVariables variables) {
  return Shell(text, name).take(std::move(variables));
}

}  // namespace stepcast::sim
