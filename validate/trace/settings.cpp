#include "validate/trace/settings.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/inputs/launch_arguments.hpp"

namespace stepcast::validate {
namespace {

using SettingsJson = nlohmann::json;

constexpr std::string_view blank = " \t\r";
constexpr std::string_view word_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_not_of(word_letters) == std::string_view::npos;
}

std::string unquoted(std::string_view text) {
  const bool quotes = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  return std::string(quotes ? text.substr(1, text.size() - 2) : text);
}

/// Without a comment behind it.
std::string_view value_part(std::string_view text) {
  const std::size_t comment = text.find(" #");
  return trimmed(text.substr(0, comment));
}

/// What stands between two texts, or behind the first one where the second is empty.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after = {}) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + before.size());
  if (after.empty()) return rest;
  const std::size_t end = rest.find(after);
  return end == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, end));
}

/// Without "[rank0]:" and "[default3]:", which torchrun puts before each line of a process, and
/// without "12: " of srun -l.
std::string_view without_rank(std::string_view text) {
  const std::size_t digit = text.find_first_not_of(' ');
  const std::size_t label = text.find_first_not_of("0123456789", std::min(digit, text.size()));
  if (label != std::string_view::npos && label > digit && text.substr(label).starts_with(": "))
    text.remove_prefix(label + 2);
  for (const std::string_view role : {"[rank", "[default"})
    if (text.starts_with(role))
      if (const std::size_t end = text.find("]:"); end != std::string_view::npos)
        if (is_word(text.substr(1, end - 1))) return text.substr(end + 2);
  return text;
}

/// "dim=4096, n_layers=32, scaling=Args(a=1, b=2)": parts outside of inner brackets.
void each_argument(std::string_view text, auto&& call) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ')';
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool closes = c == ')' || c == ']' || c == '}';
    if (depth == 0 && (c == ',' || closes)) {
      const std::string_view part = trimmed(text.substr(begin, i - begin));
      const std::size_t equals = part.find('=');
      if (equals != std::string_view::npos)
        call(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)));
      begin = i + 1;
      if (closes) return;
    } else if (closes) {
      --depth;
    }
  }
}

void flatten(const SettingsJson& value, const std::string& name, Settings& out) {
  if (value.is_object())
    for (const auto& [key, inner] : value.items())
      flatten(inner, name.empty() ? key : name + "." + key, out);
  else if (value.is_string())
    out.set(name, value.get<std::string>());
  else
    out.set(name, sim::json_text(value));
}

}  // namespace

void SettingsReader::line(std::string_view text) {
  text = without_rank(text);
  if (trimmed(text).starts_with("```")) {  // a part of a pasted text begins or ends
    begun_ = in_json_ = in_yaml_ = false;
    section_.clear();
    return;
  }
  if (!begun_ && trimmed(text).starts_with("{")) return begin_json(text, "");
  begun_ = begun_ || !trimmed(text).empty();
  if (json(text) || arguments(text) || megatron(text) || yaml(text) || toml(text)) return;
  torchtitan(text);
}

Settings SettingsReader::take() {
  if (arguments_) sim::set_usual_arguments(settings_);
  return std::move(settings_);
}

bool SettingsReader::arguments(std::string_view text) {
  const auto all = sim::launch_arguments(text);
  for (const sim::LaunchArgument& argument : all) {
    settings_.set(argument.name, argument.value);
    arguments_ = arguments_ || argument.name == "tensor_model_parallel_size" ||
                 argument.name == "num_layers";
  }
  return !all.empty();
}

/// "  {} {} {}".format(arg, '.' * (48 - len(arg)), value), maybe behind a launcher's prefix.
bool SettingsReader::megatron(std::string_view text) {
  if (const auto padded = between(text, "padded vocab (size:"))  // _vocab_size_with_padding
    if (const auto size = between(*padded, "(new size:", ")"))
      settings_.set("padded_vocab_size", std::string(trimmed(*size)));
  if (const auto size = between(text, "Padded vocab_size:", ","))  // NeMo
    settings_.set("padded_vocab_size", std::string(trimmed(*size)));
  const std::size_t dots = text.find(" ...");
  if (dots == std::string_view::npos) return false;
  const std::string_view before = trimmed(text.substr(0, dots));
  const std::string_view name = before.substr(before.find_last_of(" \t:>") + 1);
  const std::size_t end = text.find_first_not_of('.', dots + 1);
  // DeepSpeed prints its own configuration between Megatron's, some of it under the same names:
  // world_size are the ranks of data parallelism there (deepspeed/runtime/config.py).
  const bool deepspeed = before.find("[config.py:") != std::string_view::npos;
  if (!is_word(name)) return false;
  if (end == std::string_view::npos || text[end] != ' ') return false;
  std::string_view value = trimmed(text.substr(end));
  for (const std::string_view origin : {"default", "updated"})  // as GPT-NeoX prints
    if (value.ends_with(origin)) {
      value.remove_suffix(origin.size());
      value = value.substr(0, value.find_last_not_of('.') + 1);
    }
  settings_.set((deepspeed ? "deepspeed." : "") + std::string(name), std::string(value));
  return true;
}

void SettingsReader::begin_json(std::string_view text, std::string prefix) {
  json_.clear();
  json_prefix_ = std::move(prefix);
  in_json_ = true;
  depth_ = 0;
  json(text);
}

/// Lines of an object that has begun. What is no JSON (lines of several ranks between each other)
/// is left aside.
bool SettingsReader::json(std::string_view text) {
  constexpr std::size_t longest = 1 << 20;
  if (!in_json_) return false;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted) continue;
    depth_ += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth_ > 0 || text[i] != '}') continue;
    json_ += text.substr(0, i + 1);
    finish_json();
    return true;
  }
  json_ += text;
  json_ += '\n';
  in_json_ = json_.size() <= longest;
  return true;
}

