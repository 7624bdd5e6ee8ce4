#include "sim/inputs/launch_file.hpp"
#include "sim/inputs/training_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/inputs/beside_plan.hpp"
#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_arguments.hpp"
#include "sim/inputs/launchers.hpp"
#include "sim/inputs/named_files.hpp"
#include "sim/inputs/recipe_source.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/scripts/shell_text.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "sim/scripts/yaml_settings.hpp"

namespace stepcast::sim {
namespace {

template <class Call>
void each_line(std::string_view text, Call call) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    call(text.substr(at, end - at));
    at = end + 1;
  }
}

/// "  num_layers ........ 32" of Megatron-LM's print, behind a launcher's prefix or not.
Settings dump_settings(std::string_view text) {
  Settings out;
  each_line(text, [&](std::string_view line) {
    const std::size_t dots = line.find(" ...");
    if (dots == std::string_view::npos) return;
    const std::size_t end = line.find_first_not_of('.', dots + 1);
    if (end == std::string_view::npos || line[end] != ' ') return;
    const std::string_view before = bare(line.substr(0, dots));
    const std::string_view name = before.substr(before.find_last_of(" \t:>") + 1);
    out.set(std::string(name), std::string(bare(line.substr(end))));
  });
  return out;
}

/// "+actor.megatron.x=1": hydra's words.
void add_hydra_words(const ShellCommand& command, Settings& out) {
  for (const std::string& word : command.words) {
    const std::size_t equals = word.find('=');
    const std::size_t first = word.find_first_not_of("+~");
    if (equals == std::string::npos || first == std::string::npos || word[0] == '-') continue;
    const std::string name = word.substr(first, equals - first);
    const bool plain = name.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_.") == std::string::npos;
    if (plain && !name.empty()) out.set(name, word.substr(equals + 1));
  }
}

Settings command_settings(const ShellCommand& command) {
  Settings out;
  std::string program;
  for (const std::string& word : command.words) {
    if (word.starts_with("--")) break;
    program += (program.empty() ? "" : " ") + word;
  }
  for (std::size_t i = 0; i < command.words.size(); ++i)
    if (command.words[i] == "-m" || command.words[i].ends_with(".py") ||
        command.words[i].ends_with(".sh"))
      program +=
          " " + command.words[i] + (i + 1 < command.words.size() ? " " + command.words[i + 1] : "");
  for (const auto& [name, value] : command.environment)
    if (!value.starts_with("$")) out.set(name, value);
  for (const LaunchArgument& argument : command_arguments(command.words))
    out.set(argument.name, argument.value);
  std::string apart;
  for (const std::string& word : command.words)
    if (word.find_first_of(" \t\n") != std::string::npos) apart += word + '\0';
  if (!apart.empty()) out.set(std::string(words_with_blanks), apart);
  add_hydra_words(command, out);
  out.set("@program", program);
  out.set("@arguments", "True");
  return out;
}

bool is_no_training(const ShellCommand& command) {
  constexpr std::string_view others[] = {"echo",   "printf", "export", "mkdir", "cd",  "set",
                                         "source", ".",      "pip",    "git",   "cat", "ls"};
  return std::ranges::find(others, command.words[0]) != std::end(others);
}

/// "MODEL_ARGS: {--num-layers: 12}" of Megatron-LM's own tests.
Settings without_dashes(const Settings& said, const std::string& path) {
  if (const std::string* mode = said.find("MODE"); mode != nullptr && *mode == "inference")
    throw InputError(path, "starts no training that is known here", "its MODE is inference");
  constexpr std::string_view table = "MODEL_ARGS.--";
  Settings out;
  bool arguments = false;
  std::vector<std::string> words;
  for (const auto& [name, value] : said.all()) {
    if (!name.starts_with(table)) {
      constexpr std::string_view environment = "ENV_VARS.";
      if (!name.starts_with(environment) && !name.starts_with("MODEL_ARGS")) out.set(name, value);
      if (name.starts_with(environment))
        if (const std::string one = name.substr(environment.size()); is_read_from_environment(one))
          out.set(one, value);
      continue;
    }
    words.push_back("--" + name.substr(table.size()));
    if (value != "true") words.push_back(value);
    if (value == "false") words.resize(words.size() - 2);
    arguments = true;
  }
  for (const LaunchArgument& argument : command_arguments(words))
    out.set(argument.name, argument.value);
  if (arguments) out.set("@arguments", "True");
  if (arguments)
    for (const char* beside : {"LAUNCHER", "METRICS", "TEST_TYPE", "MODE"}) out.erase(beside);
  return out;
}

