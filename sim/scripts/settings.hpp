// What a framework's file, command line or log says of a run, under the framework's own names.
// Knows no scenario.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// Names as the framework has them: "num_layers" of Megatron-LM, "model.num_layers" of NeMo,
/// "training.seq_len" of torchtitan, "args.dim" of its model. A later value replaces an earlier
/// one.
class Settings {
 public:
  using All = std::map<std::string, std::string, std::less<>>;

  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }
  bool empty() const { return values_.empty(); }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  /// Null where it is not said, or said to be None or null.
  const std::string* find(const std::string& name) const;
  std::optional<std::int64_t> integer(const std::string& name) const;
  std::optional<double> number(const std::string& name) const;
  std::optional<bool> flag(const std::string& name) const;
  void add(const Settings& others);
  /// Where nothing is said yet.
  void set_usual(const std::string& name, std::string value) {
    values_.try_emplace(name, std::move(value));
  }
  const All& all() const { return values_; }

 private:
  All values_;
};

/// "True", "yes" and their like; none: no such word.
std::optional<bool> flag_in(std::string_view text);
/// 8, 8.0 and 5e8 alike; none: no whole number.
std::optional<std::int64_t> integer_in(std::string_view text);

}  // namespace stepcast::sim
