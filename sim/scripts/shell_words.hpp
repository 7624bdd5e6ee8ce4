// Words of a shell's text with their variables put in: the half of shell_text.cpp that knows
// no command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scripts/shell_text.hpp"

namespace stepcast::sim {

class ShellWords {
 public:
  using Values = std::vector<std::string>;

  ShellWords(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  static std::string joined(const Values& values);
  /// A text is needed that is not known: "$1", "$(hostname)".
  static bool is_open(const Values& values);

 protected:
  struct Expansion {
    Values values;
    bool list = false;  // "${A[@]}": each a word of its own, also in quotes
  };

  [[noreturn]] void fail(const std::string& what) const;
  char look(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_blanks();
  void skip_line();

  void set(const std::string& name, Values values);
  Values value_of(const std::string& name) const;
  /// As in double quotes, without the quotes; those inside of ${NAME:-"..."} go as well.
  std::string expanded(const std::string& text, bool unquotes = false);
  /// One word; an unquoted value is cut at its blanks unless it is assigned.
  void word(Values& out, bool assigned = false);
  /// NAME= or NAME+= at `at_`; none: no assignment.
  std::optional<std::string> assigned_name() const;
  std::pair<std::string, Values> assignment(const std::string& name);

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0, size_ = 0;
  int line_ = 1, depth_ = 0;
  ShellText out_;

 private:
  std::string bracketed(char open, char close);
  Values sum(const std::string& body) const;
  Expansion parameter(const std::string& body);
  Expansion expansion();
  void quoted_part(std::string& now, Values& before);
  void array(Values& out);
};

}  // namespace stepcast::sim
