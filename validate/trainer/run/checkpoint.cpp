#include "validate/trainer/run/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/tables/column_file.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t schema_version = 2;  // 2: whole parameters in the order of backward

fs::path folder_of(const std::string& folder, std::int64_t step) {
  return fs::path(folder) / fmt::format("step-{:08}", step);
}

std::string file_of(const std::string& folder, std::int64_t step, const Communicator& world) {
  const auto name = fmt::format("rank-{:04}-of-{:04}.h5", world.rank(), world.size());
  return (folder_of(folder, step) / name).string();
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw InputError(path.string(), "cannot be made: " + error.message());
}

/// Every float is a double: exact, and the upper zeros compress away.
void write_column(sim::ColumnWriter& file, const std::string& name, std::span<const float> values) {
  const std::vector<double> wide(values.begin(), values.end());
  file.column(name, std::span<const double>(wide), "1");
}

void read_column(const sim::ColumnReader& file, const std::string& name, std::span<float> values) {
  const std::vector<double> wide = file.doubles(name);
  if (wide.size() != values.size())
    throw InputError(file.path(), fmt::format("{} has {} values, {} are expected", name,
                                              wide.size(), values.size()));
  std::ranges::transform(wide, values.begin(), [](double v) { return static_cast<float>(v); });
}

std::int64_t read_latest(const std::string& folder) {
  const std::string path = (fs::path(folder) / "latest").string();
  std::ifstream file(path);
  std::int64_t step = -1;
  if (!(file >> step) || step < 0)
    throw InputError(path, "names no saved step", "start without --resume");
  return step;
}

/// Whether a name is what this file would call it: "step-" or "rank-", digits, and the rest.
bool is_ours(const fs::path& path, const char* pattern) {
  return std::regex_match(path.filename().string(), std::regex(pattern));
}

/// Removes the steps that were saved before: folders of exactly our name, and in them files of
/// exactly our name. Anything else in them is the user's, and stays with its folder; links are not
/// followed.
void remove_other_steps(const std::string& folder, std::int64_t step) {
  std::error_code error;  // what cannot be removed stays
  std::vector<fs::path> steps;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.symlink_status(error).type() == fs::file_type::directory &&
        is_ours(entry.path(), "step-[0-9]{8,}") && entry.path() != folder_of(folder, step))
      steps.push_back(entry.path());
  for (const fs::path& old : steps) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(old, error))
      if (entry.symlink_status(error).type() == fs::file_type::regular &&
          is_ours(entry.path(), "rank-[0-9]{4,}-of-[0-9]{4,}\\.h5(\\.partial)?"))
        files.push_back(entry.path());
    for (const fs::path& file : files) fs::remove(file, error);
    fs::remove(old, error);  // an empty folder only
  }
}

}  // namespace

void save_checkpoint(const std::string& folder, const std::string& job, std::int64_t step,
                     const KeptState& state, Communicator& world) {
  make_folder(folder_of(folder, step));
  const auto made = sim::write_columns(file_of(folder, step, world));
  sim::ColumnWriter& file = *made;
  file.attribute("/", "schema_version", schema_version);
  file.attribute("/", "job", job);
  file.attribute("/", "step", step);
  write_column(file, "/weights", state.weights);
  write_column(file, "/first_moments", state.first_moments);
  write_column(file, "/second_moments", state.second_moments);
  if (state.scale != nullptr) {
    // A power of two, always.
    file.attribute("/", "loss_scale_log2", std::int64_t{std::ilogb(state.scale->value)});
    file.attribute("/", "good_steps", state.scale->good_steps);
  }
  file.finish();
  world.barrier();  // all have written
  if (world.rank() == 0) {
    sim::write_whole((fs::path(folder) / "latest").string(), std::to_string(step) + "\n");
    remove_other_steps(folder, step);
  }
  world.barrier();
}

std::int64_t load_checkpoint(const std::string& folder, const std::string& job, KeptState state,
                             Communicator& world) {
  const std::int64_t step = read_latest(folder);
  const std::string path = file_of(folder, step, world);
  if (!fs::exists(path))
    throw InputError(
        path, fmt::format("is missing: the checkpoint is not one of {} ranks", world.size()));
  const auto opened = sim::read_columns(path);
  const sim::ColumnReader& file = *opened;
  if (file.integer_attribute("/", "schema_version") != schema_version)
    throw InputError(path, "was written by another version of stepcast-trainer");
  if (file.text_attribute("/", "job") != job)
    throw InputError(path, "is a checkpoint of another model or plan",
                     "it was: " + file.text_attribute("/", "job"));
  if (file.integer_attribute("/", "step") != step)
    throw InputError(path, "is of another step than 'latest' names");
  read_column(file, "/weights", state.weights);
  read_column(file, "/first_moments", state.first_moments);
  read_column(file, "/second_moments", state.second_moments);
  if (state.scale != nullptr) {
    const std::int64_t exponent = file.integer_attribute("/", "loss_scale_log2");
    state.scale->value =
        std::ldexp(1.0, static_cast<int>(std::clamp<std::int64_t>(exponent, -64, 64)));
    state.scale->good_steps = file.integer_attribute("/", "good_steps");
  }
  world.barrier();
  return step;
}

}  // namespace stepcast::validate
