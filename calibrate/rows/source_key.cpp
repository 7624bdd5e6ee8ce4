#include "calibrate/rows/source_key.hpp"

namespace stepcast::calibrate {

std::string source_key(const sim::RowSource& source) {
  const std::string first = source.reference.substr(0, source.reference.find(' '));
  const bool address = first.find_first_of(":/") != std::string::npos;
  if (!address) return source.reference;  // a sentence: "2 x DGX H100 log"
  return first.substr(0, first.find_first_of("@#"));
}

}  // namespace stepcast::calibrate
