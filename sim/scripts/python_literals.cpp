#include "sim/scripts/python_literals.hpp"

#include <algorithm>
#include <optional>

#include "sim/scripts/text_pieces.hpp"

namespace stepcast::sim {
namespace {

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Without comments and what stands in three quotes.
std::string code_of(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view three = text.substr(at, 3);
    if (three == "\"\"\"" || three == "'''") {
      const std::size_t end = text.find(three, at + 3);
      at = end == std::string_view::npos ? text.size() : end + 3;
    } else if (c == '"' || c == '\'') {
      const std::size_t end =
          std::min(text.find_first_of(std::string{c, '\n'}, at + 1), text.size());
      out += text.substr(at, end + 1 - at);
      at = end + 1;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

/// Limits on a text that is no script.
constexpr std::size_t most_calls = 256, longest_call = 1 << 16;

class Reader {
 public:
  explicit Reader(std::string_view text) : code_(code_of(text)) {}

  std::vector<PythonCall> calls(const std::vector<std::string>& functions) {
    std::vector<PythonCall> out;
    for (std::size_t at = 0; at < code_.size() && out.size() < most_calls; ++at) {
      if (code_[at] == '"' || code_[at] == '\'') {
        at = end_of_text(code_, at);
      } else if (code_[at] == '\n' || at == 0) {
        variable(at);
      } else if (code_[at] == '(') {
        std::size_t first = at;
        while (first > 0 && in_name(code_[first - 1])) --first;
        std::string name = code_.substr(first, at - first);
        if (std::ranges::find(functions, name) != functions.end())
          out.push_back({std::move(name), arguments(at + 1)});
      }
    }
    return out;
  }

 private:
  static std::size_t end_of_text(std::string_view code, std::size_t at) {
    return std::min(code.find(code[at], at + 1), code.size());
  }

  std::optional<std::string> literal(std::string_view said) const {
    const std::string_view value = bare(said);
    if (value.empty()) return std::nullopt;
    if (value.front() == '"' || value.front() == '\'') {
      const bool whole = value.size() > 1 && end_of_text(value, 0) == value.size() - 1;
      return whole ? std::optional(std::string(value.substr(1, value.size() - 2))) : std::nullopt;
    }
    if (value.front() == '[' && value.find('(') == std::string_view::npos)
      return std::string(value);
    if (const auto known = variables_.find(std::string(value)); known != nullptr) return *known;
    const bool word = value == "True" || value == "False";
    const bool number = value.find_first_not_of("0123456789.e-_") == std::string_view::npos &&
                        value.find_first_of("0123456789") == 0;
    return word || number ? std::optional(std::string(value)) : std::nullopt;
  }

  /// "name = literal" on the line that begins here.
  void variable(std::size_t at) {
    const std::size_t first = code_.find_first_not_of(" \t", at == 0 ? 0 : at + 1);
    if (first == std::string::npos || code_[first] == '\n') return;
    const std::string_view line = std::string_view(code_).substr(
        first, std::min(code_.find('\n', first), code_.size()) - first);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.substr(equals, 2) == "==") return;
    const std::string_view name = bare(line.substr(0, equals));
    if (name.empty() || !std::ranges::all_of(name, in_name)) return;
    if (const auto value = literal(line.substr(equals + 1)))
      variables_.set_usual(std::string(name), *value);
  }

  Settings arguments(std::size_t at) const {
    Settings out;
    std::size_t first = at, place = 0;
    const std::size_t most = std::min(code_.size(), at + longest_call);
    int depth = 0;
    const auto take = [&](std::size_t end) {
      argument(std::string_view(code_).substr(first, end - first), place++, out);
      first = end + 1;
    };
    for (; at < most; ++at) {
      const char c = code_[at];
      if (c == '"' || c == '\'') at = end_of_text(code_, at);
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ',' && depth == 0) take(at);
      if ((c == ')' || c == ']' || c == '}') && depth-- == 0) break;
    }
    take(std::min(at, code_.size()));
    return out;
  }

  void argument(std::string_view said, std::size_t place, Settings& out) const {
    const std::size_t equals = said.find('=');
    const std::string_view name =
        equals == std::string_view::npos ? "" : bare(said.substr(0, equals));
    const bool named = !name.empty() && std::ranges::all_of(name, in_name);
    if (const auto value = literal(named ? said.substr(equals + 1) : said))
      out.set_usual(named ? std::string(name) : std::to_string(place), *value);
  }

  std::string code_;
  Settings variables_;
};

}  // namespace

std::vector<PythonCall> python_calls_of(std::string_view text,
                                        const std::vector<std::string>& functions) {
  return Reader(text).calls(functions);
}

}  // namespace stepcast::sim
