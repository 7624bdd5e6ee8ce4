// A table of a scenario in the making: keys and values of a row that stand at its line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/files/toml_value.hpp"

namespace stepcast::validate {

class ScenarioTable {
 public:
  explicit ScenarioTable(const std::string& where) : value_(sim::toml_table(where)) {}
  ScenarioTable(sim::TomlValue value, const std::string& where) : value_(std::move(value)) {
    value_.where = where;
  }
  void put(const char* key, const std::string& text) {
    value_.set(key, sim::toml_text(text, value_.where));
  }
  void put(const char* key, std::int64_t number) { value_.set(key, {number, value_.where}); }
  void put(const char* key, double number) { value_.set(key, {number, value_.where}); }
  void put_flag(const char* key, bool flag) { value_.set(key, {flag, value_.where}); }
  void put(const char* key, sim::TomlValue value) { value_.set(key, std::move(value)); }
  const std::string& where() const { return value_.where; }
  sim::TomlValue take() { return std::move(value_); }

 private:
  sim::TomlValue value_;
};

}  // namespace stepcast::validate
