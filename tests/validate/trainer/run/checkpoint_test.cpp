#include "validate/trainer/run/checkpoint.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/tables/column_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/sanitizer.hpp"

#ifdef STEPCAST_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = tests::own_folder() / "stepcast_checkpoint_test";
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

const KeptJob own_job{"job", "scenario"};

std::string file_of(const Folder& folder, int rank) {
  return (folder.path / "step-00000007" / fmt::format("rank-{:04}-of-0002.h5", rank)).string();
}

void save(const Folder& folder, std::int64_t step, std::int64_t ranks = 2) {
  run_ranks(ranks, [&](std::unique_ptr<Communicator> world) {
    State state(static_cast<float>(world->rank() + 10 * step));
    save_checkpoint(folder.path.string(), own_job, step, state.kept(), *world);
  });
}

void load(const Folder& folder, std::int64_t ranks = 2, const KeptJob& job = own_job) {
  run_ranks(ranks, [&](std::unique_ptr<Communicator> world) {
#ifdef STEPCAST_ASAN
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

TEST_CASE("a step is not saved through a link in the place of its folder") {
  const Folder folder;
  fs::create_directories(folder.path / "elsewhere");
  fs::create_directory_symlink("elsewhere", folder.path / "step-00000007");
  CHECK_THROWS_WITH(save(folder, 7), Catch::Contains("it is a link, not a folder"));
  CHECK(fs::is_empty(folder.path / "elsewhere"));
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
  CHECK_THROWS_WITH(load(folder, 2, {"other", "scenario"}),
                    Catch::Contains("another model or plan"));
  CHECK_THROWS_WITH(load(folder, 2, {"job", "other"}), Catch::Contains("another scenario"));
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

TEST_CASE("ranks' files that were swapped are refused") {
  const Folder folder;
  save(folder, 7);
  const std::string aside = file_of(folder, 0) + ".aside";
  fs::rename(file_of(folder, 0), aside);
  fs::rename(file_of(folder, 1), file_of(folder, 0));
  fs::rename(aside, file_of(folder, 1));
  CHECK_THROWS_WITH(load(folder), Catch::Contains("is of rank"));
}

TEST_CASE("a rank's file of another checkpoint of the same step is refused") {
  const Folder folder;
  save(folder, 7);
  const std::string aside = file_of(folder, 1) + ".aside";
  fs::rename(file_of(folder, 1), aside);
  run_ranks(2, [&](std::unique_ptr<Communicator> world) {
    State other(3.0F);
    save_checkpoint(folder.path.string(), own_job, 7, other.kept(), *world);
  });
  fs::rename(aside, file_of(folder, 1));
  CHECK_THROWS_WITH(load(folder), Catch::Contains("of several checkpoints"));
}

namespace {

void save_state(const Folder& folder, const State& state) {
  run_ranks(2, [&](std::unique_ptr<Communicator> world) {
    State copy = state;
    save_checkpoint(folder.path.string(), own_job, 7, copy.kept(), *world);
  });
}

}  // namespace

TEST_CASE("moments that no training has are refused") {
  const Folder folder;
  State negative;
  negative.v[5] = -1e-9F;
  save_state(folder, negative);
  CHECK_THROWS_WITH(load(folder), Catch::Contains("negative values"));
}

TEST_CASE("a state that is not finite is not saved, and what was saved before stays") {
  const Folder folder;
  save(folder, 7);
  for (auto part : {&State::weights, &State::m, &State::v}) {
    State state;
    (state.*part)[3] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_AS(save_state(folder, state), Diverged);
    (state.*part)[3] = std::numeric_limits<float>::infinity();
    CHECK_THROWS_AS(save_state(folder, state), Diverged);
  }
  CHECK_NOTHROW(load(folder));
}

TEST_CASE("the scale of a loss comes back as it was, and one that no training has is refused") {
  const Folder folder;
  const auto keep = [&](LossScale scale) {
    run_ranks(2, [&](std::unique_ptr<Communicator> world) {
      State state;
      LossScale own = scale;
      KeptState kept = state.kept();
      kept.scale = &own;
      save_checkpoint(folder.path.string(), own_job, 7, kept, *world);
    });
  };
  const auto recall = [&] {
    run_ranks(2, [&](std::unique_ptr<Communicator> world) {
#ifdef STEPCAST_ASAN
      const __lsan::ScopedDisabler library;
#endif
      State state;
      LossScale own;
      KeptState kept = state.kept();
      kept.scale = &own;
      load_checkpoint(folder.path.string(), own_job, kept, *world);
      ensures(own.value == 0x1p11 && own.good_steps == 42, "the scale saved");
    });
  };
  keep({.value = 0x1p11, .good_steps = 42});
  CHECK_NOTHROW(recall());
  keep({.value = 0x1p11, .good_steps = -1});
  CHECK_THROWS_WITH(recall(), Catch::Contains("a scale of the loss that the trainer never has"));
}

TEST_CASE("values that are not finite are refused in a file as well") {
  const Folder folder;
  save(folder, 7);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, 1e300}) {
    const auto file = sim::write_columns(file_of(folder, 0));
    for (const auto& [name, value] :
         {std::pair{"schema_version", 3}, {"step", 7}, {"rank", 0}, {"ranks", 2}})
      file->attribute("/", name, std::int64_t{value});
    for (const char* name : {"job", "scenario"}) file->attribute("/", name, std::string(name));
    std::vector<double> values(100);
    file->column("/weights", std::span<const double>(values), "1");
    values[7] = bad;
    file->column("/first_moments", std::span<const double>(values), "1");
    file->column("/second_moments", std::span<const double>(values), "1");
    file->finish();
    CHECK_THROWS_WITH(load(folder), Catch::Contains("/first_moments has values that are not"));
  }
}

TEST_CASE("'latest' names a step and nothing else") {
  const Folder folder;
  save(folder, 7);
  for (const char* text : {"7abc", "-7", "", "9223372036854775807", "0x7"}) {
    std::ofstream(folder.path / "latest") << text;
    CHECK_THROWS_WITH(load(folder), Catch::Contains("names no saved step"));
  }
}

TEST_CASE("two runs do not save into one folder") {
  const Folder folder;
  std::optional<CheckpointFolder> first(folder.path.string());
  CHECK_THROWS_WITH(CheckpointFolder(folder.path.string()),
                    Catch::Contains("is being written by another run"));
  first.reset();
  CHECK_NOTHROW(CheckpointFolder(folder.path.string()));
}

}  // namespace stepcast::validate
