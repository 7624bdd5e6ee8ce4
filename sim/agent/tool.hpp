// A verb as a tool of the Model Context Protocol: what it takes and gives, and a call of it as
// words. Runs nothing.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/command_line.hpp"

namespace stepcast::sim {

struct AgentTool {
  Verb verb;
  const char* about;              // when to ask it, for an agent
  nlohmann::ordered_json output;  // the schema of what it prints with --json; null: it prints text
  /// A list that is too long for who reads it in a conversation; empty: none. It is left out.
  std::string too_long{};
  /// The folder that --out stands below; none: nothing is written.
  std::optional<std::filesystem::path> folder{};
};

/// Whether an agent may give the option: those that write a file are the user's alone.
bool is_offered(const AgentTool& tool, const Option& option);

/// {"name": "run", "description": ..., "inputSchema": ..., "outputSchema": ..., "annotations": ...}
nlohmann::ordered_json tool_json(const AgentTool& tool);

/// The words behind the program's name for a call with these arguments. Throws UsageError where
/// they are none of the tool's.
std::vector<std::string> words_of_call(const AgentTool& tool,
                                       const nlohmann::ordered_json& arguments);

/// What the program has printed, as the result of the call: {"content": [...],
/// "structuredContent": ...}, or with "isError" what was wrong and how to mend it.
/// `code`: its exit code; none: it was ended by a signal.
nlohmann::ordered_json result_of_call(const AgentTool& tool, const std::string& printed,
                                      std::optional<int> code);
/// The result of a call that could not be made.
nlohmann::ordered_json failed_call(const std::string& why);

}  // namespace stepcast::sim
