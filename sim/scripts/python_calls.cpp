#include "sim/scripts/python_calls.hpp"

#include <algorithm>
#include <vector>

#include "engine/check.hpp"
#include "sim/scripts/shell_text.hpp"

namespace stepcast::sim {
namespace {

constexpr int deepest_call = 40;
constexpr std::size_t most_settings = 10'000;

std::string_view stripped(std::string_view text) {
  constexpr std::string_view whites = " \t\r\n";
  const std::size_t first = text.find_first_not_of(whites);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(whites) - first + 1);
}

bool is_dotted_name(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

/// A class begins with a capital letter.
bool is_function(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last.empty() || last[0] < 'A' || last[0] > 'Z';
}

/// Steps over texts, comments and brackets: the place of the first of `stops` outside of them.
std::size_t find_outside(std::string_view text, std::string_view stops, std::size_t from = 0) {
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const bool triple = text.substr(i, 3) == std::string(3, c);
      const std::string end(triple ? 3 : 1, c);
      std::size_t close = i + end.size();
      while (close < text.size() && text.substr(close, end.size()) != end)
        close += text[close] == '\\' ? 2U : 1U;
      if (close >= text.size()) return std::string_view::npos - 1;  // open
      i = close + end.size() - 1;
    } else if (c == '#') {
      const std::size_t end = text.find('\n', i);
      if (end == std::string_view::npos) return std::string_view::npos;
      i = end - 1;
    } else if (depth == 0 && stops.find(c) != std::string_view::npos) {
      return i;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth < 0) return std::string_view::npos;
    }
  }
  return depth > 0 ? std::string_view::npos - 1 : std::string_view::npos;
}

/// Without the comment behind it; a text that begins on a line above is taken for none.
std::string_view without_comment(std::string_view line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\')
      ++i;
    else if (quote != '\0')
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#' && line.find("\"\"\"", i) == std::string_view::npos)
      return line.substr(0, i);
  }
  return line;
}

std::string without_comments(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_comment(text.substr(at, end - at));
    if (line.size() == end - at || !stripped(line).empty()) out += std::string(line) + "\n";
    at = end + 1;
  }
  return out;
}

class Function {
 public:
  using Value = Settings;  // "" is the value itself, other names are its parts

  Function(const std::map<std::string, Settings>& others,
           const std::map<std::string, Value>& constants, std::string where)
      : others_(others), where_(std::move(where)), variables_(constants) {}

