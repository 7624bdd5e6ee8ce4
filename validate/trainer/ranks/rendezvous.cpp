#include "validate/trainer/ranks/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/ranks/rendezvous_words.hpp"

namespace stepcast::validate {
namespace {

using sim::ChannelBroken;
using sim::Deadline;
using sim::Descriptor;
using sim::host_in;
using sim::host_name;
using sim::is_address;
using sim::LineChannel;
using sim::Listener;
using sim::port_in;
using sim::send_line;
using Clock = std::chrono::steady_clock;
using Connections = std::vector<Descriptor>;

constexpr double answer_s = 5.0;  // rank 0 answers at once; a stranger may not answer at all
constexpr auto after_rank_0 = std::chrono::seconds(2);
constexpr auto pause = std::chrono::milliseconds(100);
constexpr const char* same_host = "-";  // of an address: the host of rank 0, as you know it

/// Of something that the run survives.
void warn(const std::string& what) {
  sim::tell(stderr, "stepcast-trainer: warning: " + what + "\n");
}

/// `enter` hears of ranks alone, and takes the connection or says why not.
template <class Enter>
void open(sim::Door& door, Deadline deadline, const std::vector<int>& others, Enter enter) {
  door.open(deadline, others, [&](const std::string& line, sim::Guest& guest) {
    const auto call = call_in(line);
    return call ? sim::Door::Answer(enter(*call, guest)) : std::nullopt;
  });
}

sim::Door door_at(Listener& listener) { return {listener, "stepcast-trainer", "a rank"}; }

std::string missing_of(const Connections& there) {
  std::string text;
  for (std::size_t r = 1; r < there.size(); ++r)
    if (there[r].number() < 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", r);
  return text;
}

/// Rank 0: waits for the others and tells them where each of them is.
class Host {
 public:
  Host(const Meeting& meeting, Listener& listener, Deadline deadline)
      : meeting_(meeting),
        listener_(listener),
        deadline_(deadline),
        there_(static_cast<std::size_t>(meeting.ranks)),
        addresses_(there_.size()) {}

  Connections welcome_all() {
    sim::Door door = door_at(listener_);
    while (const std::int64_t missing = num_missing()) {
      if (Clock::now() >= deadline_)
        throw PeerLost(fmt::format("{} of {} ranks came to {} in time, not: {}",
                                   meeting_.ranks - missing, meeting_.ranks, listener_.address(),
                                   missing_of(there_)));
      std::vector<int> sockets;
      for (const Descriptor& one : there_)
        if (one.number() >= 0) sockets.push_back(one.number());
      open(door, deadline_, sockets,
           [&](const RankCall& call, sim::Guest& guest) { return enter(call, guest); });
      forget_gone();
    }
    std::string all = "welcome";
    for (std::size_t r = 1; r < addresses_.size(); ++r) all += " " + addresses_[r];
    for (std::size_t r = 1; r < there_.size(); ++r) tell(r, all);
    return std::move(there_);
  }

 private:
  std::int64_t num_missing() const {
    return std::count_if(there_.begin() + 1, there_.end(),
                         [](const Descriptor& one) { return one.number() < 0; });
  }

  std::string enter(const RankCall& call, sim::Guest& guest) {
    forget_gone();  // perhaps the one who comes again
    const std::string why = why_not(call);
    if (!why.empty()) {
      warn(fmt::format("rank {} was refused: {}", call.rank, why));
      return why;
    }
    const auto rank = static_cast<std::size_t>(call.rank);
    guest.channel.send("hello");
    const std::string host = sim::host_of(guest.channel.socket());
    addresses_[rank] = (host.starts_with("127.") ? same_host : host) + (":" + call.port);
    there_[rank] = guest.channel.release();
    return {};
  }

  std::string why_not(const RankCall& call) const {
    if (call.version != rank_greeting.version) return "it is of another version";
    if (call.verb != "join") return "it comes to the wrong rank";
    if (call.token != meeting_.token) return "it is of another run";
    if (call.ranks != meeting_.ranks)
      return fmt::format("its plan has {} ranks, that of rank 0 has {}", call.ranks,
                         meeting_.ranks);
    for (const Term& term : meeting_.terms) {
      const auto theirs = call.terms.find(term.name);
      const std::string value = theirs == call.terms.end() ? "none" : theirs->second;
      if (value != term.value)
        return fmt::format("its {} is {}, that of rank 0 is {}", term.name, value, term.value);
    }
    if (call.rank < 1 || call.rank >= meeting_.ranks) return "there is no such rank";
    if (there_[static_cast<std::size_t>(call.rank)].number() >= 0)
      return "another process is that rank already";
    return {};
  }

  /// A rank that gave up, or was ended, may come again.
  void forget_gone() {
    for (Descriptor& one : there_) {
      if (one.number() < 0) continue;
      LineChannel channel(std::move(one));
      channel.line();
      one = channel.release();
    }
  }

  void tell(std::size_t rank, const std::string& line) {
    try {
      send_line(there_[rank], line, deadline_);
    } catch (const ChannelBroken& error) {
      throw PeerLost(fmt::format("rank {} left before the run began: {}", rank, error.what()));
    }
  }

  const Meeting& meeting_;
  Listener& listener_;
  const Deadline deadline_;
  Connections there_;
  std::vector<std::string> addresses_;
};

/// Any other rank: finds rank 0, then connects to the ranks below it and waits for those above.
class Visitor {
 public:
  Visitor(const Meeting& meeting, Deadline deadline)
      : meeting_(meeting), deadline_(deadline), listener_(listening_address(meeting)) {}

  Connections meet_all() {
    std::string why = "nobody was there";
    do {
      try {
        if (const auto place = find_place(why)) return join(*place);
      } catch (const ChannelBroken& error) {
        why = error.what();
      }
      std::this_thread::sleep_for(pause);
    } while (Clock::now() < deadline_);
    throw PeerLost(fmt::format("rank {} found no run of {} ranks at {} within {:.0f} s: {}",
                               meeting_.rank, meeting_.ranks, meeting_.place,
                               seconds(meeting_.patience), why));
  }

 private:
  struct Place {
    std::string address, token;
  };

  static std::string listening_address(const Meeting& meeting) {
    return meeting.place.starts_with("127.0.0.1:") ? "127.0.0.1:0" : "0.0.0.0:0";
  }

  /// A file may be of an earlier run: what cannot be of this one is not even asked.
  std::optional<Place> find_place(std::string& why) const {
    if (is_address(meeting_.place)) return Place{meeting_.place, meeting_.token};
    const auto words = sim::words_in(meeting_.place, rank_greeting);
    if (!words) {
      why = "the file has not appeared";
    } else if (!meeting_.token.empty() && words->token != meeting_.token) {
      why = "the file is of another run";
    } else if (words->ranks != meeting_.ranks) {
      why = fmt::format("the file is of a run of {} ranks", words->ranks);
    } else {
      return Place{sim::reached_here(words->address), words->token};
    }
    return std::nullopt;
  }

  /// What a file names may be of another network; what the user names is to be found.
  LineChannel connected(const std::string& address) const {
    try {
      return LineChannel(sim::open_connection(address, soon()));
    } catch (const InputError& error) {
      if (is_address(meeting_.place)) throw;
      throw ChannelBroken(error.what());
    }
  }

  Deadline soon() const { return std::min(deadline_, sim::in_seconds(answer_s)); }

  Connections join(const Place& place) {
    LineChannel leader = connected(place.address);
    std::string call =
        fmt::format("{} {} join {} {} {} {}", rank_greeting.program, rank_greeting.version,
                    place.token, meeting_.ranks, meeting_.rank, port_in(listener_.address()));
    for (const Term& term : meeting_.terms) call += fmt::format(" {}={}", term.name, term.value);
    leader.send(call);
    std::istringstream answer(leader.receive(soon()));
    std::string verb, why;
    answer >> verb;
    if (verb == "refused") refused(std::getline(answer >> std::ws, why) ? why : "without a reason");
    if (verb != "hello") throw ChannelBroken("something else answers there");
    // Rank 0 is to give up first: it knows who is missing.
    std::istringstream addresses(leader.receive(deadline_ + after_rank_0));
    addresses >> verb;
    if (verb != "welcome") throw ChannelBroken("something else answers there");
    return meet_peers(leader.release(), host_in(place.address), addresses, place.token);
  }

  /// For good where it is this very run; else another may yet be there in time.
  [[noreturn]] void refused(const std::string& why) const {
    if (meeting_.token.empty()) throw ChannelBroken("rank 0 refused this rank: " + why);
    throw InputError(fmt::format("rank {}", meeting_.rank), "rank 0 refused it: " + why);
  }

  /// Ranks below this one listen since before they joined.
  Connections meet_peers(Descriptor leader, const std::string& leader_host,
                         std::istringstream& addresses, const std::string& token) {
    Connections there(static_cast<std::size_t>(meeting_.ranks));
    there[0] = std::move(leader);
    for (std::size_t r = 1; r < static_cast<std::size_t>(meeting_.rank); ++r) {
      std::string address;
      addresses >> address;
      const std::string host = host_in(address);
      try {
        there[r] = sim::open_connection(
            (host == same_host ? leader_host : host) + ":" + port_in(address), deadline_);
        send_line(there[r],
                  fmt::format("{} {} peer {} {}", rank_greeting.program, rank_greeting.version,
                              token, meeting_.rank),
                  deadline_);
      } catch (const ChannelBroken& error) {
        throw PeerLost(
            fmt::format("rank {} cannot reach rank {}: {}", meeting_.rank, r, error.what()));
      }
    }
    let_in_higher(there, token);
    return there;
  }

  void let_in_higher(Connections& there, const std::string& token) {
    sim::Door door = door_at(listener_);
    const auto complete = [&] {
      return std::all_of(there.begin() + meeting_.rank + 1, there.end(),
                         [](const Descriptor& one) { return one.number() >= 0; });
    };
    while (!complete()) {
      if (Clock::now() >= deadline_)
        throw PeerLost(
            fmt::format("rank {} waited in vain for: {}", meeting_.rank, missing_of(there)));
      open(door, deadline_, {}, [&](const RankCall& call, sim::Guest& guest) -> std::string {
        if (call.verb != "peer" || call.token != token) return "this is another run";
        if (call.rank <= meeting_.rank || call.rank >= meeting_.ranks) return "no such rank";
        Descriptor& peer = there[static_cast<std::size_t>(call.rank)];
        if (peer.number() >= 0) return "another process is that rank already";
        peer = guest.channel.release();
        return {};
      });
    }
  }

  const Meeting& meeting_;
  const Deadline deadline_;
  Listener listener_;
};

Listener listen_for(const Meeting& meeting) {
  if (meeting.listening >= 0) return Listener(Descriptor(meeting.listening), meeting.place);
  return Listener(is_address(meeting.place) ? meeting.place : "0.0.0.0:0");
}

}  // namespace

Rendezvous::Rendezvous(const Meeting& wanted) {
  Meeting meeting = wanted;
  sim::check_token(meeting.place, meeting.token);
  const Deadline deadline = sim::in_seconds(seconds(meeting.patience));
  if (meeting.rank != 0) {
    connections = Visitor(meeting, deadline).meet_all();
    return;
  }
  if (meeting.token.empty()) meeting.token = sim::make_token();
  Listener listener = listen_for(meeting);
  if (!is_address(meeting.place))
    file_ = std::make_unique<sim::RendezvousFile>(
        meeting.place, rank_greeting,
        sim::RendezvousFile::Words{.address = host_name() + ":" + port_in(listener.address()),
                                   .token = meeting.token,
                                   .ranks = meeting.ranks});
  connections = Host(meeting, listener, deadline).welcome_all();
}

}  // namespace stepcast::validate
