// JSON of any shape, for what reads or writes it.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stepcast::sim {

/// A value at most `levels` deep.
inline nlohmann::ordered_json random_json(int levels) {
  using Json = nlohmann::ordered_json;
  const auto word = [] {
    return *rc::gen::elementOf(std::vector<std::string>{
        "a", "b", "step_time_s", "", "a \"b\", {c}: [d]", "\\", "\n\t", "\xC3\xA9", "true", "x\\"});
  };
  switch (*rc::gen::inRange(0, levels > 0 ? 8 : 5)) {
    case 0:
      return word();
    case 1:
      return *rc::gen::arbitrary<std::int64_t>();
    case 2:
      return *rc::gen::arbitrary<double>();
    case 3:
      return *rc::gen::arbitrary<bool>();
    case 4:
      return nullptr;
    case 5: {
      Json out = Json::array();
      for (int n = *rc::gen::inRange(0, 4); n > 0; --n) out.push_back(random_json(levels - 1));
      return out;
    }
    default: {
      Json out = Json::object();
      for (int n = *rc::gen::inRange(0, 5); n > 0; --n) out[word()] = random_json(levels - 1);
      return out;
    }
  }
}

}  // namespace stepcast::sim
