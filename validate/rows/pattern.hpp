// A regular expression of the published defaults: whether a text has it. Of ECMAScript's what the
// rules need, letter case does not count, captures nothing. std::regex took a quarter of the time
// of a table of published runs.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::validate {

/// Characters, `.`, sets, \d \w \s \b, ^ $, groups, |, lookahead, and * + ? {m,n} of what cannot be
/// empty.
class Pattern {
 public:
  /// Throws InputError, naming `where`, for what is no such expression.
  Pattern(const std::string& text, const std::string& where);

  bool found_in(std::string_view text) const;

  using ByteSet = std::bitset<256>;
  /// `other` counts from this step: where a fork also goes on, where a jump and a lookahead do.
  struct Step {
    enum class Kind : std::uint8_t {
      byte,
      fork,
      jump,
      begin,
      end,
      word_edge,
      ahead,
      not_ahead,
      found
    };
    Kind kind;
    std::ptrdiff_t other = 1;
    ByteSet bytes{};
  };

 private:
  std::vector<Step> steps_;
  ByteSet first_;      // of matches that do not begin with the text
  bool may_be_empty_;  // such a match
};

}  // namespace stepcast::validate
