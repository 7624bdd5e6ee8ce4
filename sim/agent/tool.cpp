#include "sim/agent/tool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/files/json_text.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/program/table_view.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Options that name a file or folder and only read it.
constexpr std::string_view read_options[] = {"space"};
/// Not a tool's: it prints JSON always, has no terminal, and keeps nothing from call to call.
constexpr std::string_view idle_options[] = {"json",  "quiet",       "resume", "status",
                                             "shard", "print-slurm", "partial"};
constexpr const char* words_key = "words";

bool names_file(const Option& option) {
  const std::string_view argument = option.argument;
  return *option.key == '\0' &&
         std::ranges::any_of(std::array{"FILE", "DIR", "PATH"}, [&](const char* word) {
           return argument.find(word) != std::string_view::npos;
         });
}

/// It arranges a table for people, which is not printed beside JSON.
bool arranges(const Option& option) {
  const auto is = [&](const Option& one) {
    return std::string_view(option.name) == one.name && std::string_view(option.help) == one.help;
  };
  return std::ranges::any_of(table_options, is) || is(refused_option);
}

bool repeats(const Option& option) {
  const std::string_view argument = option.argument;
  return argument.ends_with("...") || argument.find('=') != std::string_view::npos;
}

Json input_of(const Option& option) {
  Json out;
  const std::vector<std::string> words = choices_in(option.argument);
  if (*option.argument == '\0')
    out = {{"type", "boolean"}};
  else if (repeats(option))
    out = {{"type", "array"}, {"items", {{"type", "string"}}}};
  else if (!words.empty() && *option.key == '\0')
    out = {{"enum", words}};
  else
    out = {{"type", Json::array({"string", "number", "boolean"})}};
  const std::string argument = *option.argument == '\0' ? "" : fmt::format("{}: ", option.argument);
  out["description"] = argument + option.help;
  return out;
}

const Option* find_offered(const AgentTool& tool, const std::string& name) {
  const auto found = std::ranges::find(tool.verb.options, name, &Option::name);
  return found == tool.verb.options.end() || !is_offered(tool, *found) ? nullptr : &*found;
}

std::vector<std::string> offered_names(const AgentTool& tool) {
  std::vector<std::string> out;
  if (tool.verb.max_positional > 0) out.emplace_back(words_key);
  for (const Option& option : tool.verb.options)
    if (is_offered(tool, option)) out.emplace_back(option.name);
  return out;
}

/// A word of a command line; none of these is one that begins with a dash or holds a NUL.
std::string word_of(const std::string& key, const Json& value) {
  std::string out;
  if (value.is_string())
    out = value.get<std::string>();
  else if (value.is_number() || value.is_boolean())
    out = json_text(value);
  else
    throw UsageError("'" + key + "' is neither a text nor a number",
                     "give what stands on a command line, \"64\" or \"1 GiB\"");
  if (out.find('\0') != std::string::npos) throw UsageError("'" + key + "' holds a NUL");
  return out;
}

void add_positional(std::vector<std::string>& out, const Json& value) {
  const auto add = [&](const Json& one) {
    out.push_back(word_of(words_key, one));
    if (out.back().starts_with('-'))
      throw UsageError("'" + out.back() + "' is no file or name",
                       "options are arguments of the call by their names");
  };
  if (!value.is_array()) return add(value);
  for (const Json& one : value) add(one);
}

/// Below the folder, also where links lead.
std::string place_below(const AgentTool& tool, const std::string& asked) {
  const fs::path relative(asked);
  const bool leaves =
      std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  const std::string hint = "name a folder below the one of stepcast mcp --folder: \"first\"";
  if (asked.empty() || relative.is_absolute() || leaves)
    throw UsageError("'" + asked + "' lies outside of the folder", hint);
  std::error_code error;
  const fs::path root = fs::canonical(*tool.folder, error);
  if (error) throw UsageError("the folder of stepcast mcp --folder is gone", "create it again");
  const fs::path place = fs::weakly_canonical(root / relative, error);
  const auto [end, ignored] = std::ranges::mismatch(root, place);
  if (error || end != root.end())
    throw UsageError("'" + asked + "' lies outside of the folder", hint);
  return place.string();
}

