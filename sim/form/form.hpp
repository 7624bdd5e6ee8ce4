// Members of JSON objects, listed once: from the list come the object and its JSON schema. Knows no
// answer.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/files/text_table.hpp"

namespace stepcast::sim {

/// Schemas that others refer to by name: {"step": {"type": "object", ...}}.
class Definitions {
 public:
  using Json = nlohmann::ordered_json;
  /// {"$ref": "#/$defs/NAME"}; `schema` is asked once.
  Json reference(const std::string& name, const std::function<Json(Definitions&)>& schema);
  const Json& all() const { return all_; }

 private:
  Json all_ = Json::object();
};

/// A schema, as far as it refers to others with them.
using SchemaOf = std::function<nlohmann::ordered_json(Definitions&)>;

/// One of several: {"anyOf": [...]}.
SchemaOf any_of(std::vector<SchemaOf> schemas);
/// {"type": "object"} with members of any name that are all alike; an empty schema: of any kind.
nlohmann::ordered_json open_object(nlohmann::ordered_json of = nlohmann::ordered_json::object());
nlohmann::ordered_json list_schema(nlohmann::ordered_json of);
/// {"type": "string"}
nlohmann::ordered_json type_schema(std::string_view type);
/// Also null.
nlohmann::ordered_json or_null(nlohmann::ordered_json schema);

/// The unit that a key ends on: "s" of "step_s" and "run.step_s"; empty where none is known.
std::string_view unit_of_key(std::string_view key);

/// Puts a value at "a/b", a member of the member "a".
void put_at(nlohmann::ordered_json& object, std::string_view path, nlohmann::ordered_json value);
nlohmann::ordered_json json_of(const Exact& exact);
/// The rows that are for files, as objects.
nlohmann::ordered_json rows_json(const TextTable& table);
/// Of such a list, by the columns.
nlohmann::ordered_json rows_schema(const TextTable& table);

/// A member that is null where it has no value, rather than left out.
template <class V>
struct OrNull {
  std::optional<V> value;
};
template <class V>
OrNull(std::optional<V>) -> OrNull<V>;

namespace form_detail {
using Json = nlohmann::ordered_json;

/// What a value of a plain type is: as JSON, as a schema, and whether it is there at all.
template <class V>
struct Plain {
  static Json schema() {
    if constexpr (std::is_same_v<V, bool>)
      return type_schema("boolean");
    else if constexpr (std::is_integral_v<V>)
      return type_schema("integer");
    else if constexpr (std::is_floating_point_v<V>)
      return type_schema("number");
    else
      return type_schema("string");
  }
  static std::optional<Json> json(const V& value) { return Json(value); }
  static constexpr bool always = true;
};
template <class V>
struct Plain<std::vector<V>> {
  static Json schema() { return list_schema(Plain<V>::schema()); }
  static std::optional<Json> json(const std::vector<V>& value) { return Json(value); }
  static constexpr bool always = true;
};
template <class V>
struct Plain<std::optional<V>> {
  static Json schema() { return Plain<V>::schema(); }
  static std::optional<Json> json(const std::optional<V>& value) {
    return value ? Plain<V>::json(*value) : std::nullopt;
  }
  static constexpr bool always = false;
};
template <class V>
struct Plain<OrNull<V>> {
  static Json schema() { return or_null(Plain<V>::schema()); }
  static std::optional<Json> json(const OrNull<V>& value) {
    return value.value ? Plain<V>::json(*value.value) : Json(nullptr);
  }
  static constexpr bool always = true;
};

/// Properties at "a/b" inside those at "a".
void put_property(Json& schema, std::string_view path, Json property, bool always);
/// With meaning and unit.
Json annotated(Json schema, std::string_view meaning, std::string_view unit);

/// An optional or a pointer.
template <class V>
concept Pointed = requires(const V& value) {
  *value;
};

inline const auto& pointed(const auto& value) {
  if constexpr (Pointed<std::remove_cvref_t<decltype(value)>>)
    return *value;
  else
    return value;
}
inline bool is_there(const auto& value) {
  if constexpr (Pointed<std::remove_cvref_t<decltype(value)>>)
    return static_cast<bool>(value);
  else
    return true;
}

/// A member's value, of the object at an address; none: it is left out.
using ValueAt = std::function<std::optional<Json>(const void*)>;
/// Shows a function each object that a member consists of; false: the member is not there.
using EachAt = std::function<bool(const void*, const std::function<void(const void*)>&)>;

/// `make(get(t), ...)` of the T at an address. Where both capture nothing it is a plain function:
/// one type for all members, which compiles several times faster than a type a member.
template <class T, class R, class... With>
auto at(auto get, auto make) {
  using Get = decltype(get);
  using Make = decltype(make);
  if constexpr (std::is_empty_v<Get>)
    return static_cast<R (*)(const void*, With...)>([](const void* of, With... with) -> R {
      return Make{}(Get{}(*static_cast<const T*>(of)), with...);
    });
  else
    return [get](const void* of, With... with) -> R {
      return Make{}(get(*static_cast<const T*>(of)), with...);
    };
}

/// What a form holds, whatever it is a form of.
class Members {
 public:
  explicit Members(std::string form_name) : name(std::move(form_name)) {}

