#include "sim/files/whole_file.hpp"
#include "tests/own_folder.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = tests::own_folder() / ("whole_file_test-" + std::to_string(getpid()));
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::ptrdiff_t num_files() const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }
};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A process that begins to write `path` and is killed; what it has left.
std::string left_by_killed(const std::string& path) {
  const pid_t process = fork();
  if (process == 0) {
    WholeFile file(path);
    file.write("half");
    _exit(0);  // no destructor runs
  }
  waitpid(process, nullptr, 0);
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path()))
    if (entry.path().extension() == ".partial") return entry.path().string();
  return {};
}

}  // namespace

TEST_CASE("two writers of one file do not mix: the last one's stays, whole") {
  const Folder folder;
  const std::string path = folder.file("r.json");
  WholeFile first(path), second(path);
  CHECK(first.partial() != second.partial());
  first.write("first ");
  second.write("second");
  first.write("and whole");
  first.seal();
  first.keep();
  CHECK(text_of(path) == "first and whole");
  second.seal();
  second.keep();
  CHECK(text_of(path) == "second");
  CHECK(folder.num_files() == 1);
}

TEST_CASE("what a killed writer has left goes with the next, and nothing else does") {
  const Folder folder;
  const std::string path = folder.file("r.json");
  const std::string left = left_by_killed(path);
  REQUIRE_FALSE(left.empty());
  std::ofstream(folder.file("r.json.partial")) << "mine";
  std::ofstream(folder.file("r.json.notes-1-0.partial")) << "mine";
  WholeFile living(path);
  write_whole(path, "whole");
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(living.partial()));
  CHECK(text_of(path) == "whole");
  CHECK(folder.num_files() == 4);
}

TEST_CASE("a killed writer that its parent has not waited for is dead as well") {
  const Folder folder;
  const std::string path = folder.file("r.json");
  const pid_t process = fork();
  if (process == 0) {
    WholeFile file(path);
    _exit(0);
  }
  siginfo_t ended;
  REQUIRE(waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(folder.num_files() == 1);
  write_whole(path, "whole");
  CHECK(folder.num_files() == 1);
  waitpid(process, nullptr, 0);
}

TEST_CASE("without keep() nothing is left, and what was there stays") {
  const Folder folder;
  const std::string path = folder.file("r.json");
  write_whole(path, "before");
  {
    WholeFile file(path);
    file.write("half");
    file.seal();
  }
  CHECK(text_of(path) == "before");
  CHECK(folder.num_files() == 1);
  CHECK_THROWS_AS(write_whole(folder.file("nowhere/r.json"), "x"), OutputError);
}

TEST_CASE("of files that belong together all are new or none, and nothing else is left") {
  const Folder folder;
  const NamedTexts texts{{"a", "new"}, {"b", "new"}, {"c", "new"}};
  write_whole(folder.file("a"), "old");
  fs::create_directory(folder.file("c"));  // it cannot take the place of a folder
  CHECK_THROWS_AS(write_together(folder.path.string(), texts), OutputError);
  CHECK(text_of(folder.file("a")) == "old");
  CHECK_FALSE(fs::exists(folder.file("b")));
  CHECK(fs::is_directory(folder.file("c")));
  CHECK(folder.num_files() == 2);
  fs::remove(folder.file("c"));
  write_together(folder.path.string(), texts);
  for (const auto& [name, text] : texts) CHECK(text_of(folder.file(name)) == text);
  CHECK(folder.num_files() == 3);
}

TEST_CASE("a new file has the mode that the user's mask leaves, and a long name is no matter") {
  const Folder folder;
  const std::string path = folder.file(std::string(250, 'x'));
  const mode_t mask = umask(027);
  write_whole(path, "whole");
  umask(mask);
  struct stat found {};
  REQUIRE(stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777U) == 0640U);
}

TEST_CASE("a link in the file's own place is refused, to a file and to nothing") {
  const Folder folder;
  const std::string link = folder.file("r.json"), victim = folder.file("victim");
  fs::create_symlink(victim, link);
  CHECK_THROWS_AS(write_whole(link, "whole"), OutputError);
  CHECK_FALSE(fs::exists(victim));
  std::ofstream(victim) << "precious";
  CHECK_THROWS_AS(write_whole(link, "whole"), OutputError);
  CHECK(text_of(victim) == "precious");
  CHECK(folder.num_files() == 2);
  fs::create_symlink("/dev/null", folder.file("nowhere"));
  write_whole(folder.file("nowhere"), "a device, written as it is");
  CHECK(fs::is_symlink(folder.file("nowhere")));
}

TEST_CASE("a link that somebody laid where a file is to be begun is not followed") {
  const Folder folder;
  const std::string path = folder.file("r.json"), victim = folder.file("victim");
  std::ofstream(victim) << "precious";
  std::string guessed;
  {
    const WholeFile file(path);
    guessed = file.partial();
  }
  fs::create_symlink(victim, guessed);
  write_whole(path, "whole");
  CHECK(text_of(victim) == "precious");
  CHECK(text_of(path) == "whole");
  CHECK_FALSE(fs::is_symlink(path));
}

}  // namespace stepcast::sim
