#include "sim/files/json_text.hpp"

#include <algorithm>

namespace stepcast::sim {

nlohmann::json parsed_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::ordered_json parsed_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

nlohmann::json json_or_discarded(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}
nlohmann::ordered_json ordered_json_or_discarded(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

nlohmann::json python_json_or_discarded(std::string_view text) {
  std::string out;
  bool quoted = false;
  while (!text.empty()) {
    std::size_t length = 1;
    if (quoted && text.front() == '\\') {
      length = std::min<std::size_t>(2, text.size());
    } else if (text.front() == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.starts_with(word)) {
          out += "null";
          text.remove_prefix(word.size());
          length = 0;
          break;
        }
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return json_or_discarded(out);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace stepcast::sim