  Settings read(std::string_view body) {
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = find_outside(body, "\n", at);
      if (end == std::string_view::npos - 1)
        throw InputError(where_, "a bracket or quote is never closed");
      statement(stripped(body.substr(at, end - at)));
      at = end == std::string_view::npos ? body.size() : end + 1;
    }
    return std::move(result_);
  }

 private:
  void statement(std::string_view text) {
    if (text.starts_with("return ") || text == "return") {
      result_ = value(stripped(text.substr(std::min<std::size_t>(text.size(), 7))), 0);
      return;
    }
    const std::size_t equals = find_outside(text, "=");
    if (equals >= text.size() || equals + 1 >= text.size() || text[equals + 1] == '=') return;
    const std::string_view left = stripped(text.substr(0, equals));
    if (!is_dotted_name(left)) return;
    const std::size_t dot = left.find('.');
    const Value right = value(stripped(text.substr(equals + 1)), 0);
    Value& variable = variables_[std::string(left.substr(0, dot))];
    if (dot == std::string_view::npos) {
      variable = right;
    } else {
      const std::string path(left.substr(dot + 1));
      leave_out(variable, path + ".");  // another takes its place
      put(variable, path, right);
    }
  }

  static void leave_out(Value& from, const std::string& beginning) {
    std::vector<std::string> gone;
    for (auto at = from.all().lower_bound(beginning);
         at != from.all().end() && at->first.starts_with(beginning); ++at)
      gone.push_back(at->first);
    for (const std::string& name : gone) from.erase(name);
  }

  void put(Value& into, const std::string& path, const Value& from) {
    for (const auto& [name, text] : from.all())
      into.set(name.empty() ? path : path.empty() ? name : path + "." + name, text);
    if (into.all().size() > most_settings) throw InputError(where_, "is no configuration");
  }

  static Value plain(std::string text) {
    Value out;
    out.set("", std::move(text));
    return out;
  }

  Value value(std::string_view text, int depth) {
    if (depth > deepest_call) throw InputError(where_, "is nested more than 40 deep");
    if (text.size() >= 2 && (text[0] == '"' || text[0] == '\''))
      return plain(std::string(text.substr(1, text.size() - 2)));
    if (const auto number = arithmetic(text)) return plain(std::to_string(*number));
    const std::size_t bracket = text.find('(');
    if (bracket != std::string_view::npos && text.back() == ')' &&
        is_dotted_name(text.substr(0, bracket))) {
      // A method of what a call returns, make(x).as_it_is(), is taken as that.
      const std::string_view inside = text.substr(bracket + 1);
      return call(text.substr(0, bracket), inside.substr(0, closing(inside)), depth);
    }
    const auto variable = variables_.find(std::string(text));
    if (variable != variables_.end()) return variable->second;
    return plain(std::string(text));
  }

  /// Where the bracket is closed that was opened before.
  static std::size_t closing(std::string_view inside) {
    for (std::size_t at = 0; at < inside.size();) {
      const std::size_t comma = find_outside(inside, ",)", at);
      if (comma >= inside.size()) break;
      if (inside[comma] == ')') return comma;
      at = comma + 1;
    }
    return inside.size() - 1;
  }

  Value call(std::string_view name, std::string_view arguments, int depth) {
    // changed(cfg) is cfg with what the function sets, if that is known.
    const auto given = variables_.find(std::string(stripped(arguments)));
    const bool changes = given != variables_.end() && given->second.all().size() > 1;
    const auto other = others_.find(std::string(name));
    if (other != others_.end() || (changes && is_function(name))) {
      Value out = changes ? given->second : Value();
      if (other == others_.end()) return out;
      for (const auto& [part, text] : other->second.all())
        if (!part.empty() || !out.has("")) out.set(part, text);
      return out;
    }
    if (name == "cast")  // (type, value)
      return value(stripped(arguments.substr(
                       std::min(find_outside(arguments, ","), arguments.size() - 1) + 1)),
                   depth + 1);
    Value out;
    std::string_view of = name.ends_with(".Config") ? name.substr(0, name.size() - 7) : name;
    out.set("", std::string(of.substr(of.rfind('.') + 1)));
    bool first = true;
    for (std::string_view rest = arguments; !stripped(rest).empty();) {
      const std::size_t end = std::min(find_outside(rest, ","), rest.size());
      const std::string_view one = stripped(rest.substr(0, end));
      const std::size_t equals = find_outside(one, "=");
      if (equals < one.size() && is_dotted_name(stripped(one.substr(0, equals))))
        put(out, std::string(stripped(one.substr(0, equals))),
            value(stripped(one.substr(equals + 1)), depth + 1));
      else if (first && one.size() >= 2 && (one[0] == '"' || one[0] == '\''))
        out.set("", std::string(one.substr(1, one.size() - 2)));
      else if (const auto known = variables_.find(std::string(one));
               first && known != variables_.end() && known->second.find("") != nullptr)
        out.set("", *known->second.find(""));
      first = false;
      rest = end < rest.size() ? rest.substr(end + 1) : std::string_view();
    }
    return out;
  }

  const std::map<std::string, Settings>& others_;
  std::string where_;
  std::map<std::string, Value> variables_;
  Settings result_;
};

/// NAME = "text" or NAME: int = 16 * 1024, outside of every function.
void add_constant(std::string_view line, std::map<std::string, Settings>& out) {
  const std::size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return;
  const std::string_view name = line.substr(0, std::min(line.find(':'), equals));
  if (!is_dotted_name(name)) return;
  const std::string_view value = stripped(without_comment(line.substr(equals + 3)));
  const bool quoted = value.size() > 1 && (value[0] == '"' || value[0] == '\'') &&
                      value.find(value[0], 1) == value.size() - 1;
  const auto number = quoted ? std::nullopt : arithmetic(value);
  if (!quoted && !number) return;
  const std::string literal =
      quoted ? std::string(value.substr(1, value.size() - 2)) : std::to_string(*number);
  Settings found;
  found.set("", literal);
  out[std::string(name)] = std::move(found);
}

}  // namespace

std::map<std::string, Settings> read_python_calls(std::string_view text, const std::string& name) {
  std::map<std::string, Settings> out, constants;
  struct Body {
    std::string function, where, text;
  };
  std::vector<Body> bodies;
  std::string function, body;
  int line_number = 0, begun = 0;
  const auto finish = [&] {
    if (!function.empty())
      bodies.push_back({function, name + ":" + std::to_string(begun), without_comments(body)});
    function.clear();
    body.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++line_number;
    const bool top = !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != '#' &&
                     line[0] != ')' && line[0] != '\r';
    if (top) finish();
    if (top) add_constant(line, constants);
    if (line.starts_with("def ")) {
      function = line.substr(4, line.find('(') - 4);
      begun = line_number;
    } else if (!function.empty() && !line.starts_with(")")) {
      body += std::string(line) + "\n";
    }
  }
  finish();
  for (int pass = 0; pass < 2; ++pass)  // one may call another that stands below it
    for (const Body& one : bodies) {
      Settings found = Function(out, constants, one.where).read(one.text);
      if (!found.empty()) out[one.function] = std::move(found);
    }
  return out;
}

}  // namespace stepcast::sim
