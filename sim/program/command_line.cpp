#include "sim/program/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <string_view>
#include <thread>

#include "sim/files/budget.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace po = boost::program_options;
namespace {

bool takes_several(const Option& option) {
  return std::string_view(option.argument).ends_with("...");
}

bool may_be_repeated(const Option& option) {
  return takes_several(option) || std::string_view(option.argument).find('=') != std::string::npos;
}

/// Those that a word may be: Boost takes a while for each, and a verb has hundreds.
po::options_description described(const Verb& verb, const std::vector<std::string>& words) {
  po::options_description out;
  for (const Option& option : verb.options) {
    const std::string begin = "--" + std::string(option.name);
    if (std::ranges::none_of(words, [&](const auto& word) { return word.starts_with(begin); }))
      continue;
    auto* value = po::value<std::vector<std::string>>()->composing();
    if (takes_several(option)) value->multitoken();
    if (*option.argument == '\0') value->zero_tokens();
    out.add_options()(option.name, value, option.help);
  }
  out.add_options()("help,h", "print this help");
  return out;
}

std::vector<std::string> names_of(const Verb& verb) {
  std::vector<std::string> out{"--help"};
  for (const Option& option : verb.options) out.push_back("--" + std::string(option.name));
  return out;
}

/// Boost's exceptions in our words.
[[noreturn]] void rethrow_plainly(const Verb& verb) {
  const std::string help = fmt::format("see {} --help", verb.name);
  try {
    throw;
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.resize(std::min(name.find('='), name.size()));
    if (!name.starts_with('-')) name = "--" + name;
    const std::string hint = suggestion(name, names_of(verb));
    throw UsageError("unknown option '" + name + "'", hint.starts_with("did") ? hint : help);
  } catch (const po::invalid_command_line_syntax& error) {
    const std::string name = error.get_option_name();
    if (error.kind() == po::invalid_syntax::extra_parameter)
      throw UsageError("option '" + name + "' takes no value", help);
    if (error.kind() == po::invalid_syntax::missing_parameter ||
        error.kind() == po::invalid_syntax::empty_adjacent_parameter)
      throw UsageError("option '" + name + "' needs a value", help);
    throw UsageError("cannot read '" + name + "'", help);
  } catch (const po::error& error) {
    throw UsageError(error.what(), help);
  }
}

/// `--set a=1 b=2` means `--set a=1 --set b=2`: what follows a setting and has the form of one.
std::vector<std::string> with_settings_apart(const std::vector<std::string>& words) {
  const auto is_setting = [](const std::string& word) {
    const std::size_t equals = word.find('=');
    return equals != std::string::npos && equals > 0 && word.front() != '-' &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == equals;
  };
  std::vector<std::string> out;
  bool after_setting = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--set" && i + 1 < words.size()) {
      out.insert(out.end(), {words[i], words[i + 1]});
      ++i;
      after_setting = true;
    } else if (after_setting && is_setting(words[i])) {
      out.insert(out.end(), {"--set", words[i]});
    } else {
      out.push_back(words[i]);
      after_setting = false;
    }
  }
  return out;
}

/// More settings than a scenario has keys are a program's mistake, and the time to read them grows
/// with their square.
void check_settings(const std::vector<std::string>& words) {
  const auto settings = std::ranges::count_if(
      words, [](const std::string& word) { return word == "--set" || word.starts_with("--set="); });
  if (settings > budget.settings)
    throw UsageError(fmt::format("{} settings by --set: more than {}", settings, budget.settings),
                     "write them to a TOML file");
}

po::parsed_options parsed(const Verb& verb, const std::vector<std::string>& words) {
  const po::options_description description = described(verb, words);
  po::options_description with_positional;
  with_positional.add(description)
      .add_options()("positional", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("positional", -1);
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    return po::command_line_parser(with_settings_apart(words))
        .options(with_positional)
        .positional(positional)
        .style(style)
        .run();
  } catch (const po::error&) {
    rethrow_plainly(verb);
  }
}

constexpr std::size_t columns = 100;

/// "--to a|b|c" that is longer than a line, broken behind a bar.
std::string broken_choices(std::string line) {
  constexpr std::size_t set_in = 6;
  std::string out;
  while (line.size() > columns) {
    const std::size_t bar = line.rfind('|', columns - 1);
    if (bar == std::string::npos || bar <= set_in) break;
    out += line.substr(0, bar + 1) + "\n";
    line = std::string(set_in, ' ') + line.substr(bar + 1);
  }
  return out + line;
}

