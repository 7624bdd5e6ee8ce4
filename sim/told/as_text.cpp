#include "sim/told/told.hpp"

namespace stepcast::sim {
namespace {

struct TextWriter {
  std::string out{};

  void operator()(const Paragraph& paragraph) { out += paragraph.text + "\n"; }
  void operator()(const Kept&) {}
  void operator()(const KeptJson&) {}
  void operator()(const KeyFigures& figures) {
    for (const KeyFigure& figure : figures) out += figure.label + ": " + figure.value + "\n";
  }
  void operator()(const ToldTable& one) {
    if (one.table.has_text()) out += (one.apart && !out.empty() ? "\n" : "") + one.table.text();
  }
  void operator()(const Chart& chart) { out += chart.numbers.text(); }
  void operator()(const Listing& listing) { out += listing.text; }
  void operator()(const ToldEach& list) {
    for (const ToldSection& one : list.each) out += as_text(one);
  }
};

}  // namespace

std::string as_text(const ToldSection& section) {
  TextWriter writer;
  for (const ToldBlock& block : section.blocks) std::visit(writer, block);
  return std::move(writer.out);
}

}  // namespace stepcast::sim
