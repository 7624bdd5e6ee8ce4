#include "validate/rows/pattern.hpp"

#include <charconv>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using Step = Pattern::Step;
using Kind = Step::Kind;
using ByteSet = Pattern::ByteSet;
using Steps = std::vector<Step>;

std::size_t index(char c) { return static_cast<unsigned char>(c); }
std::ptrdiff_t length(const Steps& steps) { return static_cast<std::ptrdiff_t>(steps.size()); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Both cases of a letter.
void add(ByteSet& bytes, char c) {
  bytes.set(index(c));
  if (is_letter(c)) bytes.set(index(c) ^ 0x20u);
}

ByteSet all_of(bool (*is)(char)) {
  ByteSet bytes;
  for (int c = 0; c < 256; ++c) bytes[static_cast<std::size_t>(c)] = is(static_cast<char>(c));
  return bytes;
}

void append(Steps& steps, const Steps& more) {
  steps.insert(steps.end(), more.begin(), more.end());
}

/// What a match from `step` on may begin with goes into `first`; true when it may be empty.
/// `begins`: at the begin of the text.
bool first_bytes(const Step* step, const Step* end, bool begins, ByteSet& first) {
  while (step != end && step->kind != Kind::found) {
    if (step->kind == Kind::byte) return first |= step->bytes, false;
    if (step->kind == Kind::begin && !begins) return false;
    if (step->kind == Kind::fork && first_bytes(step + 1, end, begins, first)) return true;
    step += step->other;
  }
  return true;
}

bool may_be_empty(const Steps& steps) {
  ByteSet unused;
  return first_bytes(steps.data(), steps.data() + steps.size(), true, unused);
}

/// Steps of a text, by descent. Jumps count from where they stand: steps can be put anywhere.
class Reader {
 public:
  Reader(const std::string& text, const std::string& where) : text_(text), where_(where) {}

  Steps all() {
    Steps steps = alternatives();
    if (at_ != text_.size()) fail("a ) without its (");
    steps.push_back({Kind::found});
    return steps;
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    throw InputError(where_, "'" + text_ + "' is no pattern", why);
  }
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(std::string_view word) {
    if (std::string_view(text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  char any() {
    if (at_ == text_.size()) fail("it ends too early");
    return text_[at_++];
  }

  Steps alternatives() {
    Steps one = sequence();
    if (!take("|")) return one;
    const Steps rest = alternatives();
    Steps out{{Kind::fork, length(one) + 2}};
    append(out, one);
    out.push_back({Kind::jump, length(rest) + 1});
    append(out, rest);
    return out;
  }

  Steps sequence() {
    Steps out;
    while (at_ < text_.size() && !next_is('|') && !next_is(')')) append(out, repeated());
    return out;
  }

  Steps repeated() {
    const Steps one = atom();
    Steps out;
    if (take("?")) {
      add_up_to(1, out, one);
    } else if (take("*")) {
      add_loop(out, one);
    } else if (take("+")) {
      out = one;
      add_loop(out, one);
    } else if (take("{")) {
      const std::ptrdiff_t least = count(','), most = count('}');
      if (most < least) fail("more than most");
      for (std::ptrdiff_t i = 0; i < least; ++i) append(out, one);
      add_up_to(most - least, out, one);
    } else {
      return one;
    }
    return out;
  }

  /// Where one is missing, so are those behind it: one way for each number of them.
  static void add_up_to(std::ptrdiff_t most, Steps& out, const Steps& one) {
    for (std::ptrdiff_t left = most; left > 0; --left) {
      out.push_back({Kind::fork, left * (length(one) + 1)});
      append(out, one);
    }
  }

  void add_loop(Steps& out, const Steps& one) const {
    if (may_be_empty(one)) fail("what may be empty cannot be repeated");
    out.push_back({Kind::fork, length(one) + 2});
    append(out, one);
    out.push_back({Kind::jump, -length(one) - 1});
  }

  std::ptrdiff_t count(char end) {
    constexpr std::ptrdiff_t most = 100;
    std::ptrdiff_t value = 0;
    const char* from = text_.data() + at_;
    const auto [stop, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0 || value > most) fail("write {m,n}, both up to 100");
    at_ += static_cast<std::size_t>(stop - from);
    if (any() != end) fail("write {m,n}, both up to 100");
    return value;
  }

  Steps atom() {
    const char c = any();
    switch (c) {
      case '(':
        return group();
      case '[':
        return {{Kind::byte, 1, set()}};
      case '.': {
        ByteSet bytes;
        return {{Kind::byte, 1, bytes.set().reset(index('\n')).reset(index('\r'))}};
      }
      case '^':
        return {{Kind::begin}};
      case '$':
        return {{Kind::end}};
      case '*':
      case '+':
      case '?':
      case '{':
        fail("nothing to repeat");
      case '\\':
        if (take("b")) return {{Kind::word_edge}};
        return {{Kind::byte, 1, escaped()}};
      default:
        break;
    }
    ByteSet bytes;
    add(bytes, c);
    return {{Kind::byte, 1, bytes}};
  }

  Steps group() {
    const bool ahead = take("?="), not_ahead = !ahead && take("?!");
    if (!ahead && !not_ahead) take("?:");
    Steps inner = alternatives();
    if (!take(")")) fail("a ( without its )");
    if (!ahead && !not_ahead) return inner;
    inner.push_back({Kind::found});
    Steps out{{ahead ? Kind::ahead : Kind::not_ahead, length(inner) + 1}};
    append(out, inner);
    return out;
  }

  /// Behind a backslash: a class of characters, or one that is no letter and no digit.
  ByteSet escaped() {
    const char c = any();
    if (c == 'd') return all_of(is_digit);
    if (c == 'w') return all_of(is_word);
    if (c == 's') return all_of(is_space);
    if (is_word(c)) fail("of escaped letters there are \\b, \\d, \\s and \\w");
    return ByteSet().set(index(c));
  }

  ByteSet set() {
    const bool negated = take("^");
    ByteSet bytes;
    while (!next_is(']')) {
      const char from = any();
      if (from == '\\') {
        bytes |= escaped();
      } else if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        any();
        const char to = any();
        if (to < from || to == '\\') fail("a range that goes down");
        for (int c = from; c <= to; ++c) add(bytes, static_cast<char>(c));
      } else {
        add(bytes, from);
      }
    }
    any();
    if (bytes.none()) fail("an empty set");
    return negated ? ~bytes : bytes;
  }

  const std::string& text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

bool at_word_edge(std::string_view text, std::size_t at) {
  const bool before = at > 0 && is_word(text[at - 1]);
  return before != (at < text.size() && is_word(text[at]));
}

/// Whether what is left from `step` on stands in `text` at `at`; tries one way after the other.
bool matches(const Step* step, std::string_view text, std::size_t at) {
  while (true) {
    switch (step->kind) {
      case Kind::byte:
        if (at == text.size() || !step->bytes[index(text[at])]) return false;
        ++at;
        break;
      case Kind::fork:
        if (matches(step + 1, text, at)) return true;
        break;
      case Kind::jump:
        break;
      case Kind::begin:
        if (at != 0) return false;
        break;
      case Kind::end:
        if (at != text.size()) return false;
        break;
      case Kind::word_edge:
        if (!at_word_edge(text, at)) return false;
        break;
      case Kind::ahead:
        if (!matches(step + 1, text, at)) return false;
        break;
      case Kind::not_ahead:
        if (matches(step + 1, text, at)) return false;
        break;
      case Kind::found:
        return true;
    }
    step += step->other;
  }
}

}  // namespace

Pattern::Pattern(const std::string& text, const std::string& where)
    : steps_(Reader(text, where).all()),
      may_be_empty_(first_bytes(steps_.data(), steps_.data() + steps_.size(), false, first_)) {}

bool Pattern::found_in(std::string_view text) const {
  if (matches(steps_.data(), text, 0)) return true;
  for (std::size_t at = 1; at < text.size(); ++at)
    if ((may_be_empty_ || first_[index(text[at])]) && matches(steps_.data(), text, at)) return true;
  return may_be_empty_ && !text.empty() && matches(steps_.data(), text, text.size());
}

}  // namespace stepcast::validate
