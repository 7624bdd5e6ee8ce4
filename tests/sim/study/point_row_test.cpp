#include "sim/study/point_row.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/random_json.hpp"

using namespace stepcast::sim;
using Json = nlohmann::ordered_json;

namespace {

/// The same by the library's tree.
const Json* found(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (at != nullptr && !path.empty()) {
    const auto inner = at->find(path.substr(0, path.find('.')));
    at = inner == at->end() ? nullptr : &*inner;
    path = path.find('.') == std::string_view::npos ? "" : path.substr(path.find('.') + 1);
  }
  return at;
}

std::vector<std::pair<std::string, std::string>> leaves(const Json& json, const std::string& path) {
  std::vector<std::pair<std::string, std::string>> out;
  const Json* object = found(json, path);
  if (object == nullptr || !object->is_object()) return out;
  for (const auto& [key, value] : object->items()) {
    const std::string at = path + "." + key;
    if (!value.is_object()) out.emplace_back(at, value.dump());
    for (auto& leaf : leaves(json, at)) out.push_back(std::move(leaf));
  }
  return out;
}

}  // namespace

TEST_CASE("a row's members are those of its JSON") {
  const PointRow row(
      R"({"step_time_s":0.25,"plan":{"tensor":4,"data":"zero\"2","order":{"a.b":[1,{"x":2}]}},)"
      R"("warnings":["one, \"two\"","three"],"none":null,"gpus":8})");
  CHECK(row.number("step_time_s") == 0.25);
  CHECK(row.number("plan.tensor") == 4.0);
  CHECK(row.text("plan.data") == "zero\"2");
  CHECK(row.texts("warnings") == std::vector<std::string>{"one, \"two\"", "three"});
  CHECK(row.number("gpus") == 8.0);
  CHECK_FALSE(row.number("none"));
  CHECK_FALSE(row.number("plan.data"));
  CHECK_FALSE(row.number("plan.order.x"));
  CHECK_FALSE(row.text("tensor"));
  CHECK(row.leaves("plan").size() == 3);
}

TEST_CASE("a row that has moved still knows its members") {
  PointRow row(R"({"failed":"x"})");
  const PointRow moved = std::move(row);
  CHECK(moved.unanswered() == "failed: x");
}

TEST_CASE("a row finds what the library finds") {
  CHECK(rc::check([] {
    const Json json = Json::parse(random_json(4).dump());
    const PointRow row(json.dump());
    for (const char* path : {"a", "b", "step_time_s", "true", "a.b", "b.a", "a.a", "a.b.a", "",
                             "a.", ".a", "\xC3\xA9", "a.true.b"}) {
      const Json* member = found(json, path);
      const bool number = member != nullptr && member->is_number();
      RC_ASSERT(row.number(path).has_value() == number);
      if (number) RC_ASSERT(row.number(path) == member->get<double>());
      const bool text = member != nullptr && member->is_string();
      RC_ASSERT(row.text(path).has_value() == text);
      if (text) RC_ASSERT(row.text(path) == member->get<std::string>());
      RC_ASSERT(row.leaves(path) == leaves(json, path));
    }
  }));
}
