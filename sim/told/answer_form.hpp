// What the answer to a scenario holds: the members of its JSON and their schema. The keys are an
// interface that others script against.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "sim/files/toml_value.hpp"
#include "sim/form/form.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/metrics.hpp"

namespace stepcast::sim {

/// One run or collective, or {"refused": reason, ...}.
nlohmann::ordered_json answer_json(const Answer& answer);
/// Of a run alone.
SchemaOf step_schema();
/// Of any answer, and of what has none.
SchemaOf answer_schema();

/// What a name means that every answer calls the same.
std::string meaning_of(std::string_view key);
nlohmann::ordered_json value_json(const TomlValue& value);

/// A number of metrics() as a member of an object of a T; left out where it is not a number.
template <class T>
void add_metric(Form<T>& form, const Metric& metric, std::function<double(const T&)> number) {
  std::string path(metric.key);
  std::ranges::replace(path, '.', '/');
  const std::string meaning(metric.meaning), unit(metric.unit.empty() ? "1" : metric.unit);
  const auto value = [number](const T& of) {
    const double found = number(of);
    return std::isnan(found) ? std::nullopt : std::optional(found);
  };
  if (metric.counts())
    form.has(path, meaning, [value](const T& of) -> std::optional<std::int64_t> {
      const auto found = value(of);
      return found ? std::optional(static_cast<std::int64_t>(*found)) : std::nullopt;
    });
  else
    form.has(path, meaning, value, unit);
}

}  // namespace stepcast::sim