  Json json(const void* of) const;
  Json schema(Definitions& all) const;

  void add(std::string key, bool always, SchemaOf schema, ValueAt json);
  void add(std::string key, bool always, std::string meaning, std::string unit, Json (*of)(),
           ValueAt json);
  void add_object(std::string key, bool always, std::string meaning, Members form, EachAt each);
  void add_object_or_null(std::string key, std::string meaning, Members form, EachAt each);
  void add_list(std::string key, bool always, std::string meaning, Members form, EachAt each);
  void add_all(const Members& form, bool always, const EachAt& each);

  std::string name;

 private:
  struct Member {
    std::string key;
    bool always;
    SchemaOf schema;
    ValueAt json;
  };
  std::vector<Member> members_;
};
}  // namespace form_detail

/// The members of an object that says what a T is, in their order. Keys may be paths, "wall/down";
/// what an optional or a pointer has not is left out.
template <class T>
class Form {
 public:
  using Json = nlohmann::ordered_json;

  /// One with a name stands once in a schema, however often it is used there.
  explicit Form(std::string name = {}) : members_(std::move(name)) {}

  /// The same members under a name of its own.
  Form named(std::string name) const {
    Form out = *this;
    out.members_.name = std::move(name);
    return out;
  }

  /// A number, a text, a flag, a list of these; the unit is by default that of the key.
  template <class Get>
  Form& has(std::string key, std::string meaning, Get get, std::string unit = {}) {
    using Of = form_detail::Plain<Got<Get>>;
    if (unit.empty()) unit = unit_of_key(key);
    members_.add(std::move(key), Of::always, std::move(meaning), std::move(unit), &Of::schema,
                 value_at(get, [](const auto& value) { return Of::json(value); }));
    return *this;
  }
  /// One of these words, as `word` says it.
  template <class Get>
  Form& word(std::string key, std::string meaning, std::vector<std::string> words, Get get) {
    members_.add(
        std::move(key), true,
        [meaning = std::move(meaning), words = std::move(words)](Definitions&) {
          return form_detail::annotated(Json{{"enum", words}}, meaning, "");
        },
        value_at(get, [](const auto& value) { return Json(value); }));
    return *this;
  }
  /// An object; of an optional or a pointer, where it is there.
  template <class U, class Get>
  Form& object(std::string key, std::string meaning, const Form<U>& form, Get get) {
    members_.add_object(std::move(key), !form_detail::Pointed<Got<Get>>, std::move(meaning),
                        form.members_, object_at<U>(get));
    return *this;
  }
  /// Likewise, null where it is not there.
  template <class U, class Get>
  Form& object_or_null(std::string key, std::string meaning, const Form<U>& form, Get get) {
    members_.add_object_or_null(std::move(key), std::move(meaning), form.members_,
                                object_at<U>(get));
    return *this;
  }
  /// A list of objects; of an optional list, where it is there.
  template <class U, class Get>
  Form& list(std::string key, std::string meaning, const Form<U>& form, Get get) {
    members_.add_list(std::move(key), !form_detail::Pointed<Got<Get>>, std::move(meaning),
                      form.members_, each_at(get, [](const auto& values, const Show& show) {
                        if (!form_detail::is_there(values)) return false;
                        for (const U& value : form_detail::pointed(values)) show(&value);
                        return true;
                      }));
    return *this;
  }
  /// The rows of a table that is for files; `columns` is one of the same columns. `get` gives the
  /// table, or an optional one.
  template <class Get>
  Form& table(std::string key, std::string meaning, TextTable columns, Get get) {
    members_.add(
        std::move(key), std::is_same_v<Got<Get>, TextTable>,
        [meaning = std::move(meaning), columns = std::move(columns)](Definitions&) {
          return form_detail::annotated(rows_schema(columns), meaning, "");
        },
        value_at(get, [](const auto& table) {
          return form_detail::is_there(table)
                     ? std::optional(rows_json(form_detail::pointed(table)))
                     : std::nullopt;
        }));
    return *this;
  }
  /// Whatever else; `get` gives JSON or an optional of it.
  template <class Get>
  Form& json(std::string key, std::string meaning, SchemaOf schema, Get get) {
    members_.add(
        std::move(key), std::is_same_v<Got<Get>, Json>,
        [meaning = std::move(meaning), schema = std::move(schema)](Definitions& all) {
          return form_detail::annotated(schema(all), meaning, "");
        },
        value_at(get, [](const auto& value) { return value; }));
    return *this;
  }
  /// The members of another object among these; of an optional or a pointer, where it is there.
  template <class U, class Get>
  Form& members(const Form<U>& form, Get get) {
    members_.add_all(form.members_, !form_detail::Pointed<Got<Get>>, object_at<U>(get));
    return *this;
  }

