// stepcast new: a file of one's own for the catalogue, with every key explained.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <utility>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/member_writer.hpp"
#include "sim/tables/architecture_members.hpp"

namespace stepcast::sim {
namespace {

constexpr Option new_options[] = {
    {"like", "ENTRY", "", "take over what this entry of the catalogue says"},
    {"set", "KEY=VALUE", "", "give a key its value; more than once"},
    {"out", "FILE.toml", "", "write it there, - prints it (default: NAME.toml)"},
};
const Verb verb{
    "stepcast new",
    "gpu|node|fabric|model|architecture [NAME]",
    2,
    "Writes a GPU, a node, a fabric, a model or an architecture of one's own into a file "
    "that --gpu, --node, --fabric, --model or the key architecture take: every key with "
    "what it means, the given ones with their values, and the ones still to be filled in "
    "named at once. On a terminal it asks for these.",
    new_options,
    "stepcast new gpu my-card --like h100-sxm5-80gb --set memory='141 GB'"};

/// What a key may be, for who fills it in.
template <class T>
std::string example_of(const T&) {
  if constexpr (std::is_same_v<T, std::string>)
    return "\"...\"";
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_arithmetic_v<T>)
    return "a number";
  else if constexpr (requires(T value) { TableReader::example_of(value); })
    return "e.g. \"" + std::string(TableReader::example_of(T{})) + "\"";
  else
    return "a list";
}
template <class E, class Choices>
std::string example_of(const E&, const Choices& choices) {
  std::string words;
  for (const auto& [name, meaning] : choices)
    words += (words.empty() ? "" : ", ") + std::string(name);
  return "one of: " + words;
}

/// A key without which an entry cannot do, and what it means.
struct UnsaidKey {
  std::string name, meaning;
};

/// Every key of an entry in order: its meaning, then its value, or a line to be filled in.
class ExplainedKeys : public MemberVisitor<ExplainedKeys> {
 public:
  /// `given`: what the file says; `usual`: what holds without a key.
  ExplainedKeys(const TomlValue& given, const TomlValue& usual) : given_(given), usual_(usual) {}

  template <class T, class... Choices>
  void member(const Key& key, Bound bound, const T& value, const Choices&... choices) {
    const std::string what = example_of(value, choices...);
    line(key, bound == Bound::needed, what);
  }
  template <class T, class... Choices>
  void member(const Key& key, Bound bound, const std::optional<T>&, const Choices&... choices) {
    member(key, bound, T{}, choices...);
  }

  /// Of a node its GPU.
  void part(const Key& key) { line(key, true, "\"...\""); }

  void line(const Key& key, bool needed, const std::string& what) {
    const std::string meaning = (*key.help == '\0' ? "" : std::string(key.help) + "; ") + what;
    text_ += "\n# " + meaning + (needed ? "" : "; may be left out") + "\n";
    if (const TomlValue* value = given_.find(key.name)) {
      text_ += fmt::format("{} = {}\n", key.name, write_toml_value(*value));
      return;
    }
    const TomlValue* usual = needed ? nullptr : usual_.find(key.name);
    text_ += fmt::format("# {} = {}\n", key.name, usual ? write_toml_value(*usual) : "");
    if (needed) missing_.push_back({key.name, meaning});
  }

  const std::string& text() const { return text_; }
  const std::vector<UnsaidKey>& missing() const { return missing_; }

