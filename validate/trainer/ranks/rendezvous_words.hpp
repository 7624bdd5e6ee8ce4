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

#include "sim/processes/line_channel.hpp"
#include "validate/trainer/ranks/rendezvous.hpp"

namespace stepcast::validate {

inline constexpr const char* protocol_name = "stepcast-trainer";
inline constexpr const char* protocol_version = "2";

/// What a rendezvous file says; none where it is not there, or not (yet) one.
std::optional<RendezvousFile::Words> words_in(const std::string& file);

/// What a rank says of itself when it comes.
struct RankCall {
  std::string program, version, verb, token, port;
  std::int64_t ranks = 0, rank = 0;
  std::map<std::string, std::string> terms{};
};

/// Of a line that came; none where it is no rank's.
std::optional<RankCall> call_in(const std::string& line);

/// Who has come: some say nothing, or rubbish.
class Guest {
 public:
  explicit Guest(sim::Descriptor socket);

  sim::LineChannel channel;

  /// What came of the line so far, as far as it can be printed.
  std::string heard() const;
  /// Too long without a line.
  bool is_overdue() const;

 private:
  sim::Deadline until_;
};

/// "10.0.0.4" of the other end.
std::string host_of(const sim::Descriptor& socket);

}  // namespace stepcast::validate
