#include "sim/scenario/stage_layout.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

/// Longer layouts are slips of a repeat.
constexpr std::size_t most_items = 100'000;

/// An item and where it stands in the text, counted from 1.
struct LayoutItem {
  char what;
  std::size_t column;
};
using LayoutItems = std::vector<LayoutItem>;

class LayoutParser {
 public:
  LayoutParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  LayoutItems parse() {
    LayoutItems out = sequence();
    if (at_ < text_.size()) fail(at_ + 1, "a ) without its (");
    return out;
  }
  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw InputError(where_, "'" + std::string(text_) + "' is no layout of stages: " + what,
                     "column " + std::to_string(column) +
                         "; E, t, m, L and | between parts, as in Et*3|(tt|)*29m|L");
  }

 private:
  LayoutItems sequence() {
    LayoutItems out;
    while (skip_blanks() && text_[at_] != ')') {
      LayoutItems items = item();
      const std::size_t times = repeats();
      if (out.size() + times * items.size() > most_items) fail(at_, "it is too long");
      for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
    }
    return out;
  }
  /// Whether anything is left.
  bool skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',')) ++at_;
    return at_ < text_.size();
  }
  LayoutItems item() {
    const std::size_t column = at_ + 1;
    const char c = text_[at_++];
    if (c != '(') {
      if (std::string_view("EtmL|").find(c) == std::string_view::npos)
        fail(column, std::string("'") + c + "' is no item");
      return {{c, column}};
    }
    if (++depth_ > 8) fail(column, "its groups are too deep");
    LayoutItems out = sequence();
    if (at_ == text_.size()) fail(column, "a ( without its )");
    ++at_, --depth_;
    return out;
  }
  std::size_t repeats() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    const std::size_t first = ++at_;
    std::size_t times = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      times = std::min(most_items + 1, 10 * times + static_cast<std::size_t>(text_[at_] - '0'));
    if (at_ == first || times == 0) fail(first, "* without a number of times");
    if (times > most_items) fail(first, "it is too long");
    return times;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

StageLayout parse_stage_layout(std::string_view text, const std::string& where) {
  LayoutParser parser(text, where);
  const LayoutItems items = parser.parse();
  if (items.empty()) parser.fail(1, "it is empty");
  StageLayout out{{0}, {0}};
  bool loss = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto [what, column] = items[i];
    if (loss) parser.fail(column, "the loss L must be its last item");
    if ((what == 'E') != (i == 0)) parser.fail(column, "the embedding E must be its first item");
    if (what == '|') out.layers.push_back(0), out.mtp.push_back(0);
    if (what == 't') ++out.layers.back();
    if (what == 't' && std::ranges::any_of(out.mtp, [](std::int64_t n) { return n > 0; }))
      parser.fail(column, "a layer behind the modules m");
    if (what == 'm') ++out.mtp.back();
    loss = what == 'L';
  }
  if (!loss) parser.fail(text.size(), "the loss L must be its last item");
  return out;
}

}  // namespace stepcast::sim
