#include "sim/output/row_log.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "engine/check.hpp"
#include "sim/output/crash_note.hpp"
#include "tests/own_folder.hpp"

namespace stepcast::sim {
namespace {

const PointId first = "11111111-1111-5111-8111-111111111111",
              second = "22222222-2222-5222-8222-222222222222";

/// A file of rows that is gone at the end.
class LogFile {
 public:
  LogFile() { close(mkstemp(path_.data())); }
  ~LogFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  RowFile opened() const { return RowFile(open(path_.c_str(), O_RDWR | O_APPEND)); }
  void add(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> rows() const {
    std::vector<std::string> out;
    read_rows(path_, [&](const LoggedRow& logged) {
      out.push_back(std::string(logged.id.substr(0, 1)).append(logged.row));
    });
    return out;
  }

 private:
  std::string path_ = (tests::own_folder() / "row_log_XXXXXX").string();
};

}  // namespace

TEST_CASE("rows are read back where append() says that they are") {
  const LogFile log;
  const RowFile file = log.opened();
  RowLog writer(file, 0);
  writer.append(first, "{\"a\":1}");
  const auto place = writer.append(second, "{\"b\":[2,3]}");
  REQUIRE(place);
  CHECK(file.read(place->offset, place->length) == "{\"b\":[2,3]}");
  CHECK(log.rows() == std::vector<std::string>{"1{\"a\":1}", "2{\"b\":[2,3]}"});
}

TEST_CASE("a row that is torn anywhere is dropped, and cut off by the next writer") {
  const LogFile whole;
  RowLog(whole.opened(), 0).append(first, "{\"a\":1}");
  const std::string line = whole.text();
  for (std::size_t length = 0; length < line.size(); ++length) {
    const LogFile torn;
    torn.add(line + line.substr(0, length));
    const auto end = read_rows(torn.path(), [](const LoggedRow&) {});
    CHECK(end == static_cast<std::int64_t>(line.size()));
    RowLog(torn.opened(), end).append(second, "{}");
    CHECK(torn.rows() == std::vector<std::string>{"1{\"a\":1}", "2{}"});
  }
}

TEST_CASE("a whole line that is no row is named") {
  const LogFile log;
  RowLog(log.opened(), 0).append(first, "{}");
  log.add("{\"id\":\"\n");
  CHECK_THROWS_WITH(log.rows(), Catch::Contains(log.path() + ":2: is no row"));
}

TEST_CASE("a fatal signal leaves a note of the point that runs, and of none otherwise") {
  for (const bool inside : {true, false}) {
    const LogFile log;
    const RowFile file = log.opened();
    const pid_t child = fork();
    if (child == 0) {
      std::optional<CrashNote> note(std::in_place, file, first);
      if (!inside) note.reset();
      raise(SIGSEGV);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
    const std::vector<std::string> rows = log.rows();
    REQUIRE(rows.size() == (inside ? 1U : 0U));
    if (inside) CHECK(rows[0] == "1{\"crashed\":11}");
    if (inside) CHECK(is_crash(rows[0].substr(1)));
  }
}

}  // namespace stepcast::sim
