#include "sim/inputs/beside_plan.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/network/nccl/variables.hpp"
#include "sim/scripts/text_pieces.hpp"

namespace stepcast::sim {
namespace {

constexpr std::string_view allocator_names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

/// Variables that make a run wait, with the value that does, the key that says it and what it
/// means.
struct WaitingVariable {
  std::string_view name, value;
  const char *key, *means;
};
constexpr WaitingVariable waiting_variables[] = {
    {"CUDA_LAUNCH_BLOCKING", "1", "software.launch_blocking", "the host waits for each kernel"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "software.collective_checks",
     "the hosts of a group meet before each collective"},
};

const WaitingVariable* waiting_variable(std::string_view name) {
  const auto found = std::ranges::find(waiting_variables, name, &WaitingVariable::name);
  return found == std::end(waiting_variables) ? nullptr : found;
}

bool is_variable(std::string_view name) {
  return std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// Only a shell knows it.
bool is_open(std::string_view value) { return value.find_first_of("$`") != std::string_view::npos; }

/// An unquoted $(cat FILE) is cut at blanks, and its wildcards are looked up; quotes stay.
bool is_taken_apart(std::string_view value, const Settings& settings) {
  if (value.find_first_of("*?[") != std::string_view::npos) return true;
  const std::string* words = settings.find(std::string(words_with_blanks));
  for (std::size_t at = 0; words != nullptr && at < words->size();) {
    const std::size_t end = words->find('\0', at);
    const std::string_view word = std::string_view(*words).substr(at, end - at);
    if (value.find(word) != std::string_view::npos || word.ends_with("=" + std::string(value)))
      return true;
    at = end + 1;
  }
  return false;
}

/// "run.sh:3", the last line that gives `name` a value; the files where none does.
std::string line_of(std::span<const NamedText> files, const std::string& name) {
  std::string out, all;
  for (const auto& [path, text] : files) {
    all += (all.empty() ? "" : ", ") + path;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const std::string_view behind = bare(std::string_view(text).substr(at + name.size()));
      if (behind.starts_with("=") || behind.starts_with(":"))
        out = fmt::format("{}:{}", path,
                          std::ranges::count(std::string_view(text).substr(0, at), '\n') + 1);
    }
  }
  return out.empty() ? all : out;
}

/// "expandable_segments:True,max_split_size_mb:512"
void take_allocator(const std::string& name, const std::string& value, Facts& facts,
                    const std::string& where) {
  constexpr std::string_view segments = "expandable_segments:";
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string_view one = bare(std::string_view(value).substr(at, end - at));
    at = end + 1;
    if (one.empty()) continue;
    if (!one.starts_with(segments)) {
      facts.notes.push_back(fmt::format("{}: {} bears on memory, and no key says it.", name, one));
      continue;
    }
    const std::string_view said = bare(one.substr(segments.size()));
    if (said != "True" && said != "False")
      throw InputError(where, fmt::format("{}: '{}' is neither True nor False", name, one));
    facts.set("software.expandable_segments", {said == "True", ""}, where);
  }
}

/// Theirs, and in no plan.
bool is_own_line(const std::string& name) {
  const LaunchWords others[] = {accelerate_words(), deepspeed_words()}, own[] = {trainer_words()};
  const LaunchWord* word = find_word(own, name);
  const bool in_a_plan = word != nullptr && word->use != Use::ignored && word->use != Use::unsaid &&
                         name != "model_name_or_path";
  return !in_a_plan && (word != nullptr || find_word(others, name) == nullptr);
}

/// The top keys of a YAML with the lines that are theirs; empty: it is no YAML in blocks.
std::vector<std::pair<std::string, std::string>> yaml_blocks(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap() || root.Style() == YAML::EmitterStyle::Flow) return {};
    std::vector<std::pair<std::string, std::size_t>> starts;
    for (const auto& entry : root)
      if (entry.first.IsScalar()) starts.emplace_back(entry.first.Scalar(), entry.first.Mark().pos);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::size_t end = i + 1 < starts.size() ? starts[i + 1].second : text.size();
      std::string block(text.substr(starts[i].second, end - starts[i].second));
      // Remarks and marks at column 0 behind it are of what follows.
      for (;;) {
        block.resize(block.find_last_not_of(" \t\r\n") + 1);
        const std::size_t line = block.rfind('\n');
        const std::string_view last = std::string_view(block).substr(line + 1);
        if (line == std::string::npos || !(last.starts_with("#") || last == "---" || last == "..."))
          break;
        block.resize(line);
      }
      const YAML::Node alone = YAML::Load(block);  // throws where an anchor stands elsewhere
      if (alone.IsMap()) out.emplace_back(starts[i].first, block);
    }
  } catch (const YAML::Exception&) {
    return {};
  }
  return out;
}