 private:
  const TomlValue &given_, &usual_;
  std::string text_;
  std::vector<UnsaidKey> missing_;
};

struct Kind {
  const char *word, *folder, *option;
  ExplainedKeys (*explain)(const TomlValue& given);
  void (*read)(const TomlValue& some);  // throws InputError for what a key cannot be
};

constexpr auto gpu_keys = [](auto& spec, auto& to) { visit_gpu(spec, to); };
constexpr auto node_keys = [](auto& spec, auto& to) {
  to.part(Key{"gpu", "an entry of the catalogue, or a file beside this one"});
  visit_node(spec, to);
};
constexpr auto fabric_keys = [](auto& spec, auto& to) { visit_fabric(spec, to); };
constexpr auto model_keys = [](auto& spec, auto& to) { visit_model(spec, to); };
constexpr auto architecture_keys = [](auto& spec, auto& to) { visit_architecture(spec, to); };

template <class Spec, auto visit>
ExplainedKeys explained(const TomlValue& given) {
  const Spec usual;
  const TomlValue values =
      written(toml_table("default"), [&](auto&& visitor) { visit(usual, visitor); });
  ExplainedKeys out(given, values);
  visit(usual, out);
  return out;
}

template <class Spec, auto visit>
void read_some(const TomlValue& some) {
  TableReader table(some, "");
  Spec spec;
  MemberReader reader(table, false);
  visit(spec, reader);
}

template <class Spec, auto visit>
constexpr Kind make_kind(const char* word, const char* folder, const char* option) {
  return {word, folder, option, explained<Spec, visit>, read_some<Spec, visit>};
}

constexpr Kind kinds[] = {
    make_kind<topology::GpuSpec, gpu_keys>("gpu", "gpus", "--gpu"),
    make_kind<topology::NodeSpec, node_keys>("node", "nodes", "--node"),
    make_kind<topology::FabricSpec, fabric_keys>("fabric", "fabrics", "--fabric"),
    make_kind<workloads::TransformerShape, model_keys>("model", "models", "--model"),
    make_kind<topology::Architecture, architecture_keys>("architecture", "architectures",
                                                         "architecture ="),
};

const Kind& kind_of(const std::string& word) {
  for (const Kind& kind : kinds)
    if (kind.word == word) return kind;
  throw UsageError("stepcast new " + word, suggestion(word, choices_in(verb.positional)));
}

/// Who an entry is, which none of one's own takes over.
bool is_of_the_entry_alone(const std::string& key) {
  constexpr std::string_view own[] = {"name",    "aliases", "cuda_names",
                                      "pci_ids", "sources", "compute_capability",
                                      "source",  "title"};
  return std::ranges::count(own, key) > 0;
}

/// The entry's values, then the given ones, and of each where it is from.
struct Given {
  TomlValue values = toml_table("stepcast new"), sources = toml_table("stepcast new");
};

void give(Given& given, const std::string& key, const TomlValue& value) {
  given.values.set(key, value);
  given.sources.set(key, toml_text("given to stepcast new", "stepcast new"));
}

/// Throws InputError unless an entry that is named is one, of the catalogue or a file.
void resolve(const std::string& key, const TomlValue& value, const Catalogue& catalogue) {
  if (key != "gpu" && key != "architecture") return;
  if (value.text() == nullptr)
    throw InputError(value.where, "'" + key + "' is the name of an entry");
  if (key == "gpu")
    catalogue.gpu(value);
  else
    catalogue.architecture(*value.text(), value.where);
}

/// Whether the key of the file `out` can have this value; says why not.
bool takes(const Kind& kind, const std::string& key, const std::string& answer,
           const std::string& out, const Catalogue& catalogue, Given& given) {
  try {
    TomlValue one = toml_table("stepcast new");
    one.set(key, read_setting(answer, out));
    kind.read(one);
    resolve(key, *one.find(key), catalogue);
    give(given, key, *one.find(key));
    return true;
  } catch (const InputError& error) {
    tell(stderr, fmt::format("{}\n", error.what()));
    return false;
  }
}

Given given_values(const Kind& kind, const Arguments& arguments, const Catalogue& catalogue) {
  Given out;
  if (const std::string like = arguments.get("like"); !like.empty()) {
    for (const TomlEntry& entry : *catalogue.entry(kind.folder, like, "--like").table()) {
      if (is_of_the_entry_alone(entry.key)) continue;
      out.values.set(entry.key, entry.value);
      out.sources.set(entry.key, toml_text("as " + like, "--like"));
    }
  }
  for (const std::string& setting : arguments.all("set")) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("'--set " + setting + "' is no setting", "write --set memory='80 GB'");
    const std::string key = setting.substr(0, equals);
    give(out, key, read_setting(setting.substr(equals + 1), "--set " + key));
  }
  return out;
}

