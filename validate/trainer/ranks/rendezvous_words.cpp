#include "validate/trainer/ranks/rendezvous_words.hpp"

#include <sstream>

namespace stepcast::validate {

std::optional<RankCall> call_in(const std::string& line) {
  std::istringstream words(line);
  RankCall call;
  words >> call.program >> call.version >> call.verb >> call.token;
  if (call.verb == "join") words >> call.ranks >> call.rank >> call.port;
  if (call.verb == "peer") words >> call.rank;
  if (!words || call.program != rank_greeting.program ||
      (call.verb != "join" && call.verb != "peer"))
    return std::nullopt;
  for (std::string term; words >> term;) {
    const auto end = term.find('=');
    if (end == std::string::npos) return std::nullopt;
    call.terms[term.substr(0, end)] = term.substr(end + 1);
  }
  return call;
}

}  // namespace stepcast::validate
