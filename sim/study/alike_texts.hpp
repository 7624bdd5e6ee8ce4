// Texts of which most differ in a few places, as the rows of a sweep do: each is kept as what it
// differs in from one of the first. Knows no row.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::sim {

class AlikeTexts {
 public:
  /// Its place among the texts, from 0.
  std::size_t add(std::string_view text);
  /// As it was added.
  std::string text(std::size_t place) const;

  /// Bytes of all texts as they are kept.
  std::size_t kept() const;

 private:
  struct Kept {
    std::size_t like;   // of models_
    std::string apart;  // fields that differ, each behind the number of equal ones before it
  };
  std::optional<Kept> like_a_model(std::string_view text) const;

  std::vector<std::string> models_;
  std::deque<Kept> texts_;
};

}  // namespace stepcast::sim