class ScriptSettings {
 public:
  explicit ScriptSettings(const std::string& path) : path_(path) {}

  /// The command that trains: of those of a known format the one with most words.
  void read(std::string_view text) {
    head_ = slurm_head(text);
    read(text, slurm_variables(head_), 0);
  }

  Settings best;
  std::string idle;  // a program that trains nothing, and is called
  std::vector<std::string> notes;

 private:
  /// A script in a script has its variables.
  void read(std::string_view text, ShellVariables known, int depth) {
    constexpr int deepest_script = 3;
    const ShellText shell = read_shell(text, path_, std::move(known));
    for (ShellCommand command : shell.commands) {
      leave_out_runner(command);
      with_files(command);
      if (is_no_training(command)) {
        heredoc(command);
        continue;
      }
      if (const std::string other = idle_program(command); !other.empty())
        idle = other;
      else
        take(command_settings(command));
      heredoc(command);
      if (depth == deepest_script) continue;
      if (!command.input.empty()) read(command.input, shell.variables, depth + 1);
      for (const std::string& word : command.words)  // bash -c "cd x; python train.py --a 1"
        if (word.find(' ') != std::string::npos && says(word, "--"))
          read(word, shell.variables, depth + 1);
    }
    notes.insert(notes.end(), shell.notes.begin(), shell.notes.end());
    if (depth == 0 && best.empty() && idle.empty()) variables(shell);
    if (depth > 0 || best.empty()) return;
    environment(shell);
    const InputFormat* format = format_of(best);
    const auto tables = format->tables();
    if (find_word(tables, "nnodes") != nullptr) add_slurm_head(best, head_);
  }

  /// "$(cat megatron.args)": the words of a file beside the script.
  void with_files(ShellCommand& command) const {
    std::vector<std::string> words;
    for (const std::string& word : command.words) {
      const bool shown = word.starts_with("$(cat ") && word.ends_with(")");
      const auto text = shown ? text_beside(path_, word.substr(6, word.size() - 7)) : std::nullopt;
      if (!text) {
        words.push_back(word);
        continue;
      }
      for (const std::string_view one : words_of_text(*text)) words.emplace_back(one);
    }
    command.words = std::move(words);
  }

  void take(Settings found) {
    add_named_files(found, path_);
    if (format_of(found) != nullptr && found.all().size() > best.all().size())
      best = std::move(found);
  }

  /// What NCCL and the allocator read.
  void environment(const ShellText& shell) {
    for (const auto& [name, values] : shell.variables)
      if (values.size() == 1 && !values[0].empty() && is_read_from_environment(name))
        best.set_usual(name, values[0]);
  }

  /// A script that only sets variables for another: the arguments in them. Those of one variable
  /// end with it.
  void variables(const ShellText& shell) {
    ShellCommand all;
    for (const auto& [name, values] : shell.variables) {
      for (const std::string& value : values)
        for (const std::string_view one : words_of_text(value)) all.words.emplace_back(one);
      all.words.emplace_back("--");
    }
    take(command_settings(all));
    const auto tokenizer = shell.variables.find("TOKENIZER_MODEL");
    if (!best.empty() && tokenizer != shell.variables.end() && tokenizer->second.size() == 1)
      best.set_usual("tokenizer_model", tokenizer->second[0]);
  }

  /// DeepSpeed's JSON written by `cat <<EOT > ds.json`.
  void heredoc(const ShellCommand& command) {
    if (bare(command.input).starts_with("{") && says(command.input, "zero_optimization"))
      deepspeed_ = read_json_settings(command.input, path_);
  }

 public:
  Settings deepspeed_;

 private:
  const std::string& path_;
  Settings head_;
};

bool is_shell(std::string_view text, const std::string& path) {
  return path.ends_with(".sh") ||
         (text.starts_with("#!") && says(text.substr(0, text.find('\n')), "sh"));
}