/// `text` behind `line`, broken at 100 columns, what follows set in by `width`.
std::string broken(std::string line, std::size_t width, const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() > width && line.size() + (end - at) > columns) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line.assign(width, ' ');
    }
    line += text.substr(at, end - at) + " ";
    at = end + 1;
  }
  return out + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// A version is a word, quoted or not: 2.20 is not 2.2.
TomlValue value_for(const std::string& key, const std::string& text, const std::string& where) {
  const bool version = key.ends_with(".nccl") || key.ends_with(".version");
  return version && !text.starts_with('"') ? toml_text(text, where) : read_setting(text, where);
}

}  // namespace

UsageError::UsageError(std::string problem, std::string hint)
    : std::runtime_error(problem + (hint.empty() ? "" : ", " + hint)),
      problem_(std::move(problem)),
      hint_(std::move(hint)) {}

std::string Verb::word() const {
  const std::string_view call = name;
  return std::string(call.substr(call.rfind(' ') + 1));  // npos + 1 is 0
}

std::vector<std::string> choices_in(const char* argument) {
  const std::string_view all = argument;
  const std::string_view words = all.substr(0, all.find(' '));
  std::vector<std::string> out;
  if (words.find('|') == std::string_view::npos) return out;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find('|', at), words.size());
    out.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

const std::vector<std::string>& Arguments::all(const std::string& option) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(option);
  return found == values_.end() ? none : found->second;
}

std::string Arguments::get(const std::string& option, const std::string& otherwise) const {
  const auto& values = all(option);
  return values.empty() ? otherwise : values.front();
}

const std::string& Arguments::first(const char* question) const {
  if (positional_.empty()) throw UsageError(question, example_);
  return positional_.front();
}

std::int64_t Arguments::count(const std::string& option, std::int64_t otherwise,
                              std::int64_t least) const {
  constexpr std::int64_t most = 999'999'999;
  if (!has(option)) return otherwise;
  const auto value = number_in<std::int64_t>(get(option));
  if (!value || *value < least || *value > most)
    throw UsageError(fmt::format("'--{} {}' is no such number", option, get(option)),
                     fmt::format("give a whole number, at least {}", least));
  return *value;
}

std::optional<double> Arguments::share(const std::string& option) const {
  if (!has(option)) return std::nullopt;
  const auto percent = number_in<double>(get(option));
  if (!percent || *percent < 0)
    throw UsageError("'--" + option + " " + get(option) + "' is no percentage");
  return *percent / 100;
}

std::string Arguments::choice(const std::string& option) const {
  const auto known = std::ranges::find(options_, option, &Option::name);
  const std::vector<std::string> words = choices_in(known->argument);
  if (!has(option)) return words.front();
  const std::string word = get(option);
  if (std::ranges::count(words, word) == 0)
    throw UsageError("'--" + option + " " + word + "' is none of " +
                     fmt::format("{}", fmt::join(words, ", ")));
  return word;
}

std::uint64_t Arguments::seed() const {
  if (!has("seed")) return 1;
  const auto value = number_in<std::uint64_t>(get("seed"));
  if (!value) throw UsageError("'--seed " + get("seed") + "' is no whole number");
  return *value;
}

unsigned Arguments::threads() const {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<std::int64_t>(count("threads", cores), 9999));
}

Arguments parse_arguments(const Verb& verb, const std::vector<std::string>& words) {
  Arguments out;
  out.options_ = verb.options;
  out.example_ = verb.example;
  out.words_ = words;
  check_settings(words);
  for (const auto& option : parsed(verb, words).options) {
    if (option.string_key == "positional") {
      out.positional_.insert(out.positional_.end(), option.value.begin(), option.value.end());
      continue;
    }
    auto& values = out.values_[option.string_key];
    const auto known = std::ranges::find(verb.options, option.string_key, &Option::name);
    const bool repeats = known != verb.options.end() && may_be_repeated(*known);
    if (!repeats && !values.empty())
      throw UsageError("option '--" + option.string_key + "' is given twice");
    values.insert(values.end(), option.value.begin(), option.value.end());
  }
  if (out.positional_.size() > verb.max_positional)
    throw UsageError("'" + out.positional_[verb.max_positional] + "' is one argument too many",
                     fmt::format("see {} --help", verb.name));
  return out;
}

