#include "sim/scripts/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

using Values = ShellWords::Values;

constexpr std::size_t most_text = 1 << 20;  // of all values together
constexpr int deepest_expansion = 40;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// NUL counts as a blank: look() returns it at the end of the text, and one inside is skipped.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\0'; }

/// An unquoted value, cut at its blanks unless it is assigned.
void cut(const std::string& value, bool assigned, std::string& now, bool& begun, Values& out) {
  const bool whole = assigned || value.starts_with("$(");
  for (const char c : value) {
    if (!whole && (is_blank(c) || c == '\n')) {
      if (begun) out.push_back(std::move(now));
      now.clear();
      begun = false;
    } else {
      now += c;
      begun = true;
    }
  }
}

}  // namespace

std::string ShellWords::joined(const Values& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : " ") + value;
  return out;
}

bool ShellWords::is_open(const Values& values) {
  return std::ranges::any_of(values, [](const auto& v) { return v.starts_with("$"); });
}

void ShellWords::fail(const std::string& what) const {
  throw InputError(name_ + ":" + std::to_string(line_), what);
}

void ShellWords::skip_blanks() {
  while (at_ < text_.size()) {
    if (is_blank(look()))
      ++at_;
    else if (look() == '\\' && (look(1) == '\n' || look(1) == '\r'))
      ++at_, step();
    else
      return;
  }
}

void ShellWords::skip_line() {
  while (at_ < text_.size() && look() != '\n') ++at_;
}

void ShellWords::set(const std::string& name, Values values) {
  for (const std::string& value : values) size_ += value.size() + 1;
  if (size_ > most_text) fail("its variables grow beyond 1 MiB");
  out_.variables[name] = std::move(values);
}

Values ShellWords::value_of(const std::string& name) const {
  const auto at = out_.variables.find(name);
  return at != out_.variables.end() ? at->second : Values{"$" + name};
}

/// The text up to where brackets are even again; `at_` stands behind it.
std::string ShellWords::bracketed(char open, char close) {
  int depth = 1;
  const std::size_t begin = at_;
  for (char quote = '\0'; at_ < text_.size(); step()) {
    const char c = look();
    if (c == '\\' && at_ + 1 < text_.size()) {
      step();
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      const std::string out(text_.substr(begin, at_ - begin));
      step();
      return out;
    }
  }
  fail(fmt::format("a '{}' is never closed", open));
}

/// As in double quotes, without the quotes.
std::string ShellWords::expanded(const std::string& text, bool unquotes) {
  if (++depth_ > deepest_expansion) fail("it is nested more than 40 deep");
  ShellWords part(text, name_);
  part.line_ = line_;
  part.depth_ = depth_;
  part.out_.variables.swap(out_.variables);
  std::string now;
  Values before;
  while (part.at_ < part.text_.size()) {
    const bool quote = part.look() == '"' || part.look() == '\'';
    if (unquotes && quote)
      part.step();
    else
      part.quoted_part(now, before);
  }
  out_.variables.swap(part.out_.variables);
  --depth_;
  before.push_back(now);
  return joined(before);
}

/// Names in it are variables, with '$' or without.
Values ShellWords::sum(const std::string& body) const {
  std::string text;
  for (std::size_t i = 0; i < body.size();) {
    if (is_letter(body[i]) && !is_digit(body[i])) {
      std::size_t end = i;
      while (end < body.size() && is_letter(body[end])) ++end;
      text += joined(value_of(body.substr(i, end - i)));
      i = end;
    } else {
      if (body[i] != '$' && body[i] != '{' && body[i] != '}') text += body[i];
      ++i;
    }
  }
  const auto value = arithmetic(text);
  return {value ? std::to_string(*value) : "$((" + body + "))"};
}

/// What stands in ${...}.
ShellWords::Expansion ShellWords::parameter(const std::string& body) {
  std::size_t end = 0;
  while (end < body.size() && is_letter(body[end])) ++end;
  const std::string name = body.substr(0, end);
  std::string rest = body.substr(end);
  Values values = value_of(name);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) rest = rest.substr(3);
  if (all && is_open(values) && values.size() == 1 && values[0] == "$" + name) values = {};
  if (name.empty()) return {{body == "@" || body == "*" ? "" : "${" + body + "}"}, false};
  if (rest.empty()) return {std::move(values), all};
  if (rest.starts_with("[")) {
    const auto index = arithmetic(rest.substr(1, rest.find(']') - 1));
    const bool there = index && *index >= 0 && *index < std::ssize(values);
    return {{there ? values[static_cast<std::size_t>(*index)] : "${" + body + "}"}, false};
  }
  const bool colon = rest.front() == ':';
  const char how = rest.size() > (colon ? 1U : 0U) ? rest[colon ? 1 : 0] : '\0';
  const std::string other = rest.size() > (colon ? 2U : 1U) ? rest.substr(colon ? 2 : 1) : "";
  const bool said = !is_open(values) && !(colon && joined(values).empty());
  if (how == '-' || how == '=') {
    if (said) return {std::move(values), all};
    Values usual{expanded(other, true)};
    if (how == '=') set(name, usual);
    return {std::move(usual), false};
  }
  if (how == '+') return {{said ? expanded(other, true) : ""}, false};
  if (how == '?') return {std::move(values), all};
  return {{"${" + body + "}"}, false};
}

