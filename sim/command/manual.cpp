#include "sim/command/manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stepcast::sim {
namespace {

/// Text as troff prints it: no escapes, no hyphens that may be broken, no requests at its start.
std::string plain(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char letter : text) {
    if (letter == '\\')
      out += "\\e";
    else if (letter == '-')
      out += "\\-";
    else
      out += letter;
    if (letter == '\n') out += "\\&";
  }
  return out;
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return text;
}

std::string synopsis(const Verb& verb) {
  return fmt::format("\\fB{}\\fR{}{}{}\n", plain(verb.name), *verb.positional == '\0' ? "" : " ",
                     plain(verb.positional), verb.options.empty() ? "" : " [options]");
}

std::string example(std::string_view lines) {
  return fmt::format(".PP\n.nf\n.RS 4\n{}\n.RE\n.fi\n", plain(lines));
}

std::string described(const Verb& verb) {
  std::string out = plain(verb.summary) + "\n";
  for (const Option& option : verb.options)
    out += fmt::format(".TP\n\\fB{}\\fR{}{}\n{}\n", plain("--" + std::string(option.name)),
                       *option.argument == '\0' ? "" : " ", plain(option.argument),
                       plain(option.help));
  if (const std::string_view notes = verb.notes; !notes.empty())
    out += example(notes.substr(notes.find_first_not_of('\n')));
  return *verb.example == '\0' ? out : out + ".PP\nExample:\n" + example(verb.example);
}

std::string exit_status() {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitMeaning& meaning : exit_meanings())
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(meaning.code), plain(meaning.text));
  return out;
}

}  // namespace

std::string manual_text(const Program& program) {
  const std::string version = version_text();
  std::string out =
      fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
                  plain(in_capitals(program.name)), version.substr(0, version.size() - 1),
                  plain(program.name), plain(program.about));
  for (const Command& command : program.commands) out += synopsis(command.verb) + ".br\n";
  for (const Command& command : program.commands) {
    out += fmt::format(
        ".SH {}\n", program.has_verbs() ? in_capitals(plain(command.verb.word())) : "DESCRIPTION");
    out += described(command.verb);
    if (*command.sister != '\0') out += fmt::format(".PP\nSee {}(1).\n", plain(command.sister));
  }
  return out + exit_status();
}

}  // namespace stepcast::sim