bool is_script(std::string_view text, const std::string& path) {
  if (is_shell(text, path)) return true;
  for (const std::string_view mark :
       {" --", "\n--", "torchrun ", "actor_rollout_ref.", "verl.trainer", "run_train.sh",
        "torchtitan.train", "llamafactory-cli "})
    if (says(text, mark)) return true;
  return text.starts_with("--");
}

/// Lines that all begin with an argument: what "$(cat megatron.args)" hands on.
Settings argument_settings(std::string_view text) {
  Settings out;
  bool all = true;
  each_line(text, [&](std::string_view line) {
    const std::string_view one = bare(line);
    if (one.empty() || one.starts_with("#")) return;
    all = all && one.starts_with("--");
    for (const LaunchArgument& argument : launch_arguments(one))
      out.set(argument.name, argument.value);
  });
  if (!all || out.empty()) return {};
  out.set("@arguments", "True");
  return out;
}

/// Lines that are all KEY=VALUE, a path among the keys: overrides of hydra.
Settings override_settings(std::string_view text) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  Settings out;
  bool all = true, paths = false;
  each_line(text, [&](std::string_view line) {
    std::string_view one = bare(line);
    if (one.empty() || one.starts_with("#")) return;
    one.remove_prefix(std::min(one.find_first_not_of('+'), one.size()));
    const std::size_t equals = one.find('=');
    const std::string_view name = one.substr(0, std::min(equals, one.size()));
    all = all && equals != std::string_view::npos && !name.empty() &&
          name.find_first_not_of(letters) == std::string_view::npos;
    if (!all) return;
    paths = paths || name.find('.') != std::string_view::npos;
    std::string_view value = one.substr(equals + 1);
    if (value.size() > 1 && value.front() == '\'' && value.back() == '\'')
      value = value.substr(1, value.size() - 2);
    out.set(std::string(name), std::string(value));
  });
  return all && paths ? out : Settings();
}

struct Read {
  Settings settings;
  std::vector<std::string> notes;
};

Read settings_of(std::string_view text, const std::string& path, const std::string& function) {
  const std::string_view body = bare(text);
  if (body.starts_with("{")) return Read{read_json_settings(body, path), {}};
  if (is_registry(text)) return Read{registered(text, path, function), {}};
  if (is_bridge_recipe(text)) return Read{bridge_recipe(text, path, function), {}};
  Settings dump = dump_settings(text);
  constexpr std::size_t least = 5;
  if (dump.all().size() >= least) return Read{std::move(dump), {}};
  if (Settings arguments = argument_settings(text); !arguments.empty())
    return Read{std::move(arguments), {}};
  if (Settings overrides = override_settings(text); !overrides.empty())
    return Read{std::move(overrides), {}};
  const bool named_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  if (!named_yaml && is_script(text, path)) {
    ScriptSettings script(path);
    script.read(text);
    add_usual(script.best, script.deepspeed_);
    if (!script.best.empty()) return Read{std::move(script.best), std::move(script.notes)};
    if (is_shell(text, path))
      throw InputError(
          path, "starts no training that is known here",
          script.idle.empty() ? "docs/inputs.md lists what is read" : "it calls " + script.idle);
  }
  return Read{without_dashes(read_yaml_settings(text, path), path), {}};
}

/// What an earlier file says to be none is none, and so is what lies below it.
void leave_out(Settings& settings, const Settings& earlier) {
  for (const auto& [name, value] : earlier.all()) {
    if (value != "null" && value != "None") continue;
    std::vector<std::string> gone{name};
    for (auto at = settings.all().lower_bound(name + "."); at != settings.all().end(); ++at)
      if (at->first.starts_with(name + ".")) gone.push_back(at->first);
    for (const std::string& one : gone) settings.erase(one);
  }
}

/// "--no_packing": what transformers' parser makes of a flag that is on where nothing is said.
void without_no(WordTables tables, Settings& settings) {
  std::vector<std::string> off;
  for (const auto& [name, value] : settings.all())
    if (name.starts_with("no_") && value == "True" && find_word(tables, name.substr(3)) != nullptr)
      off.push_back(name);
  for (const std::string& name : off) {
    settings.erase(name);
    settings.set(name.substr(3), "False");
  }
}

