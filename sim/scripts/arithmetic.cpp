// Whole-number arithmetic of literals, as in $((...)) of bash and in Python's arguments.
#include <limits>

#include "sim/scripts/shell_text.hpp"

namespace stepcast::sim {
namespace {

class Sum {
 public:
  explicit Sum(std::string_view text) : text_(text) {}

  std::optional<std::int64_t> value() {
    const auto out = terms(0);
    skip();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  static constexpr int deepest = 50;
  using Number = std::optional<std::int64_t>;

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number terms(int depth) {
    Number out = factors(depth);
    for (char c = next(); out && (c == '+' || c == '-'); c = next()) {
      ++at_;
      out = joined(out, c, factors(depth));
    }
    return out;
  }

  Number factors(int depth) {
    Number out = one(depth);
    for (char c = next(); out && (c == '*' || c == '/' || c == '%'); c = next()) {
      ++at_;
      if (c == '/' && at_ < text_.size() && text_[at_] == '/') ++at_;  // Python's
      out = joined(out, c, one(depth));
    }
    return out;
  }

  Number one(int depth) {
    const char c = next();
    if (depth > deepest) return std::nullopt;
    if (c == '-' || c == '+') {
      ++at_;
      return joined(0, c, one(depth + 1));
    }
    if (c == '(') {
      ++at_;
      const Number out = terms(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return out;
    }
    if (c < '0' || c > '9') return std::nullopt;
    Number out = 0;
    for (; at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '_');
         ++at_)
      if (text_[at_] != '_') out = joined(joined(out, '*', 10), '+', text_[at_] - '0');
    return out;
  }

  static Number joined(Number left, char by, Number right) {
    if (!left || !right) return std::nullopt;
    std::int64_t out = 0;
    if (by == '+') return __builtin_add_overflow(*left, *right, &out) ? Number() : out;
    if (by == '-') return __builtin_sub_overflow(*left, *right, &out) ? Number() : out;
    if (by == '*') return __builtin_mul_overflow(*left, *right, &out) ? Number() : out;
    const bool overflows = *right == -1 && *left == std::numeric_limits<std::int64_t>::min();
    if (*right == 0 || overflows) return std::nullopt;
    return by == '/' ? *left / *right : *left % *right;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> arithmetic(std::string_view text) { return Sum(text).value(); }

}  // namespace stepcast::sim
