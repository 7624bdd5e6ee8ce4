// What a line of a pasted text looks like, and pieces written as their readers want them. Knows no
// format.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepcast::validate {

bool is_fence(std::string_view line);
/// "num_layers: 32", "datasets:"
bool is_key_line(std::string_view line);
/// "- path: x", "  - 4"
bool is_list_line(std::string_view line);
bool is_comment_line(std::string_view line);
/// "--lr 1e-5", "actor.optim.lr=1e-6"
bool is_argument_line(std::string_view line);
/// "export NCCL_DEBUG=INFO", "TP=2"
bool is_assignment_line(std::string_view line);
/// A program with arguments behind it.
bool is_command_line(std::string_view line);
/// What a program printed: a step, a traceback, an entry of a log.
bool is_printed_line(std::string_view line);

/// Lines as a shell reads them: without prompts, each argument on a line of its own continued,
/// which people lose, and no blanks behind a backslash.
std::string as_shell(std::span<const std::string> lines);
/// The arguments of calls of Python that configure a trainer, as YAML: SFTConfig(bf16=True) is
/// "bf16: True"; empty: there are none. Names that the text sets stand for their values.
std::string as_yaml_of_python(std::string_view text);
/// "- distributed_type: FSDP", as transformers-cli env prints accelerate's configuration.
std::string without_bullets(std::span<const std::string> lines);

}  // namespace stepcast::validate