std::string listed(const std::vector<std::string>& all) {
  return fmt::format("{}", fmt::join(all, ", "));
}

bool alike(const std::string& a, const std::string& b) {
  return a == b || (flag_in(a) && flag_in(a) == flag_in(b)) ||
         (integer_in(a) && integer_in(a) == integer_in(b));
}

/// The words that both set, to different values: the earlier file's hold.
std::string passed_over(const Settings& earlier, const Settings& later) {
  std::vector<std::string> out;
  for (const auto& [name, value] : later.all()) {
    const auto before = earlier.all().find(name);
    if (before != earlier.all().end() && !alike(before->second, value) && !name.starts_with('@'))
      out.push_back(fmt::format("{} = {}, not {}", name, before->second, value));
  }
  return listed(out);
}

}  // namespace

std::optional<LaunchInput> read_launch_files(std::span<const NamedText> files,
                                             const Catalogue& catalogue) {
  Settings all;
  LaunchInput out;
  std::string names;
  for (const auto& [path, text] : files) {
    const std::size_t hash = path.rfind('#');
    const std::string file = path.substr(0, hash);
    Read read = settings_of(text, file, hash == std::string::npos ? "" : path.substr(hash + 1));
    leave_out(read.settings, all);
    if (const std::string over = passed_over(all, read.settings); !over.empty())
      out.facts.notes.push_back(file + ": an earlier file's values hold: " + over + ".");
    add_named_files(read.settings, file);
    add_usual(all, read.settings);
    for (const std::string& note : read.notes) out.facts.notes.push_back(file + ", " + note + ".");
    names += (names.empty() ? "" : ", ") + file;
  }
  const InputFormat* format = format_of(all);
  if (format == nullptr) return std::nullopt;
  out.format = format->name;
  out.stack = format->stack;
  if (format->words[0] == trainer_words) without_no(format->tables(), all);
  format->add(out.facts, all, catalogue, names);
  if (all.has("@arguments")) own_arguments(all, format->tables(), out);
  if (files.size() == 1 && is_launch_json(files[0])) out.json = bare(files[0].text);
  all.erase("@program");
  all.erase(std::string(recipe_source));
  all.erase(std::string(training_script));
  all.erase("@arguments");
  all.erase(std::string(words_with_blanks));
  take_environment(all, out.facts, files);
  if (format->words[0] == trainer_words) own_lines(files, all, out);
  out.understanding = understanding_of(format->tables(), all);
  return out;
}

bool is_launch_json(const NamedText& file) {
  const bool known = says(file.text, "\"zero_optimization\"") ||
                     says(file.text, "\"train_batch_size\"") ||
                     says(file.text, "\"train_micro_batch_size_per_gpu\"") ||
                     says(file.text, "\"init_device_mesh\"");
  if (!known || !bare(file.text).starts_with("{")) return false;
  return format_of(read_json_settings(bare(file.text), file.path)) != nullptr;
}

std::optional<LaunchInput> torchtitan_input(const TomlValue& document, const std::string& path,
                                            const Catalogue& catalogue) {
  Settings settings;
  add_toml(document, "", settings);
  const InputFormat* format = format_of(settings);
  if (format == nullptr || (!settings.has("training.seq_len") && !settings.has("model.flavor")))
    return std::nullopt;
  LaunchInput out{std::string(format->name), {}, {}};
  format->add(out.facts, settings, catalogue, path);
  out.understanding = understanding_of(format->tables(), settings);
  return out;
}

std::vector<std::string> sentences_on(const LaunchInput& input) {
  const Understanding& all = input.understanding;
  std::vector<std::string> out{
      fmt::format("Read as {}: {} words understood, {} that cannot matter to a step.", input.format,
                  all.understood, all.ignored)};
  if (!all.unsaid.empty())
    out.push_back("Bears on a step, and no key says it: " + listed(all.unsaid) + ".");
  if (!all.unknown.empty()) out.push_back("Not understood: " + listed(all.unknown) + ".");
  if (!all.open.empty()) out.push_back("Only a shell knows: " + listed(all.open) + ".");
  out.insert(out.end(), input.facts.notes.begin(), input.facts.notes.end());
  return out;
}

}  // namespace stepcast::sim