void SettingsReader::finish_json() {
  const SettingsJson value = sim::python_json_or_discarded(json_);
  if (value.is_object()) flatten(value, json_prefix_, settings_);
  in_json_ = false;
}

/// "[training]" alone in its line, then "seq_len = 8192 # tokens" up to a line that is neither.
bool SettingsReader::toml(std::string_view text) {
  const std::string_view part = value_part(text);
  if (part.size() > 2 && part.front() == '[' && part.back() == ']' &&
      is_word(part.substr(1, part.size() - 2))) {
    section_ = part.substr(1, part.size() - 2);
    return true;
  }
  if (section_.empty() || part.empty() || part.front() == '#') return false;
  const std::size_t equals = part.find('=');
  const std::string_view key = trimmed(part.substr(0, equals));
  if (equals == std::string_view::npos || !is_word(key)) {
    section_.clear();
    return false;
  }
  settings_.set(section_ + "." + std::string(key), unquoted(trimmed(part.substr(equals + 1))));
  return true;
}

/// "trainer:" or "model:" alone in a line begins it; a line that is no "key: value" ends it. Lists
/// are passed over.
bool SettingsReader::yaml(std::string_view text) {
  const std::string_view part = value_part(text);
  if (!in_yaml_ && part != "trainer:" && part != "model:") return false;
  if (part.empty() || part.starts_with("#") || part.starts_with("- ")) return in_yaml_;
  const std::size_t colon = part.find(':');
  const std::string_view key = part.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
  if (colon == std::string_view::npos || !is_word(key) || (!value.empty() && value[0] != ' ')) {
    in_yaml_ = false;
    levels_.clear();
    return false;
  }
  const std::size_t indent = text.find_first_not_of(blank);
  while (!levels_.empty() && levels_.back().indent >= indent) levels_.pop_back();
  in_yaml_ = true;
  levels_.push_back({indent, std::string(key)});
  if (trimmed(value).empty()) return true;
  std::string name;
  for (const Level& level : levels_) name += (name.empty() ? "" : ".") + level.name;
  settings_.set(name, unquoted(trimmed(value)));
  return true;
}

void SettingsReader::torchtitan(std::string_view text) {
  for (const std::string_view mark : {"Running with configs: {", "Running with args: {"})
    if (const auto object = between(text, mark))
      begin_json(text.substr(text.find(mark) + mark.size() - 1), "");
  if (const auto building = between(text, "Building ")) {
    // "llama3 8B with ModelArgs(...)"; 0.2.1 forgot the blank before "with".
    const std::size_t with = building->find("with ");
    const std::size_t space = building->find(' ');
    if (with != std::string_view::npos && space < with) {
      const std::string_view rest = building->substr(with + 5);
      const bool object = rest.starts_with("{");
      if (object || rest.find("Args(") != std::string_view::npos) {
        settings_.set("model.name", std::string(building->substr(0, space)));
        settings_.set("model.flavor", std::string(trimmed(building->substr(space, with - space))));
      }
      if (object) begin_json(rest, "args");
      if (const auto arguments = between(rest, "Args("))
        each_argument(*arguments, [&](std::string_view key, std::string_view value) {
          settings_.set("args." + std::string(key), unquoted(value));
        });
    }
  }
  if (text.find("Compiling each TransformerBlock") != std::string_view::npos)
    settings_.set("compile.enable", "true");
  if (const auto gpu = between(text, "CUDA capacity: ", " with "))
    settings_.set("gpu", std::string(*gpu));
  for (const auto& [mark, name] : {std::pair{"local batch size ", "training.local_batch_size"},
                                   std::pair{"global batch size ", "training.global_batch_size"},
                                   std::pair{"sequence length ", "training.seq_len"}})
    if (text.find("Train") != std::string_view::npos)
      if (const auto value = between(text, mark))
        settings_.set(name, std::string(value->substr(0, value->find_first_not_of("0123456789"))));
  if (const auto mode = between(text, "Applied ", " activation checkpointing"))
    if (*mode == "full" || *mode == "selective" || *mode == "FullAC" || *mode == "SelectiveAC")
      settings_.set("activation_checkpoint.mode",
                    mode->starts_with("F") || *mode == "full" ? "full" : "selective");
  mesh(text);
}

/// "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]" of 2024 and 2025, "Building device
/// mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1" since.
void SettingsReader::mesh(std::string_view text) {
  if (const auto degrees = between(text, "device mesh with parallelism: "))
    each_argument(*degrees, [&](std::string_view key, std::string_view value) {
      settings_.set("mesh." + std::string(key), std::string(value));
    });
  const auto names = between(text, "-D device mesh with [", "]");
  if (!names) return;
  const auto sizes = between(text.substr(text.find(*names) + names->size()), "[", "]");
  if (!sizes) return;
  const auto next = [](std::string_view& list) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view one = trimmed(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 1));
    return one;
  };
  for (std::string_view left = *names, right = *sizes; !left.empty() && !right.empty();) {
    const std::string name = unquoted(next(left));
    settings_.set("mesh." + name, std::string(next(right)));
  }
}

bool is_configuration(std::string_view json) {
  constexpr std::string_view marks[] = {"\"train_micro_batch_size_per_gpu\"",
                                        "\"zero_optimization\"", "\"init_device_mesh\""};
  return json.find("\"traceEvents\"") == std::string_view::npos &&
         std::ranges::any_of(marks, [&](std::string_view mark) {
           return json.find(mark) != std::string_view::npos;
         });
}

}  // namespace stepcast::validate
