#include "sim/scripts/shell_condition.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {
namespace {

using Test = std::optional<bool>;
using Tested = std::span<const std::string>;

bool is_command(const std::string& word) { return word.find("$(") != std::string::npos; }

/// A variable that nobody set, "$NAME", is empty.
std::string value_of(const std::string& word) { return word.starts_with("$") ? "" : word; }

Test compared(const std::string& left, const std::string& by, const std::string& right) {
  if (is_command(left) || is_command(right)) return std::nullopt;
  const std::string a = value_of(left), b = value_of(right);
  if (by == "=" || by == "==") return matches_pattern(b, a);
  if (by == "!=") return !matches_pattern(b, a);
  const auto x = integer_in(a), y = integer_in(b);
  if (!x || !y) return std::nullopt;
  if (by == "-eq") return *x == *y;
  if (by == "-ne") return *x != *y;
  if (by == "-gt") return *x > *y;
  if (by == "-ge") return *x >= *y;
  if (by == "-lt") return *x < *y;
  if (by == "-le") return *x <= *y;
  return std::nullopt;
}

Test tested(Tested words) {
  if (words.empty()) return false;
  if (words.front() == "!") {
    const Test rest = tested(words.subspan(1));
    return rest ? Test(!*rest) : std::nullopt;
  }
  if (words.size() == 1 && !is_command(words[0])) return !value_of(words[0]).empty();
  if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n") && !is_command(words[1]))
    return value_of(words[1]).empty() == (words[0] == "-z");
  if (words.size() == 3) return compared(words[0], words[1], words[2]);
  return std::nullopt;
}

/// The parts between the word, joined by `join`; none decides nothing unless the others do.
template <class Part>
Test parts(Tested words, const char* between, bool decides, Part part) {
  Test out = !decides;
  while (true) {
    const auto end = std::ranges::find(words, between);
    const auto size = static_cast<std::size_t>(end - words.begin());
    const Test one = part(words.first(size));
    if (one == Test(decides)) return decides;
    if (!one) out = std::nullopt;
    if (end == words.end()) return out;
    words = words.subspan(size + 1);
  }
}

Test inner(Tested words) {
  return parts(words, "||", true, [](Tested some) {
    return parts(some, "&&", false, [](Tested one) { return tested(one); });
  });
}

/// One command of a condition.
Test command(Tested words) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "!") {
    const Test rest = command(words.subspan(1));
    return rest ? Test(!*rest) : std::nullopt;
  }
  if (words.front() == "true" || words.front() == "false")
    return words.size() == 1 ? Test(words.front() == "true") : std::nullopt;
  if (words.front() == "test") return inner(words.subspan(1));
  const bool one = words.front() == "[" && words.back() == "]";
  const bool two = words.front() == "[[" && words.back() == "]]";
  return one || two ? inner(words.subspan(1, words.size() - 2)) : std::nullopt;
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

Test shell_condition(Tested words) {
  // "[[ a && b ]] || [ c ]": those inside of brackets are theirs.
  std::vector<std::vector<std::string>> commands(1);
  std::vector<std::string> between;
  bool inside = false;
  for (const std::string& word : words) {
    inside = inside ? word != "]]" && word != "]" : word == "[[" || word == "[";
    if (!inside && (word == "&&" || word == "||")) {
      between.push_back(word);
      commands.emplace_back();
    } else {
      commands.back().push_back(word);
    }
  }
  Test out = command(commands.front());
  for (std::size_t i = 0; i < between.size(); ++i) {
    const bool decides = between[i] == "||";
    if (out == Test(decides)) continue;
    const Test next = command(commands[i + 1]);
    out = next == Test(decides) ? next : !out ? out : next;
  }
  return out;
}

}  // namespace stepcast::sim