/// A value of a command line, as YAML has it.
std::string yaml_value(const std::string& value) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  constexpr std::string_view words[] = {"null", "Null", "NULL", "yes", "Yes", "YES", "no",
                                        "No",   "NO",   "on",   "On",  "ON",  "off", "Off",
                                        "OFF",  "y",    "Y",    "n",   "N"};
  const bool plain = !value.empty() && value.find_first_not_of(letters) == std::string::npos &&
                     value.front() != '-' && std::ranges::find(words, value) == std::end(words);
  const bool number = integer_in(value).has_value() || value == "-1";
  return plain || number ? value : json_text(nlohmann::json(value));
}

}  // namespace

bool is_read_from_environment(std::string_view name) {
  return name.starts_with("NCCL_") || waiting_variable(name) != nullptr ||
         std::ranges::find(allocator_names, name) != std::end(allocator_names);
}

void own_arguments(const Settings& settings, WordTables tables, LaunchInput& input) {
  constexpr std::string_view launchers[] = {"node_rank", "master_", "rdzv", "local_ranks_filter",
                                            "log_dir",   "tee",     "role", "max_restarts"};
  for (const auto& [name, value] : settings.all()) {
    const LaunchWord* word = find_word(tables, name);
    const bool vocabulary =
        word != nullptr && word->key == "model.vocab" && !name.ends_with("vocab_size");
    const bool in_a_plan =
        word != nullptr && word->use != Use::ignored && word->use != Use::unsaid && !vocabulary;
    const bool launcher =
        std::ranges::any_of(launchers, [&](std::string_view one) { return name.starts_with(one); });
    if (in_a_plan || launcher || is_variable(name) || value.empty() || value == "False" ||
        name.starts_with('@'))
      continue;
    std::string argument = "--" + name;
    std::ranges::replace(argument, '_', '-');
    auto& list = is_open(value)                    ? input.open_arguments
                 : is_taken_apart(value, settings) ? input.cut_arguments
                                                   : input.own_arguments;
    list.push_back(value == "True" ? argument : argument + " " + value);
  }
}

void take_environment(Settings& settings, Facts& facts, std::span<const NamedText> files) {
  std::vector<std::string> taken;
  for (const auto& [name, value] : settings.all()) {
    if (!is_read_from_environment(name) || is_open(value)) continue;
    taken.push_back(name);
    const std::string where = line_of(files, name);
    if (const WaitingVariable* waiting = waiting_variable(name)) {
      if (value != waiting->value) continue;
      facts.set(waiting->key, {true, ""}, where);
      facts.notes.push_back(
          fmt::format("{}={}: {} ({}).", name, value, waiting->means, waiting->key));
      continue;
    }
    if (!name.starts_with("NCCL_")) {
      take_allocator(name, value, facts, where);
      continue;
    }
    const NcclName known = nccl_name(name);
    if (known == NcclName::unknown)
      facts.notes.push_back(name + " is no variable of NCCL that is known here.");
    if (known != NcclName::read) continue;
    nccl_overrides({{name, value, where}});
    facts.set("nccl." + name, toml_text(value, ""), where);
  }
  for (const std::string& name : taken) settings.erase(name);
}

void own_lines(std::span<const NamedText> files, const Settings& settings, LaunchInput& input) {
  std::vector<std::string> done;
  for (const auto& [path, text] : files) {
    if (settings.has("@arguments")) break;
    for (const auto& [name, block] : yaml_blocks(text)) {
      done.push_back(name);
      if (is_own_line(name)) input.own_lines.push_back(block);
    }
  }
  for (const auto& [name, value] : settings.all()) {
    const std::string top = name.substr(0, name.find('.'));
    if (std::ranges::find(done, top) != done.end() || name.starts_with('@') || is_variable(top) ||
        !is_own_line(name))
      continue;
    if (name != top || is_open(value))
      input.open_arguments.push_back(name + ": " + value);
    else
      input.own_lines.push_back(name + ": " + yaml_value(value));
  }
}

}  // namespace stepcast::sim
