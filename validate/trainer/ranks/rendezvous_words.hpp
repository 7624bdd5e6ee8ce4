// What the processes of a run say to each other before they are connected (rendezvous.cpp):
//
//   rank to rank 0   stepcast-trainer 1 join TOKEN RANKS RANK PORT     TOKEN "-": not known
//   rank 0 to rank   hello TOKEN, or: refused WHY                      at once
//   rank 0 to rank   welcome ADDRESS...                                when all are there, of
//   ranks 1.. rank to rank     stepcast-trainer 1 peer TOKEN RANK                to those below it
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/processes/line_channel.hpp"
#include "validate/trainer/ranks/rendezvous.hpp"

namespace stepcast::validate {

inline constexpr const char* protocol_name = "stepcast-trainer";
inline constexpr const char* protocol_version = "1";

/// What a rendezvous file says; none where it is not there, or not (yet) one.
std::optional<RendezvousFile::Words> words_in(const std::string& file);

/// Lines from several connections at once, of which some may say nothing, or rubbish. What follows
/// a line stays unread.
class Guest {
 public:
  explicit Guest(calibrate::Descriptor socket);
  const calibrate::Descriptor& socket() const { return socket_; }
  calibrate::Descriptor release() { return std::move(socket_); }

  /// Reads what is there: a whole line, or none so far.
  std::optional<std::string> line();
  /// Waits for it. Throws calibrate::ChannelBroken.
  std::string line(calibrate::Deadline deadline);
  /// What came of the line so far, as far as it can be printed.
  std::string heard() const;
  bool gone() const { return gone_; }
  /// Cut off: too long without a line, or too long a line.
  bool is_overdue() const;

 private:
  calibrate::Descriptor socket_;
  std::string text_;
  calibrate::Deadline until_;
  bool gone_ = false;
};

void say(const calibrate::Descriptor& socket, const std::string& line);
/// Waits until a connection of these has something, or until then.
void wait_for_any(const std::vector<int>& sockets, calibrate::Deadline deadline);
/// "10.0.0.4" of the other end.
std::string host_of(const calibrate::Descriptor& socket);

}  // namespace stepcast::validate
