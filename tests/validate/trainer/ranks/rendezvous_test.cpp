#include "validate/trainer/ranks/rendezvous.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "tests/own_folder.hpp"
#include "validate/trainer/ranks/sockets.hpp"

namespace stepcast::validate {
namespace {

/// A place of its own for each test; the folder goes with it.
class Folder {
 public:
  Folder() : path_(tests::own_folder() / ("meeting-" + sim::make_token())) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return (path_ / "run").string(); }

 private:
  std::filesystem::path path_;
};

void write_file(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

bool exists(const std::string& file) { return std::filesystem::exists(file); }

/// A port that the kernel gives and nobody else gets: this process keeps it, and who says so
/// (SO_REUSEADDR, as Listener does) may listen on it all the same.
std::string free_address() {
  static std::vector<sim::Descriptor> kept;
  sim::Descriptor& port = kept.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int on = 1;
  REQUIRE(bind(port.number(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(port.number(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  REQUIRE(setsockopt(port.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

/// A rank that comes, sums up the ranks' numbers, and says how it went: "sum 3", "lost: ...",
/// "refused: ...".
std::string come(Meeting meeting) {
  if (meeting.patience == Duration{}) meeting.patience = to_duration(60.0);
  if (sim::is_address(meeting.place) && meeting.token.empty()) meeting.token = "run7";
  try {
    Rendezvous rendezvous(meeting);
    SocketRanks session(meeting.rank, std::move(rendezvous.connections), meeting.patience);
    const auto world = session.world();
    std::vector<float> sum{static_cast<float>(meeting.rank)};
    world->all_reduce(sum);
    return "sum " + std::to_string(static_cast<int>(sum[0]));
  } catch (const PeerLost& error) {
    return std::string("lost: ") + error.what();
  } catch (const InputError& error) {
    return std::string("refused: ") + error.what();
  }
}

/// All of them at once, each a thread; what each says.
std::vector<std::string> all_come(const std::vector<Meeting>& meetings) {
  std::vector<std::string> said(meetings.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < meetings.size(); ++i)
    threads.emplace_back([&, i] { said[i] = come(meetings[i]); });
  for (auto& thread : threads) thread.join();
  return said;
}

std::vector<Meeting> ranks_of(std::int64_t ranks, const std::string& place,
                              const std::string& token = "") {
  std::vector<Meeting> all;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all.push_back({.rank = rank, .ranks = ranks, .place = place, .token = token});
  return all;
}

using Said = std::vector<std::string>;

/// A process that does `body` until it is killed.
class Background {
 public:
  explicit Background(const std::function<void()>& body) : process_(fork()) {
    if (process_ != 0) return;
    body();
    _exit(0);
  }
  ~Background() { end(); }
  void end() {
    if (process_ > 0) kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_;
};

/// Of another run of `ranks` ranks: rank 0, which has written the file and waits for the others.
Background leader_of(const std::string& file, std::int64_t ranks) {
  return Background(
      [=] { come({.rank = 0, .ranks = ranks, .place = file, .patience = to_duration(60.0)}); });
}

void wait_for_file(const std::string& file) {
  for (int i = 0; i < 12000 && !(exists(file) && std::filesystem::file_size(file) > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

TEST_CASE("ranks find each other at an address, by a token") {
  CHECK(all_come(ranks_of(4, free_address(), "run7")) == Said(4, "sum 6"));
}

TEST_CASE("ranks find each other by a file, which is gone afterwards") {
  const Folder folder;
  CHECK(all_come(ranks_of(3, folder.file())) == Said(3, "sum 3"));
  CHECK_FALSE(exists(folder.file()));
}

/// Rank 1 looks for its run before rank 0 says where it is.
void check_that_the_second_may_come_first(const std::string& file) {
  std::string early;
  std::thread rank([&] { early = come({.rank = 1, .ranks = 2, .place = file}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(come({.rank = 0, .ranks = 2, .place = file}) == "sum 1");
  rank.join();
  CHECK(early == "sum 1");
}

TEST_CASE("a rank may come before the file of its run is there") {
  const Folder folder;
  check_that_the_second_may_come_first(folder.file());
}

TEST_CASE("a file that a killed run has left is replaced, and nobody joins that run") {
  const Folder folder;
  {
    Background killed = leader_of(folder.file(), 2);
    wait_for_file(folder.file());
    killed.end();
  }
  REQUIRE(exists(folder.file()));
  check_that_the_second_may_come_first(folder.file());
}

TEST_CASE("the file of a run, which has its token, is its user's alone") {
  const Folder folder;
  Background other = leader_of(folder.file(), 2);
  wait_for_file(folder.file());
  namespace fs = std::filesystem;
  CHECK(fs::status(folder.file()).permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(come({.rank = 1, .ranks = 2, .place = folder.file()}) == "sum 1");
}

TEST_CASE("a file of a living run is refused, and that run goes on") {
  const Folder folder;
  Background other = leader_of(folder.file(), 2);
  wait_for_file(folder.file());
  CHECK_THAT(come({.rank = 0, .ranks = 2, .place = folder.file()}),
             Catch::Contains("refused") && Catch::Contains("still alive"));
  CHECK(come({.rank = 1, .ranks = 2, .place = folder.file()}) == "sum 1");
}

TEST_CASE("a file that is no rendezvous is left alone") {
  const Folder folder;
  write_file(folder.file(), "my thesis\n");
  CHECK_THAT(come({.rank = 0, .ranks = 2, .place = folder.file()}),
             Catch::Contains("something else than a rendezvous"));
  std::ifstream in(folder.file());
  std::string first;
  std::getline(in, first);
  CHECK(first == "my thesis");
  CHECK_THAT(come({.rank = 0, .ranks = 2, .place = "/nowhere/run"}),
             Catch::Contains("cannot be written"));
}

TEST_CASE("a rank that finds no run says so when its patience ends") {
  const Folder folder;
  const Duration brief = to_duration(0.5);
  const auto seeks = [&](const std::string& place) {
    return come({.rank = 1, .ranks = 2, .place = place, .token = "", .patience = brief});
  };
  CHECK_THAT(seeks(folder.file()), Catch::Contains("the file has not appeared"));
  CHECK_THAT(seeks(free_address()), Catch::Contains("nobody listens on"));
  // Stale: the address is nobody's, or the run was another.
  write_file(folder.file(), "stepcast-trainer 2 " + free_address() + " abc 2 end\n");
  CHECK_THAT(seeks(folder.file()), Catch::Contains("nobody listens on"));
  write_file(folder.file(), "stepcast-trainer 2 " + free_address() + " abc 8 end\n");
  CHECK_THAT(seeks(folder.file()), Catch::Contains("of a run of 8 ranks"));
  // Somebody listens there who is no rank, and says nothing.
  const sim::Listener stranger("127.0.0.1:0");
  write_file(folder.file(), "stepcast-trainer 2 " + stranger.address() + " abc 2 end\n");
  CHECK_THAT(seeks(folder.file()), Catch::Contains("no answer in time"));
}

TEST_CASE("rank 0 says who has not come") {
  const std::string place = free_address();
  std::vector<Meeting> two = ranks_of(4, place);
  two.resize(2);
  for (Meeting& meeting : two) meeting.patience = to_duration(3.0);
  const Said said = all_come(two);
  CHECK_THAT(said[0], Catch::Contains("2 of 4 ranks came") && Catch::Contains("not: 2, 3"));
  CHECK_THAT(said[1], Catch::Contains("lost: rank 1 found no run of 4 ranks"));
}

TEST_CASE("a rank with another plan, or another's number, is refused and the run goes on") {
  const std::string place = free_address();
  auto all = ranks_of(3, place, "token");
  all.push_back(
      {.rank = 1, .ranks = 8, .place = place, .token = "token", .patience = to_duration(10.0)});
  const Said said = all_come(all);
  CHECK(Said(said.begin(), said.begin() + 3) == Said(3, "sum 3"));
  // It may also have come when all was over.
  CHECK_THAT(said[3], Catch::Contains("its plan has 8 ranks") || Catch::Contains("found no run"));

  const std::string elsewhere = free_address();
  Background waiting([&] {
    come({.rank = 0, .ranks = 3, .place = elsewhere, .token = "t", .patience = to_duration(60.0)});
  });
  {
    sim::LineChannel first = sim::connect_to(elsewhere, sim::in_seconds(60));
    first.send("stepcast-trainer 2 join t 3 1 4000");
    REQUIRE(first.receive(sim::in_seconds(60)) == "hello");
    CHECK_THAT(come({.rank = 1, .ranks = 3, .place = elsewhere, .token = "t"}),
               Catch::Contains("another process is that rank already"));
  }
  CHECK_THAT(come({.rank = 2, .ranks = 3, .place = elsewhere, .token = "u"}),
             Catch::Contains("of another run"));
  CHECK_THAT(come({.rank = 7, .ranks = 3, .place = elsewhere, .token = "t"}),
             Catch::Contains("no such rank"));
  auto both = ranks_of(3, elsewhere, "t");
  both.erase(both.begin());
  CHECK(all_come(both) == Said(2, "sum 3"));
}

TEST_CASE("a stranger who talks, or keeps silent, does not hold the run up") {
  const std::string place = free_address();
  std::vector<std::thread> strangers;
  std::vector<std::string> said(3);
  std::thread leader([&] { said[0] = come({.rank = 0, .ranks = 3, .place = place}); });
  const auto soon = sim::in_seconds(60);
  // If each held it up for the five seconds that a guest may keep silent, no patience would do.
  std::vector<sim::LineChannel> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(sim::connect_to(place, soon));
  sim::LineChannel web = sim::connect_to(place, soon);
  web.send("GET / HTTP/1.1\r\nHost: here\r\n\r");
  sim::LineChannel endless = sim::connect_to(place, soon);
  endless.send(std::string(100000, 'x'));
  std::thread second([&] { said[1] = come({.rank = 1, .ranks = 3, .place = place}); });
  said[2] = come({.rank = 2, .ranks = 3, .place = place});
  leader.join();
  second.join();
  CHECK(said == Said(3, "sum 3"));
}

TEST_CASE("a rank that gave up may come again") {
  const std::string place = free_address();
  Background leader(
      [&] { come({.rank = 0, .ranks = 3, .place = place, .patience = to_duration(60.0)}); });
  CHECK_THAT(come({.rank = 1, .ranks = 3, .place = place, .patience = to_duration(0.7)}),
             Catch::Contains("found no run"));
  std::vector<Meeting> again = ranks_of(3, place);
  again.erase(again.begin());
  CHECK(all_come(again) == Said(2, "sum 3"));
}

TEST_CASE("at an address without a token nobody is waited for") {
  const auto meet = [](const std::string& place, std::int64_t rank) {
    Rendezvous({.rank = rank, .ranks = 2, .place = place, .patience = to_duration(1.0)});
  };
  CHECK_THROWS_WITH(meet(free_address(), 0), Catch::Contains("open to whoever knocks"));
  CHECK_THROWS_WITH(meet(free_address(), 1), Catch::Contains("open to whoever knocks"));
}

TEST_CASE("a stranger who joins without the token, or with a wrong one, is told nothing") {
  const std::string place = free_address();
  Background leader(
      [&] { come({.rank = 0, .ranks = 2, .place = place, .patience = to_duration(60.0)}); });
  for (const std::string word : {"-", "run", "run77", "RUN7"}) {
    sim::LineChannel stranger = sim::connect_to(place, sim::in_seconds(60));
    // Of other ranks and another number as well, so that a word about them would be telling.
    stranger.send("stepcast-trainer 2 join " + word + " 8 9 4000 scenario=x");
    CHECK(stranger.receive(sim::in_seconds(60)) == "refused it is of another run");
    CHECK_THROWS_AS(stranger.receive(sim::in_seconds(60)), sim::ChannelBroken);
  }
  CHECK(come({.rank = 1, .ranks = 2, .place = place}) == "sum 1");
}

TEST_CASE(
    "a rank with another scenario or other settings is refused by name, and the run goes on") {
  const std::string place = free_address();
  const auto meeting = [&](std::int64_t rank, const std::string& scenario, const char* steps) {
    return Meeting{.rank = rank,
                   .ranks = 2,
                   .place = place,
                   .patience = to_duration(60.0),
                   .terms = {{"scenario", scenario}, {"--steps", steps}}};
  };
  Background leader([&] { come(meeting(0, "abc", "60")); });
  CHECK_THAT(come(meeting(1, "abd", "60")),
             Catch::Contains("its scenario is abd, that of rank 0 is abc"));
  CHECK_THAT(come(meeting(1, "abc", "6")),
             Catch::Contains("its --steps is 6, that of rank 0 is 60"));
  CHECK_THAT(come({.rank = 1, .ranks = 2, .place = place}),
             Catch::Contains("its scenario is none"));
  CHECK(come(meeting(1, "abc", "60")) == "sum 1");
}

}  // namespace stepcast::validate