std::string list_item(const std::string& name, std::size_t width, const std::string& text) {
  std::string line = "  " + name, above;
  if (line.size() >= width) above = broken_choices(std::exchange(line, "")) + "\n";
  line.resize(width, ' ');
  return above + broken(std::move(line), width, text);
}

namespace {

/// What stands under a heading of a long help: options of these names, or with keys of these
/// tables.
struct Heading {
  std::string_view title;
  std::vector<std::string_view> names, tables;
};

/// The one under which an option stands: the first that names it, then the first with its table,
/// else the last.
std::size_t heading_of(const Option& option, std::span<const Heading> headings) {
  const std::string_view key = option.key, table = key.substr(0, key.find('.'));
  const auto at = [&](const auto& has) {
    return static_cast<std::size_t>(std::ranges::find_if(headings, has) - headings.begin());
  };
  const std::size_t named = at([&](const Heading& one) {
    return std::ranges::count(one.names, std::string_view(option.name)) > 0;
  });
  if (named < headings.size()) return named;
  const std::size_t of_table = at([&](const Heading& one) {
    return !table.empty() && std::ranges::count(one.tables, table) > 0;
  });
  return std::min(of_table, headings.size() - 1);
}

std::string options_text(std::span<const Option> options) {
  static const std::vector<Heading> headings{
      {"most used",
       {"model", "gpu", "nodes", "framework", "data", "tensor", "pipeline", "global-batch",
        "micro-batch", "sequence"},
       {}},
      {"model and precision", {}, {"model", "precision"}},
      {"machine", {"nccl-env"}, {"cluster", "software", "nccl", "power"}},
      {"plan and batch", {}, {"plan", "batch"}},
      {"the whole run", {}, {"run_goal", "cost", "site", "failures"}},
      {"how it is simulated",
       {"set", "no-limit", "ignore-memory"},
       {"run", "noise", "calibration"}},
      {"what is printed and kept", {}, {}}};
  constexpr std::size_t long_help = 30;
  std::vector<std::string> parts(headings.size());
  for (const Option& option : options)
    parts[options.size() > long_help ? heading_of(option, headings) : 0] += list_item(
        fmt::format("--{}{}{}", option.name, *option.argument == '\0' ? "" : " ", option.argument),
        29, option.help);
  if (options.size() <= long_help) return parts.front();
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].empty())
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", headings[i].title) + parts[i];
  return out;
}

}  // namespace

std::string help_text(const Verb& verb) {
  std::string out = fmt::format("usage: {}{}{}{}\n", verb.name, *verb.positional == '\0' ? "" : " ",
                                verb.positional, verb.options.empty() ? "" : " [options]");
  out += broken("", 0, verb.summary);
  if (!verb.options.empty()) out += "\n";
  out += options_text(verb.options);
  if (*verb.example != '\0') out += fmt::format("\nexample: {}\n", verb.example);
  return out + verb.notes + "\n" + exit_codes_text();
}

std::string version_text() { return "stepcast " STEPCAST_VERSION "\n"; }

std::vector<std::pair<std::string, TomlValue>> settings_of(const Verb& verb,
                                                           const Arguments& arguments) {
  std::vector<std::pair<std::string, TomlValue>> out;
  for (const Option& option : verb.options)
    if (*option.key != '\0' && arguments.has(option.name)) {
      const std::string where = "--" + std::string(option.name);
      if (*option.argument == '\0')
        out.emplace_back(option.key, TomlValue{true, where});
      else
        out.emplace_back(option.key, value_for(option.key, arguments.get(option.name), where));
    }
  for (const std::string& variable : arguments.all("nccl-env")) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("'--nccl-env " + variable + "' sets no variable",
                       "write --nccl-env NCCL_ALGO=Ring");
    out.emplace_back("nccl." + variable.substr(0, equals),
                     toml_text(variable.substr(equals + 1), "--nccl-env"));
  }
  for (const std::string& setting : arguments.all("set")) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("'--set " + setting + "' is no setting", "write --set cluster.nodes=16");
    const std::string key = setting.substr(0, equals);
    out.emplace_back(key, value_for(key, setting.substr(equals + 1), "--set " + key));
  }
  return out;
}

}  // namespace stepcast::sim
