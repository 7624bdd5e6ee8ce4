#include "sim/study/alike_texts.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

// Answers, refusals and failures differ in their members; so do points of other kinds.
constexpr std::size_t most_models = 16;

constexpr bool ends_field(char c) { return c == ',' || c == ':'; }

/// Takes the first field off: up to its comma or colon, with it.
std::string_view next_field(std::string_view& rest) {
  const auto end = std::ranges::find_if(rest, ends_field);
  const auto size = static_cast<std::size_t>(end - rest.begin()) + (end == rest.end() ? 0U : 1U);
  const std::string_view field = rest.substr(0, size);
  rest.remove_prefix(size);
  return field;
}

/// Seven bits a byte, the low ones first, all but the last byte marked.
void append_number(std::string& out, std::size_t number) {
  for (; number > 127; number >>= 7) out += static_cast<char>(128 | (number & 127));
  out += static_cast<char>(number);
}

std::size_t next_number(std::string_view& rest) {
  std::size_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    number |= static_cast<std::size_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
}

/// None where they have not as many fields, or hardly an equal one.
std::optional<std::string> differences(std::string_view text, std::string_view model) {
  const std::size_t most = text.size() / 2;
  std::string out;
  std::size_t equal = 0;
  while (!text.empty() && !model.empty() && out.size() <= most) {
    const std::string_view field = next_field(text);
    if (field == next_field(model)) {
      ++equal;
      continue;
    }
    append_number(out, equal);
    out += field;
    equal = 0;
  }
  if (!text.empty() || !model.empty() || out.size() > most) return std::nullopt;
  return out;
}

}  // namespace

std::optional<AlikeTexts::Kept> AlikeTexts::like_a_model(std::string_view text) const {
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (const auto apart = differences(text, models_[i])) return Kept{i, *apart};
  return std::nullopt;
}

std::size_t AlikeTexts::add(std::string_view text) {
  if (auto kept = like_a_model(text)) {
    texts_.push_back(*std::move(kept));
  } else if (models_.size() < most_models) {
    texts_.push_back({models_.size(), {}});
    models_.emplace_back(text);
  } else {
    texts_.push_back({models_.size(), std::string(text)});
  }
  return texts_.size() - 1;
}

std::string AlikeTexts::text(std::size_t place) const {
  expects(place < texts_.size(), "a text that was added");
  const auto& [like, apart] = texts_[place];
  if (like == most_models) return apart;
  std::string out;
  std::string_view model = models_[like], rest = apart;
  while (!rest.empty()) {
    for (std::size_t equal = next_number(rest); equal > 0; --equal) out += next_field(model);
    next_field(model);
    out += next_field(rest);
  }
  return out.append(model);
}

std::size_t AlikeTexts::kept() const {
  std::size_t bytes = 0;
  for (const std::string& model : models_) bytes += model.size();
  for (const Kept& text : texts_) bytes += text.apart.size();
  return bytes;
}

}  // namespace stepcast::sim
