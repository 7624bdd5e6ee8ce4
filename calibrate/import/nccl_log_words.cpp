#include "calibrate/import/nccl_log_words.hpp"

#include <array>
#include <cctype>

#include "calibrate/rows/numbers.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "sim/files/nccl_names.hpp"

namespace stepcast::calibrate {
namespace {

/// Our name of one of NCCL's, or of its number in NCCL's own order (src/include/nccl_tuner.h).
template <class Names, std::size_t N>
std::optional<std::string> name_of(std::string_view word, const Names& names,
                                   const std::array<std::string_view, N>& by_number) {
  if (const auto number = number_in<std::size_t>(word))
    return *number < N ? std::optional(std::string(by_number[*number])) : std::nullopt;
  for (const auto& entry : names)
    if (sim::same_word(entry.first, word)) return std::string(entry.first);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> algorithm_named(std::string_view word) {
  constexpr std::array<std::string_view, 7> by_number = {
      "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  if (sim::same_word(word, "collnet"))
    return "collnet_direct";  // before 2.14 there was one of them
  return name_of(word, sim::algorithm_names, by_number);
}

std::optional<std::string> protocol_named(std::string_view word) {
  constexpr std::array<std::string_view, 3> by_number = {"ll", "ll128", "simple"};
  return name_of(word, sim::protocol_names, by_number);
}

std::string process_in(std::string_view prefix) {
  for (const std::string& word : words_of(prefix)) {
    const std::size_t last = word.rfind(':');
    if (last == std::string::npos || last == 0) continue;
    const std::size_t middle = word.rfind(':', last - 1);
    const auto digits = [&](std::size_t from, std::size_t to) {
      return number_in<std::int64_t>(std::string_view(word).substr(from, to - from)).has_value();
    };
    if (middle != std::string::npos && digits(middle + 1, last) && digits(last + 1, word.size()))
      return word.substr(0, last);
  }
  return {};
}

std::optional<std::int64_t> channels_in(std::string_view word) {
  constexpr std::string_view mark = "channel{Lo..Hi}={";
  if (!word.starts_with(mark) || !word.ends_with('}')) return std::nullopt;
  word = word.substr(mark.size(), word.size() - mark.size() - 1);
  const std::size_t dots = word.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto low = number_in<std::int64_t>(word.substr(0, dots));
  const auto high = number_in<std::int64_t>(word.substr(dots + 2));
  if (!low || !high || *low < 0 || *high < *low || *high > 1024) return std::nullopt;
  return *high - *low + 1;
}

}  // namespace stepcast::calibrate