void add_option(std::vector<std::string>& out, const AgentTool& tool, const Option& option,
                const Json& value) {
  const std::string name = option.name;
  if (*option.argument == '\0') {
    if (!value.is_boolean()) throw UsageError("'" + name + "' is a switch", "give true or false");
    if (value.get<bool>()) out.push_back("--" + name);
    return;
  }
  const auto add = [&](const std::string& word) { out.push_back("--" + name + "=" + word); };
  if (name == "out") return add(place_below(tool, word_of(name, value)));
  if (value.is_array() && repeats(option)) {
    for (const Json& one : value) add(word_of(name, one));
  } else if (value.is_object() && repeats(option)) {
    for (const auto& [key, one] : value.items()) add(key + "=" + word_of(name, one));
  } else {
    add(word_of(name, value));
  }
}

Json text_content(const std::string& text) {
  return Json::array({{{"type", "text"}, {"text", text}}});
}

/// "mine.toml:3: unknown key, did you mean ..."
std::string error_text(const Json& error) {
  std::string out;
  if (error.contains("where")) out += error["where"].get<std::string>() + ": ";
  out += error.at("message").get<std::string>();
  if (error.contains("hint")) out += ", " + error["hint"].get<std::string>();
  return out;
}

Json output_schema(const AgentTool& tool) {
  Json out = tool.output;
  out.erase("$schema");  // clients know one dialect or the other; what is used here is in both
  out.erase("$id");
  if (tool.too_long.empty()) return out;
  out["properties"].erase(tool.too_long);
  Json required = Json::array();
  for (const Json& key : out["required"])
    if (key != tool.too_long) required.push_back(key);
  out["required"] = std::move(required);
  return out;
}

}  // namespace

bool is_offered(const AgentTool& tool, const Option& option) {
  const std::string_view name = option.name;
  if (name == "out") return tool.folder.has_value();
  if (std::ranges::count(idle_options, name) > 0) return false;
  if (name.starts_with("timeline")) return false;  // how a file of that option is written
  if (!tool.output.is_null() && arranges(option)) return false;
  return !names_file(option) || std::ranges::count(read_options, name) > 0;
}

Json tool_json(const AgentTool& tool) {
  Json properties = Json::object();
  if (tool.verb.max_positional > 0)
    properties[words_key] = {
        {"type", "array"},
        {"items", {{"type", "string"}}},
        {"description", fmt::format("What stands without a dash: {}", tool.verb.positional)}};
  for (const Option& option : tool.verb.options)
    if (is_offered(tool, option)) properties[option.name] = input_of(option);
  Json out{{"name", tool.verb.word()},
           {"title", tool.verb.name},
           {"description", fmt::format("{} {}\nOn a command line: {}", tool.verb.summary,
                                       tool.about, tool.verb.example)},
           {"inputSchema",
            {{"type", "object"},
             {"properties", std::move(properties)},
             {"additionalProperties", false}}}};
  if (!tool.output.is_null()) out["outputSchema"] = output_schema(tool);
  out["annotations"] = {{"readOnlyHint", !tool.folder.has_value()},
                        {"destructiveHint", false},
                        {"idempotentHint", true},
                        {"openWorldHint", false}};
  return out;
}

std::vector<std::string> words_of_call(const AgentTool& tool, const Json& arguments) {
  std::vector<std::string> out{tool.verb.word()};
  if (!arguments.is_null() && !arguments.is_object())
    throw UsageError("the arguments are no object", "{\"model\": \"llama3-8b\", ...}");
  for (const auto& [name, value] : arguments.items()) {
    if (value.is_null()) continue;
    if (name == words_key && tool.verb.max_positional > 0) {
      add_positional(out, value);
      continue;
    }
    const Option* option = find_offered(tool, name);
    if (option == nullptr)
      throw UsageError(fmt::format("{} takes no '{}'", tool.verb.word(), name),
                       suggestion(name, offered_names(tool)));
    add_option(out, tool, *option, value);
  }
  if (!tool.output.is_null()) out.emplace_back("--json");
  return out;
}

Json result_of_call(const AgentTool& tool, const std::string& printed, std::optional<int> code) {
  if (!code) return failed_call("the call was ended by a signal");
  if (tool.output.is_null()) {
    Json out{{"content", text_content(printed)}};
    if (*code != exit_ok) out["isError"] = true;
    return out;
  }
  Json answer = ordered_json_or_discarded(printed);
  if (!answer.is_object())
    return failed_call(fmt::format("the program ended with code {} and printed no answer", *code));
  if (answer.contains("error")) return failed_call(error_text(answer["error"]));
  if (!tool.too_long.empty()) answer.erase(tool.too_long);
  const std::string text = json_text(answer);
  return {{"content", text_content(text)}, {"structuredContent", std::move(answer)}};
}

Json failed_call(const std::string& why) {
  return {{"content", text_content(why)}, {"isError", true}};
}

}  // namespace stepcast::sim
