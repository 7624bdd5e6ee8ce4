#include "workloads/plan/layers.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace stepcast::workloads {
namespace {

constexpr std::array<std::pair<char, Mixer>, 6> mixer_letters{{
    {'*', Mixer::full},
    {'W', Mixer::window},
    {'R', Mixer::reuse},
    {'G', Mixer::delta},
    {'M', Mixer::state_space},
    {'H', Mixer::both},
}};
constexpr std::array<std::pair<char, Mlp>, 2> mlp_letters{{
    {'-', Mlp::dense},
    {'E', Mlp::experts},
}};

template <class Letters, class Meaning>
bool take(std::string_view& word, const Letters& letters, Meaning& meaning) {
  for (const auto& [letter, means] : letters)
    if (word.starts_with(letter)) {
      meaning = means;
      word.remove_prefix(1);
      return true;
    }
  return false;
}

template <class Letters, class Meaning>
void put(std::string& text, const Letters& letters, Meaning meaning) {
  for (const auto& [letter, means] : letters)
    if (means == meaning) text += letter;
}

bool read_word(std::string_view word, LayerForm& form) {
  form = {Mixer::none, Mlp::none};
  const bool mixer = take(word, mixer_letters, form.mixer);
  const bool mlp = take(word, mlp_letters, form.mlp);
  if (!mixer && !mlp) return false;
  if (word.empty()) return true;
  constexpr std::int64_t widest = 100'000'000;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), form.ffn);
  return error == std::errc() && end == word.data() + word.size() && form.mlp == Mlp::dense &&
         form.ffn > 0 && form.ffn <= widest;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return out;
    const std::size_t end = std::min(text.size(), text.find(' ', begin));
    out.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

}  // namespace

bool read_pattern(std::string_view text, LayerPattern& out, std::string& wrong) {
  out.clear();
  const std::vector<std::string_view> words = words_of(text);
  LayerForm form;
  if (words.size() == 1 && !read_word(words.front(), form))
    return read_letters(words.front(), out, wrong);
  for (const std::string_view word : words) {
    if (!read_word(word, form)) {
      wrong = word;
      return false;
    }
    out.push_back(form);
  }
  return true;
}

bool read_letters(std::string_view text, LayerPattern& out, std::string& wrong) {
  out.clear();
  LayerForm form;
  for (std::size_t k = 0; k < text.size(); ++k) {
    wrong = text.substr(k, 1);
    if (!read_word(wrong, form)) return false;
    out.push_back(form);
  }
  wrong.clear();
  return true;
}

std::string to_text(const LayerPattern& pattern) {
  std::string out;
  for (const LayerForm& form : pattern) {
    if (!out.empty()) out += ' ';
    put(out, mixer_letters, form.mixer);
    put(out, mlp_letters, form.mlp);
    if (form.ffn > 0) out += std::to_string(form.ffn);
  }
  return out;
}

LayerPattern shortest(const LayerPattern& pattern) {
  const std::size_t all = pattern.size();
  for (std::size_t period = 1; period < all; ++period) {
    std::size_t k = period;
    while (k < all && pattern[k] == pattern[k - period]) ++k;
    if (k == all) return {pattern.begin(), pattern.begin() + static_cast<std::ptrdiff_t>(period)};
  }
  return pattern;
}

}  // namespace stepcast::workloads