/// At a '$' or '`'.
ShellWords::Expansion ShellWords::expansion() {
  if (look() == '`') {
    ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && look() != '`') step();
    if (at_ == text_.size()) fail("a '`' is never closed");
    const std::string inside(text_.substr(begin, at_ - begin));
    ++at_;
    return {{"$(" + inside + ")"}, false};
  }
  ++at_;
  if (look() == '(' && look(1) == '(') {
    at_ += 2;
    const std::string inside = bracketed('(', ')');
    if (look() == ')') ++at_;
    return {sum(inside), false};
  }
  if (look() == '(') {
    ++at_;
    return {{"$(" + bracketed('(', ')') + ")"}, false};
  }
  if (look() == '{') {
    ++at_;
    return parameter(bracketed('{', '}'));
  }
  if (look() == '@' || look() == '*') {
    ++at_;
    return {{}, true};
  }
  if (!is_letter(look())) return {{"$"}, false};
  const std::size_t begin = at_;
  if (is_digit(look()))
    ++at_;
  else
    while (at_ < text_.size() && is_letter(look())) ++at_;
  return {value_of(std::string(text_.substr(begin, at_ - begin))), false};
}

/// One step inside of double quotes: words that are whole go to `before`.
void ShellWords::quoted_part(std::string& now, Values& before) {
  const char c = look();
  if (c == '\\' && look(1) != '\0') {
    step();
    if (look() != '\n') {
      if (look() != '"' && look() != '$' && look() != '\\' && look() != '`') now += '\\';
      now += look();
    }
    step();
  } else if (c == '$' || c == '`') {
    const Expansion found = expansion();
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      if (i > 0 && found.list) {
        before.push_back(now);
        now.clear();
      } else if (i > 0) {
        now += ' ';
      }
      now += found.values[i];
    }
  } else {
    now += c;
    step();
  }
  if (now.size() > most_text) fail("its variables grow beyond 1 MiB");
}

/// One word; an unquoted value is cut at its blanks unless it is assigned.
void ShellWords::word(Values& out, bool assigned) {
  std::string now;
  bool begun = false;
  constexpr std::string_view ends = " \t\r\n;|&<>()";
  while (at_ < text_.size() && ends.find(look()) == std::string_view::npos) {
    const char c = look();
    if (c == '\\') {
      step();
      if (at_ < text_.size() && look() != '\n') now += look(), begun = true;
      if (at_ < text_.size()) step();
    } else if (c == '\'') {
      step();
      const std::size_t begin = at_;
      while (at_ < text_.size() && look() != '\'') step();
      if (at_ == text_.size()) fail("a quote ' is never closed");
      now += text_.substr(begin, at_ - begin);
      step();
      begun = true;
    } else if (c == '"') {
      step();
      const std::size_t begin = at_;
      while (at_ < text_.size() && look() != '"') quoted_part(now, out);
      if (at_ == text_.size()) fail("a quote \" is never closed");
      step();
      const std::string_view inside = text_.substr(begin, at_ - begin - 1);
      const bool none = now.empty() && (inside == "$@" || inside.ends_with("[@]}"));
      if (!none) begun = true;
    } else if (c == '$' || c == '`') {
      cut(joined(expansion().values), assigned, now, begun, out);
    } else {
      now += c;
      begun = true;
      ++at_;
    }
  }
  if (begun) out.push_back(std::move(now));
}

/// NAME= or NAME+= at `at_`; none: no assignment.
std::optional<std::string> ShellWords::assigned_name() const {
  std::size_t end = at_;
  while (end < text_.size() && is_letter(text_[end])) ++end;
  if (end == at_ || is_digit(text_[at_])) return std::nullopt;
  const std::string_view rest = text_.substr(end);
  if (!rest.starts_with("=") && !rest.starts_with("+=")) return std::nullopt;
  return std::string(text_.substr(at_, end - at_));
}

std::pair<std::string, Values> ShellWords::assignment(const std::string& name) {
  at_ += name.size();
  const bool adds = look() == '+';
  at_ += adds ? 2 : 1;
  Values values = adds ? value_of(name) : Values{};
  if (is_open(values) && values.size() == 1 && values[0] == "$" + name) values.clear();
  Values added;
  if (look() == '(') {
    ++at_;
    array(added);
    values.insert(values.end(), added.begin(), added.end());
    return {name, std::move(values)};
  }
  word(added, true);
  return {name, {joined(values) + joined(added)}};
}

void ShellWords::array(Values& out) {
  while (true) {
    skip_blanks();
    if (at_ >= text_.size()) fail("an array's '(' is never closed");
    if (look() == ')') return ++at_, void();
    if (look() == '#')
      skip_line();
    else if (look() == '\n')
      step();
    else if (const std::size_t before = at_; word(out), at_ == before)
      step();  // '|' and their like mean nothing here
  }
}

}  // namespace stepcast::sim
