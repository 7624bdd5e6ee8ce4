#include "sim/files/toml_plain.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stepcast::sim {
namespace {

constexpr int most_levels = 8;  // far below what read_toml() allows

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}
constexpr bool is_plain(char c) { return (c >= ' ' && c <= '~') || c == '\t'; }

/// Bytes of a text between its quotes.
constexpr std::array<bool, 256> in_texts = [] {
  std::array<bool, 256> out{};
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    const char c = static_cast<char>(byte);
    out[byte] = is_plain(c) && c != '"' && c != '\\';
  }
  return out;
}();

/// Every function but the last is false, or nothing, where the text is not plain.
class PlainReader {
 public:
  PlainReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::optional<TomlValue> document() {
    TomlValue root = toml_table(place());
    TomlValue* table = &root;
    while (true) {
      if (!skip_blank()) return std::nullopt;
      if (at_ >= text_.size()) return root;
      if (text_[at_] == '[')
        table = header(root);
      else if (!entry(*table, 1))
        table = nullptr;
      if (table == nullptr || !end_line()) return std::nullopt;
    }
  }

 private:
  /// "[a.b]", a table that is new; null for others.
  TomlValue* header(TomlValue& root) {
    const std::size_t begin = ++at_;
    TomlValue* table = &root;
    for (int level = 1; level < most_levels; ++level) {
      const std::string_view name = bare_key(), path = text_.substr(begin, at_ - begin);
      if (name.empty() || at_ >= text_.size()) return nullptr;
      const bool last = text_[at_] == ']';
      if (!last && text_[at_] != '.') return nullptr;
      ++at_;
      TomlValue* inner = table->find(name);
      // No inline table is gone on with, nor what is none.
      if (inner != nullptr && (last || std::ranges::count(headers_, path) == 0)) return nullptr;
      if (inner == nullptr) {
        inner = &add(*table, name, toml_table(place()));
        headers_.push_back(path);
      }
      table = inner;
      if (last) return table;
    }
    return nullptr;
  }

  bool entry(TomlValue& table, int level) {
    const std::string_view name = key();
    skip_spaces();
    if (name.empty() || !take('=') || table.find(name) != nullptr) return false;
    skip_spaces();
    std::optional<TomlValue> found = value(level);
    if (found) add(table, name, *std::move(found));
    return found.has_value();
  }

  static TomlValue& add(TomlValue& table, std::string_view key, TomlValue value) {
    std::string where = value.where;
    table.table()->push_back({std::string(key), std::move(where), std::move(value)});
    return table.table()->back().value;
  }

  std::optional<TomlValue> value(int level) {
    if (at_ >= text_.size() || level > most_levels) return std::nullopt;
    const char first = text_[at_];
    if (first == '"') return quoted();
    if (first == '[') return array(level);
    if (first == '{') return inline_table(level);
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_key_letter(text_[at_]) || text_[at_] == '.')) ++at_;
    return bare(text_.substr(begin, at_ - begin));
  }

  std::optional<TomlValue> quoted() {
    const auto inside = next_text();
    if (!inside) return std::nullopt;
    return TomlValue{std::string(*inside), place()};
  }

  std::optional<std::string_view> next_text() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && in_texts[static_cast<unsigned char>(text_[at_])]) ++at_;
    const std::string_view inside = text_.substr(begin, at_ - begin);
    if (!take('"')) return std::nullopt;
    if (inside.empty() && at_ < text_.size() && text_[at_] == '"') return std::nullopt;  // """
    return inside;
  }

  std::optional<TomlValue> inline_table(int level) {
    TomlValue out = toml_table(place());
    ++at_;
    skip_spaces();
    if (take('}')) return out;
    while (true) {
      if (!entry(out, level + 1)) return std::nullopt;
      skip_spaces();
      if (take('}')) return out;
      if (!take(',')) return std::nullopt;
      skip_spaces();
    }
  }

  std::optional<TomlValue> array(int level) {
    TomlValue out{TomlValue::Array{}, place()};
    auto& items = std::get<TomlValue::Array>(out.data);
    ++at_;
    while (true) {
      if (!skip_blank()) return std::nullopt;
      if (take(']')) return out;
      std::optional<TomlValue> item = value(level + 1);
      if (!item || !skip_blank()) return std::nullopt;
      items.push_back(*std::move(item));
      if (take(']')) return out;
      if (!take(',')) return std::nullopt;
    }
  }

  std::optional<TomlValue> bare(std::string_view word) const {
    if (word == "true" || word == "false") return TomlValue{word == "true", place()};
    const std::string_view digits = word.starts_with('-') ? word.substr(1) : word;
    const std::size_t dot = std::min(digits.find('.'), digits.size());
    const auto all_digits = [](std::string_view part) {
      return !part.empty() && std::ranges::all_of(part, is_digit);
    };
    const bool leading_zero = dot > 1 && digits.front() == '0';
    if (leading_zero || digits.size() > 18 || !all_digits(digits.substr(0, dot)))
      return std::nullopt;
    if (dot == digits.size()) return TomlValue{number<std::int64_t>(word), place()};
    if (!all_digits(digits.substr(dot + 1))) return std::nullopt;
    return TomlValue{number<double>(word), place()};
  }

  template <class Number>
  static Number number(std::string_view word) {
    Number out{};
    std::from_chars(word.data(), word.data() + word.size(), out);
    return out;
  }

  std::string_view key() {
    if (at_ >= text_.size() || text_[at_] != '"') return bare_key();
    return next_text().value_or("");
  }

  std::string_view bare_key() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_key_letter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  /// To the end of the line, over a comment.
  bool end_line() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '#')
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    return at_ >= text_.size() || text_[at_] == '\n';
  }

  /// To what is neither blank nor a comment.
  bool skip_blank() {
    while (true) {
      skip_spaces();
      if (at_ >= text_.size() || (text_[at_] != '\n' && text_[at_] != '#')) return true;
      if (!end_line()) return false;
      if (take('\n')) ++line_;
    }
  }

  std::string place() const { return name_ + ":" + std::to_string(line_); }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0, line_ = 1;
  std::vector<std::string_view> headers_;  // of tables so far, those that they stand in as well
};

}  // namespace

std::optional<TomlValue> read_plain_toml(std::string_view text, const std::string& name) {
  return PlainReader(text, name).document();
}

}  // namespace stepcast::sim
