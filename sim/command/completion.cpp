#include "sim/command/completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sim/scenario/scenario_keys.hpp"
#include "sim/told/metrics.hpp"

namespace stepcast::sim {
namespace {

using Words = std::vector<std::string>;

/// What a key of a scenario may be, as far as it is a word.
Words words_of_key(std::string_view path) {
  const auto key = std::ranges::find(scenario_keys(), path, &ScenarioKey::path);
  if (key == scenario_keys().end()) return {};
  Words out = choices_in(key->type.c_str());
  std::erase_if(out, [](const std::string& word) {
    return word == "integer" || word == "table" || word == "text";
  });
  return out;
}

Words frameworks(const Catalogue& catalogue) {
  std::set<std::string> out;
  for (const std::string& name : catalogue.names("software")) {
    const TomlValue* framework = catalogue.entry("software", name, name).find("framework");
    if (framework != nullptr && framework->text() != nullptr) out.insert(*framework->text());
  }
  return {out.begin(), out.end()};
}

/// What the catalogue knows for an option of this name.
Words entries_for(std::string_view option, const Catalogue& catalogue) {
  if (option == "framework") return frameworks(catalogue);
  if (option == "gpu") return catalogue.gpus().known();
  for (const char* folder : {"nodes", "fabrics", "models"})
    if (folder == std::string(option) + "s") return catalogue.names(folder);
  return {};
}

/// "plan.data=zero3", and before the equals sign the key.
Words settings_for(const std::string& word) {
  const std::size_t equals = word.find('=');
  Words out;
  if (equals == std::string::npos)
    for (const ScenarioKey& key : scenario_keys()) out.push_back(key.path + "=");
  else
    for (const std::string& value : words_of_key(word.substr(0, equals)))
      out.push_back(word.substr(0, equals + 1) + value);
  return out;
}

Words values_of(const Option& option, const std::string& word, const Catalogue& catalogue) {
  if (option.name == std::string_view("set")) return settings_for(word);
  if (Words words = choices_in(option.argument); !words.empty()) return words;
  if (Words words = words_of_key(option.key); !words.empty()) return words;
  return entries_for(option.name, catalogue);
}

/// What may stand without a dash behind the words `before`.
Words positionals_of(const Verb& verb, const Words& before, const Catalogue& catalogue) {
  const std::string_view wanted = verb.positional;
  if (before.empty()) {
    if (Words words = choices_in(verb.positional); !words.empty()) return words;
    if (wanted == "KIND") return words_of_key("collective.kind");
    Words out;
    if (wanted == "METRIC")
      for (const Metric& one : explanations()) out.emplace_back(one.key);
    return out;
  }
  const Words folders{"gpus", "architectures", "models", "nodes", "fabrics", "software", "nccl"};
  const bool entry = wanted.find("NAME") != std::string_view::npos && before.size() == 1;
  return entry && std::ranges::count(folders, before[0]) > 0 ? catalogue.names(before[0]) : Words{};
}

const Option* option_named(const Verb& verb, std::string_view word) {
  if (!word.starts_with("--")) return nullptr;
  const auto found = std::ranges::find(verb.options, word.substr(2), &Option::name);
  return found == verb.options.end() ? nullptr : &*found;
}

Words options_of(const Verb& verb) {
  Words out{"--help"};
  for (const Option& option : verb.options) out.push_back("--" + std::string(option.name));
  return out;
}

/// `words`: behind the verb, the last one to be completed.
Words completions_of(const Verb& verb, const Words& words, const Catalogue& catalogue) {
  const std::string& word = words.back();
  if (const std::size_t equals = word.find('='); word.starts_with("--") && equals != word.npos) {
    const Option* option = option_named(verb, std::string_view(word).substr(0, equals));
    Words out;
    if (option != nullptr)
      for (const std::string& value : values_of(*option, word.substr(equals + 1), catalogue))
        out.push_back(word.substr(0, equals + 1) + value);
    return out;
  }
  Words before;
  const Option* asks = nullptr;  // an option whose value stands next
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool is_value = std::exchange(asks, nullptr) != nullptr;
    if (is_value) continue;
    if (!words[i].starts_with('-')) before.push_back(words[i]);
    asks = option_named(verb, words[i]);
    if (asks != nullptr && *asks->argument == '\0') asks = nullptr;
  }
  if (asks != nullptr) return values_of(*asks, word, catalogue);
  return word.starts_with('-') ? options_of(verb) : positionals_of(verb, before, catalogue);
}

/// "--gpu", "=", "h1" as "--gpu=h1".
Words with_equals_joined(const Words& typed) {
  Words out;
  bool joins = false;
  for (const std::string& word : typed) {
    if (!out.empty() && (joins || word == "="))
      out.back() += word;
    else
      out.push_back(word);
    joins = word == "=";
  }
  return out;
}

}  // namespace

std::vector<std::string> values_of_option(const Option& option, const Catalogue& catalogue) {
  return values_of(option, "", catalogue);
}

std::vector<std::string> completions(const Program& program, const Words& typed,
                                     const Catalogue& catalogue) {
  Words words = with_equals_joined(typed);
  Words out;
  if (!program.has_verbs()) {
    out = completions_of(program.commands.front().verb, words, catalogue);
  } else if (words.size() == 1) {
    out = verbs_of(program);
    out.insert(out.end(), {"--help", "--version"});
  } else if (const Command* command = command_of(program, words[0])) {
    words.erase(words.begin());
    out = completions_of(command->verb, words, catalogue);
  }
  const std::string& whole = words.back();
  std::erase_if(out, [&](const std::string& word) { return !word.starts_with(whole); });
  // bash puts the reply in the place of its own last word.
  const std::size_t kept = typed.back() == "=" ? 0 : typed.back().size();
  for (std::string& word : out) word.erase(0, whole.size() - kept);
  return out;
}

std::string completion_script(const Program& program) {
  std::string name = program.name;
  std::ranges::replace(name, '-', '_');
  return fmt::format(R"(# bash completion of {0}, written by `{0} completion bash`
_{1}() {{
  mapfile -t COMPREPLY < <("${{1:-{0}}}" completion reply "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)
  [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}}
complete -o default -F _{1} {0}
)",
                     program.name, name);
}

}  // namespace stepcast::sim
