// Lists that are written in one text.
#pragma once

#include <string_view>
#include <vector>

namespace stepcast::sim {

/// What stands between two of `by`, before the first and behind the last: of an empty text one
/// empty part. Views into `text`.
inline std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end = text.find(by);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace stepcast::sim
