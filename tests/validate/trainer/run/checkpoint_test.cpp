#include "validate/trainer/run/checkpoint.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / "stepcast_checkpoint_test";
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

struct State {
  explicit State(float first = 0.0F) : weights(100), m(100), v(100) {
    std::iota(weights.begin(), weights.end(), first + 0.1F);
    std::iota(m.begin(), m.end(), first + 0.2F);
    std::iota(v.begin(), v.end(), first + 0.3F);
  }
  KeptState kept() { return {weights, m, v}; }
  std::vector<float> weights, m, v;
  friend bool operator==(const State&, const State&) = default;
};

void save(const Folder& folder, std::int64_t step, std::int64_t ranks = 2) {
  run_ranks(ranks, [&](std::unique_ptr<Communicator> world) {
    State state(static_cast<float>(world->rank() + 10 * step));
    save_checkpoint(folder.path.string(), "job", step, state.kept(), *world);
  });
}

void load(const Folder& folder, std::int64_t ranks = 2, const std::string& job = "job") {
  run_ranks(ranks, [&](std::unique_ptr<Communicator> world) {
#ifdef __SANITIZE_ADDRESS__
    const __lsan::ScopedDisabler library;  // HDF5 does not free all that it had of a refused file
#endif
    State state;
    const auto step = load_checkpoint(folder.path.string(), job, state.kept(), *world);
    ensures(state == State(static_cast<float>(world->rank() + 10 * step)), "the state saved");
    ensures(step == 7, "of the last step");
  });
}

}  // namespace

TEST_CASE("a checkpoint removes the steps that the trainer wrote, and nothing of the user's") {
  const Folder folder;
  save(folder, 3);
  const auto write = [&](const fs::path& file) {
    fs::create_directories((folder.path / file).parent_path());
    std::ofstream(folder.path / file) << "mine";
  };
  write("step-notes/diary.txt");    // begins like ours
  write("step-00000002/mine.txt");  // a folder of our name with a file that is not ours
  write("step-00000001-copy/rank-0000-of-0002.h5");
  write("elsewhere/rank-0000-of-0002.h5");
  fs::create_directory_symlink(folder.path / "elsewhere", folder.path / "step-00000001");
  write("step-00000002/rank-0000-of-0002.h5");
  fs::create_symlink(folder.path / "elsewhere/rank-0000-of-0002.h5",
                     folder.path / "step-00000002/rank-0001-of-0002.h5");

  save(folder, 7);

  CHECK_FALSE(fs::exists(folder.path / "step-00000003"));
  CHECK_FALSE(fs::exists(folder.path / "step-00000002/rank-0000-of-0002.h5"));
  CHECK(fs::exists(folder.path / "step-notes/diary.txt"));
  CHECK(fs::exists(folder.path / "step-00000002/mine.txt"));
  CHECK(fs::exists(folder.path / "step-00000001-copy/rank-0000-of-0002.h5"));
  CHECK(fs::exists(folder.path / "elsewhere/rank-0000-of-0002.h5"));
  CHECK(fs::is_symlink(folder.path / "step-00000001"));
  CHECK(fs::is_symlink(folder.path / "step-00000002/rank-0001-of-0002.h5"));
  load(folder);
}

TEST_CASE("every rank finds its state again, bit by bit, of the last step alone") {
  const Folder folder;
  save(folder, 3);
  save(folder, 7);
  CHECK_NOTHROW(load(folder));
  CHECK(!fs::exists(folder.path / "step-00000003"));
}

TEST_CASE("a checkpoint of another job, of other ranks, damaged or missing is refused") {
  const Folder folder;
  CHECK_THROWS_WITH(load(folder), Catch::Contains("names no saved step"));
  save(folder, 7);
  CHECK_THROWS_WITH(load(folder, 2, "other"), Catch::Contains("another model or plan"));
  CHECK_THROWS_WITH(load(folder, 1), Catch::Contains("is missing"));
  fs::resize_file(folder.path / "step-00000007" / "rank-0001-of-0002.h5", 500);
  CHECK_THROWS_AS(load(folder), InputError);
}

TEST_CASE("a step that was not written whole by all ranks does not count") {
  const Folder folder;
  save(folder, 7);
  // As if killed between the files of step 9 and its name: 7 is still the last.
  fs::create_directories(folder.path / "step-00000009");
  std::ofstream(folder.path / "step-00000009" / "rank-0000-of-0002.h5") << "half";
  CHECK_NOTHROW(load(folder));
}

}  // namespace stepcast::validate