/// Asks for each missing key until the answer is one; an empty line leaves the key open, the end of
/// the input all that are left. Whether anything was asked.
bool ask(const Kind& kind, const std::string& name, const std::string& out,
         const Catalogue& catalogue, Given& given) {
  const std::vector<UnsaidKey> missing = kind.explain(given.values).missing();
  if (missing.empty()) return false;
  tell(stderr, fmt::format("{} {}: an empty line leaves a key to be filled in\n", kind.word, name));
  for (const UnsaidKey& key : missing) {
    std::string answer;
    do {
      tell(stderr, fmt::format("{} ({}): ", key.name, key.meaning));
      if (!std::getline(std::cin, answer)) {
        tell(stderr, "\n");
        return true;
      }
    } while (!answer.empty() && !takes(kind, key.name, answer, out, catalogue, given));
  }
  return true;
}

/// What the visitor does not know: a key of nobody, or one of who it is.
std::string other_keys(const Kind& kind, const TomlValue& given, const ExplainedKeys& explained) {
  std::string out;
  for (const TomlEntry& entry : *given.table()) {
    if (explained.text().find("\n" + entry.key + " = ") != std::string::npos) continue;
    const bool identity = std::ranges::count(identity_keys, entry.key) > 0;
    if (kind.folder != std::string_view("gpus") || !identity)
      throw InputError(entry.value.where, "'" + entry.key + "' is no key of a " + kind.word,
                       "stepcast new " + std::string(kind.word) + " NAME writes all of them");
    out += fmt::format("{} = {}\n", entry.key, write_toml_value(entry.value));
  }
  return out;
}

/// Read as a scenario would.
void check(const Kind& kind, const std::string& text, const std::string& path,
           const Catalogue& catalogue) {
  TomlValue document = read_toml(text, path);
  const std::string_view word = kind.word;
  if (word == "gpu")
    for (const char* key : identity_keys) document.erase(key);
  if (word == "gpu") catalogue.gpu(document);
  if (word == "node") catalogue.node(document);
  if (word == "fabric") catalogue.fabric(document);
  if (word == "model") {
    TableReader table(document, "model");
    catalogue.model(table);
  }
}

std::string joined(const std::vector<UnsaidKey>& keys) {
  std::string out;
  for (const UnsaidKey& key : keys) out += (out.empty() ? "" : ", ") + key.name;
  return out;
}

int write_new(const Arguments& arguments, const Catalogue& catalogue) {
  const Kind& kind = kind_of(arguments.first("new what?"));
  if (arguments.positional().size() < 2)
    throw UsageError("which name?", fmt::format("stepcast new {} my-{}", kind.word, kind.word));
  const std::string& name = arguments.positional()[1];
  const auto known = catalogue.names(kind.folder);
  if (std::ranges::count(known, name) > 0)
    throw InputError("stepcast new", fmt::format("the catalogue has a {} '{}'", kind.word, name),
                     "call yours otherwise; --like takes over what it says");
  Given given = given_values(kind, arguments, catalogue);
  const std::string out = arguments.get("out", name + ".toml");
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  const bool asked = terminal && !std::filesystem::exists(out) &&
                     ask(kind, name, out == "-" ? "stepcast new" : out, catalogue, given);
  const ExplainedKeys keys = kind.explain(given.values);
  const std::string others = other_keys(kind, given.values, keys);
  std::string text =
      fmt::format("# {}: written by stepcast new {}\n\nname = {}\n{}{}", name, kind.word,
                  write_toml_value(toml_text(name, "stepcast new")), others, keys.text());
  text += "\n# Where each figure is from: a page and its date, or that it is assumed.\n[sources]\n";
  for (const TomlEntry& entry : *given.sources.table())
    text += fmt::format("{} = {}\n", entry.key, write_toml_value(entry.value));

  const bool whole = keys.missing().empty();
  if (whole && !asked) check(kind, text, out, catalogue);
  if (out == "-") {
    tell(stdout, text);
  } else {
    const std::filesystem::path path = out;
    write_new_files(path.has_parent_path() ? path.parent_path().string() : ".",
                    {{path.filename().string(), text}});
  }
  // Answers stay, to be mended in the file, where they do not go together.
  if (whole && asked) check(kind, text, out, catalogue);
  if (out == "-") return exit_ok;
  const std::string left = joined(keys.missing());
  tell(stdout, left.empty() ? fmt::format("{} is whole: {} {}\n", out, kind.option, out)
                            : fmt::format("{} is written; to be filled in: {}\n", out, left));
  return exit_ok;
}

}  // namespace

Command new_command() { return {verb, write_new}; }

}  // namespace stepcast::sim
