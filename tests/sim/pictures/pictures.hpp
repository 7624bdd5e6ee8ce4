// Pictures of reports, read back: XML, and texts that must not meet.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "sim/pictures/picture_text.hpp"

namespace stepcast::tests {

inline pugi::xml_document parsed(const std::string& svg) {
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  REQUIRE(std::strcmp(document.first_child().name(), "svg") == 0);
  return document;
}

/// The text of every such node.
inline std::vector<std::string> all(const pugi::xml_document& document, const char* path) {
  std::vector<std::string> out;
  for (const pugi::xpath_node& found : document.select_nodes(path))
    out.emplace_back(found.node().text().get());
  return out;
}

/// Of those that lie along the page, each that meets another or leaves the picture.
inline std::vector<std::string> overlapping_texts(const pugi::xml_document& document) {
  struct Placed {
    std::string text;
    sim::TextBox box;
  };
  const double wide = document.first_child().attribute("width").as_double();
  const double high = document.first_child().attribute("height").as_double();
  std::vector<Placed> placed;
  std::vector<std::string> out;
  for (const pugi::xpath_node& found : document.select_nodes("//text[not(@transform)]")) {
    const pugi::xml_node text = found.node();
    const double size = text.attribute("font-size").as_double(12);
    const double width = sim::text_width(text.text().get()) * size / 12;
    const std::string anchor = text.attribute("text-anchor").as_string("start");
    double left = text.attribute("x").as_double();
    if (anchor == "end") left -= width;
    if (anchor == "middle") left -= width / 2;
    const double top = text.attribute("y").as_double() - 0.8 * size;
    const sim::TextBox box{left, top, width, size};
    const bool outside = left < 0 || left + width > wide || top < 0 || top + size > high;
    const bool meets = std::any_of(placed.begin(), placed.end(),
                                   [&](const Placed& one) { return box.overlaps(one.box); });
    if (outside || meets) out.emplace_back(text.text().get());
    placed.push_back({text.text().get(), box});
  }
  return out;
}

}  // namespace stepcast::tests