  Json json(const T& of) const { return members_.json(&of); }
  Json schema(Definitions& all) const { return members_.schema(all); }
  /// For who refers to it among others.
  SchemaOf schema_of() const {
    return [members = members_](Definitions& all) { return members.schema(all); };
  }

 private:
  template <class>
  friend class Form;
  using Show = std::function<void(const void*)>;
  template <class Get>
  using Got = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;

  static form_detail::ValueAt value_at(auto get, auto make) {
    return form_detail::at<T, std::optional<Json>>(get, make);
  }
  static form_detail::EachAt each_at(auto get, auto make) {
    return form_detail::at<T, bool, const Show&>(get, make);
  }
  template <class U>
  static form_detail::EachAt object_at(auto get) {
    return each_at(get, [](const auto& value, const Show& show) {
      if (!form_detail::is_there(value)) return false;
      const U& object = form_detail::pointed(value);
      show(&object);
      return true;
    });
  }

  form_detail::Members members_;
};

/// What every document of a verb begins with: {"stepcast": "0.2.0", "schema": "why/1", ...}.
/// `name`: "why". The version of a schema counts what takes a key away or changes its meaning.
nlohmann::ordered_json stamped(std::string_view name, const nlohmann::ordered_json& answer);
/// The two lines of that as text: `  "stepcast": "0.2.0",\n  "schema": "why/1",\n`.
std::string stamp_lines(std::string_view name);

/// A document's whole schema: what `schema` says of its object, the stamp, and all definitions.
nlohmann::ordered_json document_schema(std::string_view name, std::string_view title,
                                       const SchemaOf& schema);

}  // namespace stepcast::sim
