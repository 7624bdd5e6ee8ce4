#include "sim/files/svg.hpp"

#include <fmt/format.h>

#include "sim/files/printable.hpp"

namespace stepcast::sim {

std::string svg_escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)  // line breaks and tabs
      out += c;
  }
  return out;
}

std::string svg_head(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
      "<title>{2}</title>\n",
      width, height, svg_escaped(title));
}

}  // namespace stepcast::sim
