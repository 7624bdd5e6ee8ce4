// What the processes of a run say to each other before they are connected (rendezvous.cpp):
//
//   rank to rank 0   stepcast-trainer 2 join TOKEN RANKS RANK PORT NAME=VALUE...
//   rank 0 to rank   hello, or: refused WHY       at once; nothing is told without the token
//   rank 0 to rank   welcome ADDRESS...           of ranks 1 and up, when all are there
//   rank to rank     stepcast-trainer 2 peer TOKEN RANK                to those below it
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/processes/meeting.hpp"

namespace stepcast::validate {

inline constexpr sim::Greeting rank_greeting{"stepcast-trainer", "2"};

/// What a rank says of itself when it comes.
struct RankCall {
  std::string program, version, verb, token, port;
  std::int64_t ranks = 0, rank = 0;
  std::map<std::string, std::string> terms{};
};

/// Of a line that came; none where it is no rank's.
std::optional<RankCall> call_in(const std::string& line);

}  // namespace stepcast::validate
