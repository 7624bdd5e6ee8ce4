// From one list of members come an object and its schema.
#include "sim/form/form.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace stepcast::sim;
using Json = nlohmann::ordered_json;

namespace {

struct Wheel {
  std::string name;
  std::optional<double> radius_s{};
};
struct Cart {
  std::int64_t count = 2;
  bool fast = true;
  std::vector<Wheel> wheels{};
  std::optional<Wheel> spare{};
};

Form<Wheel> wheel_form() {
  return Form<Wheel>("wheel")
      .has("name", "What it is called.", [](const Wheel& w) { return w.name; })
      .has("radius_s", "In seconds of a turn.", [](const Wheel& w) { return w.radius_s; });
}

Form<Cart> cart_form() {
  return Form<Cart>()
      .has("of/count", "How many.", [](const Cart& c) { return c.count; })
      .has("of/fast", "", [](const Cart& c) { return c.fast; })
      .list(
          "wheels", "All.", wheel_form(), [](const Cart& c) -> const auto& { return c.wheels; })
      .object("spare", "One more.", wheel_form(), [](const Cart& c) { return c.spare; })
      .object_or_null("other", "", wheel_form(), [](const Cart& c) { return c.spare; })
      .has("least", "", [](const Cart& c) {
        return OrNull<double>{c.spare ? c.spare->radius_s : std::nullopt};
      });
}

}  // namespace

TEST_CASE("a form writes what is there, in its order") {
  const Cart cart{3, false, {{"left", 0.5}, {"right"}}, {}};
  CHECK(cart_form().json(cart).dump() ==
        R"({"of":{"count":3,"fast":false},"wheels":[{"name":"left","radius_s":0.5},)"
        R"({"name":"right"}],"other":null,"least":null})");
}

TEST_CASE("its schema has the types of the functions, the units of the keys, each name once") {
  Definitions all;
  const Json schema = cart_form().schema(all);
  CHECK(schema["properties"]["of"]["properties"]["count"]["type"] == "integer");
  CHECK(schema["properties"]["of"]["properties"]["fast"]["type"] == "boolean");
  CHECK(schema["properties"]["wheels"]["items"]["$ref"] == "#/$defs/wheel");
  CHECK(schema["properties"]["least"]["type"] == Json::array({"number", "null"}));
  CHECK(schema["required"] == Json::array({"wheels", "other", "least"}));
  const Json wheel = all.all()["wheel"];
  CHECK(wheel["required"] == Json::array({"name"}));
  CHECK(wheel["properties"]["radius_s"]["unit"] == "s");
  CHECK(wheel["properties"]["radius_s"]["description"] == "In seconds of a turn.");
}

TEST_CASE("rows of a table have the types of its columns") {
  TextTable table{{"wheel", "name", TextTable::Align::left},
                  TextTable::Column{"turns", "turns"}.of(TextTable::Holds::count),
                  filed("fast", TextTable::Holds::flag)};
  table.row({"left", counted(4), kept(true)});
  CHECK(rows_json(table).dump() == R"([{"name":"left","turns":4,"fast":true}])");
  const Json row = rows_schema(table)["items"]["properties"];
  CHECK(row["name"]["type"] == Json::array({"string", "null"}));
  CHECK(row["turns"]["type"] == Json::array({"integer", "null"}));
  CHECK(row["fast"]["type"] == Json::array({"boolean", "null"}));
}

TEST_CASE("a document says which program and which schema") {
  const Json document = stamped("cart", Json{{"a", 1}});
  CHECK(document.begin().key() == "stepcast");
  CHECK(document["schema"] == "cart/1");
  CHECK(document["a"] == 1);
  const Json schema = document_schema("cart", "A cart.", cart_form().schema_of());
  CHECK(schema["properties"]["schema"]["const"] == "cart/1");
  CHECK(schema["required"][0] == "stepcast");
  CHECK(schema["$defs"].contains("wheel"));
}
