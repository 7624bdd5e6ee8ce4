#include "validate/pasted/lines.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "sim/scripts/text_pieces.hpp"

namespace stepcast::validate {
namespace {

using sim::bare;
using sim::says;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view word_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool is_word(std::string_view text, std::string_view also = {}) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return word_letters.find(c) != std::string_view::npos || also.find(c) != std::string_view::npos;
  });
}

/// The word in front of `mark`; empty: the line does not begin so.
std::string_view word_before(std::string_view line, char mark, std::string_view also) {
  const std::size_t at = line.find(mark);
  const std::string_view word = line.substr(0, std::min(at, line.size()));
  return at != std::string_view::npos && is_word(word, also) ? word : std::string_view();
}

std::string_view without_prompt(std::string_view line) {
  for (const std::string_view prompt : {"$ ", "# ", "> "})
    if (bare(line).starts_with(prompt)) {
      const std::string_view rest = bare(line).substr(prompt.size());
      if (prompt == "$ " || is_command_line(rest)) return rest;
    }
  return line;
}

/// From an opening bracket up to its own closing one; none: it is never closed.
std::optional<std::string_view> bracketed(std::string_view text) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      return text.substr(1, i - 1);
    }
  }
  return std::nullopt;
}

/// "a=1, b=[2, 3]" cut at the commas outside of brackets and quotes.
std::vector<std::string_view> arguments_in(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      out.push_back(bare(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return out;
}

/// Without what stands behind '#' in each line.
std::string without_comments(std::string_view text) {
  std::string out;
  bool comment = false;
  for (const char c : text) {
    comment = c != '\n' && (comment || c == '#');
    if (!comment) out += c;
  }
  return out;
}

struct Call {
  std::string_view name, prefix;  // of its arguments: "r" of LoraConfig is "lora_r"
};
constexpr Call calls[] = {
    {"TrainingArguments(", ""}, {"SFTConfig(", ""},       {"GRPOConfig(", ""},
    {"DPOConfig(", ""},         {"LoraConfig(", "lora_"}, {"BitsAndBytesConfig(", ""},
    {"args = dict(", ""},
};

std::string value_of(std::string_view value, const std::map<std::string, std::string>& names) {
  const auto known = names.find(std::string(value));
  if (known != names.end()) return known->second;
  const bool quoted = value.size() >= 2 && value.front() == value.back() &&
                      (value.front() == '"' || value.front() == '\'');
  return std::string(quoted ? value.substr(1, value.size() - 2) : value);
}

/// A number, a flag, a text: what means the same in YAML.
bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  return is_word(value, ".-+/") || value.front() == '"' || value.front() == '\'' ||
         value.front() == '[';
}

/// `name = "value"` at the beginning of lines.
std::map<std::string, std::string> assignments_in(std::string_view text) {
  std::map<std::string, std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = bare(text.substr(at, end - at));
    at = end + 1;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = bare(line.substr(0, equals)),
                           value = bare(line.substr(equals + 1));
    if (is_word(name) && is_plain(value) && !value.ends_with(","))
      out[std::string(name)] = value_of(value, {});
  }
  return out;
}

}  // namespace

bool is_fence(std::string_view line) {
  return bare(line).starts_with("```") || bare(line).starts_with("~~~");
}

bool is_key_line(std::string_view line) {
  const std::string_view text = bare(line);
  const std::string_view key = word_before(text, ':', ".-");
  if (key.empty() || key.find_first_of(letters) == std::string_view::npos) return false;
  const std::string_view rest = text.substr(key.size() + 1);
  return rest.empty() || rest[0] == ' ' || rest[0] == '\t';
}

bool is_list_line(std::string_view line) { return bare(line).starts_with("- "); }
bool is_comment_line(std::string_view line) { return bare(line).starts_with("#"); }

bool is_argument_line(std::string_view line) {
  const std::string_view text = bare(line);
  if (text.size() > 2 && text.starts_with("--") && letters.find(text[2]) != std::string_view::npos)
    return true;
  const std::size_t first = text.find_first_not_of("+~");
  if (first == std::string_view::npos) return false;
  const std::string_view name = word_before(text.substr(first), '=', ".");
  return name.find('.') != std::string_view::npos;
}

bool is_assignment_line(std::string_view line) {
  std::string_view text = bare(line);
  if (text.starts_with("export ")) text = bare(text.substr(7));
  const std::string_view name = word_before(text, '=', "");
  return !name.empty() && letters.find(name[0]) != std::string_view::npos;
}

bool is_command_line(std::string_view line) {
  const std::string_view text = bare(line);
  for (const std::string_view program :
       {"torchrun", "deepspeed", "accelerate", "python", "swift", "megatron", "llamafactory-cli",
        "axolotl", "srun", "mpirun", "bash", "sh "})
    if (text.starts_with(program)) return true;
  for (const std::string_view mark : {" -m ", ".py ", ".sh ", "torchrun ", "swift sft"})
    if (says(text, mark)) return true;
  return says(text, " --") && !text.ends_with(".");
}

bool is_printed_line(std::string_view line) {
  for (const std::string_view mark :
       {" INFO", "[INFO]", "iteration ", "step:", "it/s", "s/it", "Traceback",
        "Error:", " loss:", "{'loss'", " ....", "WARNING"})
    if (says(line, mark)) return true;
  return false;
}

std::string as_shell(std::span<const std::string> lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line(without_prompt(lines[i]));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.pop_back();
    const bool goes_on = i + 1 < lines.size() && is_argument_line(lines[i + 1]);
    const bool can = is_command_line(line) || is_argument_line(line);
    if (goes_on && can && !line.ends_with("\\")) line += " \\";
    out += line + "\n";
  }
  return out;
}

std::string as_yaml_of_python(std::string_view text) {
  const std::string code = without_comments(text);
  const std::map<std::string, std::string> names = assignments_in(code);
  std::string out;
  for (const auto& [name, prefix] : calls) {
    const std::size_t at = code.find(name);
    if (at == std::string::npos) continue;
    const auto inside = bracketed(std::string_view(code).substr(at + name.size() - 1));
    if (!inside) continue;
    if (!prefix.empty()) out += "use_peft: True\n";
    for (const std::string_view argument : arguments_in(*inside)) {
      const std::size_t equals = argument.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = bare(argument.substr(0, equals));
      const std::string_view value = bare(argument.substr(equals + 1));
      if (!is_word(key) || !is_plain(value)) continue;
      const bool own = !prefix.empty() && !key.starts_with(prefix);
      out += (own ? std::string(prefix) : "") + std::string(key) + ": " + value_of(value, names) +
             "\n";
    }
  }
  if (out.empty()) return out;
  constexpr std::string_view loads = "from_pretrained(";
  if (const std::size_t at = code.find(loads); at != std::string::npos)
    if (const auto inside = bracketed(std::string_view(code).substr(at + loads.size() - 1)))
      if (const auto all = arguments_in(*inside); !all.empty() && is_plain(all[0]))
        out += "model_name_or_path: " + value_of(all[0], names) + "\n";
  return out;
}

std::string without_bullets(std::span<const std::string> lines) {
  std::string out;
  for (const std::string& line : lines) {
    const std::size_t at = line.find("- ");
    const std::string_view rest =
        bare(at == std::string::npos ? line : std::string_view(line).substr(at + 2));
    if (is_key_line(rest)) out += std::string(rest) + "\n";
  }
  return out;
}

}  // namespace stepcast::validate
