// A verb as a tool: what it takes, the words of a call, what a call gives.
#include "sim/agent/tool.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/command/commands.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast::sim;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

namespace {

AgentTool run_tool() {
  const Command run = run_command();
  return {.verb = run.verb, .about = "", .output = run.schema()};
}

Words words(const Json& arguments) { return words_of_call(run_tool(), arguments); }

}  // namespace

TEST_CASE("arguments of a call become words that no shell and no option list can misread") {
  CHECK(words({{"model", "llama3-8b"}, {"nodes", 2}, {"ignore-memory", true}}) ==
        Words{"run", "--model=llama3-8b", "--nodes=2", "--ignore-memory", "--json"});
  CHECK(words({{"ignore-memory", false}, {"model", nullptr}}) == Words{"run", "--json"});
  CHECK(words({{"set", {{"plan.tensor", 4}, {"batch.global", 64}}}}) ==
        Words{"run", "--set=plan.tensor=4", "--set=batch.global=64", "--json"});
  CHECK(words({{"set", {"plan.tensor=4"}}, {"words", {"mine.toml"}}}) ==
        Words{"run", "--set=plan.tensor=4", "mine.toml", "--json"});
  CHECK(words({{"model", "--out=x"}}) == Words{"run", "--model=--out=x", "--json"});
}

TEST_CASE("what is no argument of the tool is refused with a hint") {
  CHECK_THROWS_WITH(words({{"modle", "x"}}), Contains("takes no 'modle'") && Contains("model"));
  CHECK_THROWS_WITH(words({{"words", {"--out=x"}}}), Contains("no file or name"));
  CHECK_THROWS_WITH(words({{"nodes", {1}}}), Contains("neither a text nor a number"));
  CHECK_THROWS_WITH(words({{"ignore-memory", 1}}), Contains("switch"));
  CHECK_THROWS_WITH(words(Json::array({1})), Contains("no object"));
  CHECK_THROWS_WITH(words({{"model", std::string("a\0b", 3)}}), Contains("NUL"));
}

TEST_CASE("of all verbs no option that writes a file is offered, --out below a folder alone") {
  for (const Command& command : all_commands()) {
    if (command.verb.word() == "export") continue;  // it does nothing else, and is no tool
    AgentTool tool{.verb = command.verb, .about = "", .output = {}};
    for (const Option& option : command.verb.options) {
      const std::string_view argument = option.argument;
      const bool file =
          argument.find("FILE") != argument.npos || argument.find("DIR") != argument.npos;
      INFO(command.verb.name << " --" << option.name);
      if (file && *option.key == '\0' && std::string_view(option.name) != "space")
        CHECK_FALSE(is_offered(tool, option));
      if (std::string_view(option.help).find("write") != std::string_view::npos)
        CHECK_FALSE(is_offered(tool, option));
    }
  }
}

TEST_CASE("a folder may not be left, by dots or by a link") {
  const std::filesystem::path folder = tests::own_folder() / "agent";
  std::filesystem::create_directory(folder);
  AgentTool tool = run_tool();
  tool.folder = folder;
  std::filesystem::create_directory_symlink("/", folder / "away");
  for (const char* place : {"..", "a/../../b", "/etc/x", "away/etc", ""})
    CHECK_THROWS_WITH(words_of_call(tool, {{"out", place}}), Contains("outside"));
  CHECK(words_of_call(tool, {{"out", "a/b"}})[1] ==
        "--out=" + (std::filesystem::canonical(folder) / "a/b").string());
}

TEST_CASE("what a program prints is the result, a mistake one with its hint") {
  const AgentTool tool = run_tool();
  const Json good = result_of_call(tool, R"({"step_time_s": 1.5})", 0);
  CHECK(good["structuredContent"]["step_time_s"] == 1.5);
  CHECK(good["content"][0]["text"] == R"({"step_time_s":1.5})");
  CHECK_FALSE(good.contains("isError"));
  const Json bad = result_of_call(
      tool, R"({"error": {"code": 3, "where": "a.toml:2", "message": "no", "hint": "yes"}})", 3);
  CHECK(bad["isError"] == true);
  CHECK(bad["content"][0]["text"] == "a.toml:2: no, yes");
  CHECK(result_of_call(tool, "", std::nullopt)["isError"] == true);
  CHECK(result_of_call(tool, "half {", 1)["isError"] == true);
}

TEST_CASE("a list that is too long for a conversation is in neither schema nor answer") {
  AgentTool tool{.verb = why_command().verb, .about = "", .output = why_command().schema()};
  tool.too_long = "edges";
  const Json schema = tool_json(tool)["outputSchema"];
  CHECK_FALSE(schema["properties"].contains("edges"));
  CHECK(schema["type"] == "object");
  for (const Json& key : schema["required"]) CHECK(key != "edges");
  CHECK_FALSE(result_of_call(tool, R"({"edges": [1]})", 0)["structuredContent"].contains("edges"));
}
