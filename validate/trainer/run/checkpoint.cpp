#include "validate/trainer/run/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/study/output_place.hpp"
#include "sim/tables/column_file.hpp"

namespace stepcast::validate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t schema_version = 3;  // 3: rank, scenario and digest

constexpr const char* lock_name = ".stepcast.lock";
constexpr double largest_float = std::numeric_limits<float>::max();

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
  if (error) throw sim::OutputError(path.string(), "cannot be written: " + error.message());
}

/// A link in its place would put the ranks' files where nobody asked for them.
void make_step_folder(const fs::path& path) {
  make_folder(path);
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::directory)
    throw sim::OutputError(path.string(), "cannot be written: it is a link, not a folder");
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
  if (!std::ranges::all_of(wide, [](double v) { return std::abs(v) <= largest_float; }))
    throw InputError(file.path(), fmt::format("{} has values that are not finite", name));
  std::ranges::transform(wide, values.begin(), [](double v) { return static_cast<float>(v); });
}

bool is_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

/// Damage, or a file of another checkpoint of the same step, shows in it: FNV-1a by words.
std::uint64_t digest_of(const KeptState& state) {
  std::uint64_t hash = 14695981039346656037U;
  for (const auto values : {state.weights, state.first_moments, state.second_moments})
    for (const float value : values)
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211U;
  return hash;
}

/// Of all ranks' states. Collective; numbers travel as doubles, which hold 32 bits exactly.
std::string digest_of_all(const KeptState& state, Communicator& world) {
  const std::uint64_t own = digest_of(state);
  const std::vector<double> mine{static_cast<double>(own >> 32U),
                                 static_cast<double>(own & 0xffffffffU)};
  std::vector<double> all(2 * static_cast<std::size_t>(world.size()));
  world.all_gather(mine, all);
  std::string text;
  for (const double half : all) text += fmt::format("{:08x}", static_cast<std::uint32_t>(half));
  return sim::id_of_text(text);
}

std::int64_t read_latest(const std::string& folder) {
  const std::string path = (fs::path(folder) / "latest").string();
  std::ifstream file(path);
  std::string digits;
  const bool read = std::getline(file, digits) && !digits.empty() && digits.size() <= 15;
  if (!read || digits.find_first_not_of("0123456789") != std::string::npos)
    throw InputError(path, "names no saved step", "start without --resume");
  return std::stoll(digits);
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
          is_ours(entry.path(),
                  "rank-[0-9]{4,}-of-[0-9]{4,}\\.h5(\\.[0-9a-f]+-[0-9]+-[0-9]+\\.partial)?"))
        files.push_back(entry.path());
    for (const fs::path& file : files) fs::remove(file, error);
    fs::remove(old, error);  // an empty folder only
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(const std::string& folder) {
  make_folder(folder);
  const std::string path = (fs::path(folder) / lock_name).string();
  lock_ = sim::Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (lock_.number() < 0)
    throw sim::OutputError(path, std::string("cannot be written: ") + std::strerror(errno));
  if (flock(lock_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw InputError("--checkpoint " + folder, "is being written by another run",
                     "take another folder, or let that run end");
}

void save_checkpoint(const std::string& folder, const KeptJob& job, std::int64_t step,
                     const KeptState& state, Communicator& world) {
  if (!is_finite(state.weights) || !is_finite(state.first_moments) ||
      !is_finite(state.second_moments))
    throw Diverged(
        fmt::format("the weights are not finite after step {}: nothing was saved, "
                    "try a lower learning rate or wider floats",
                    step));
  const std::string digest = digest_of_all(state, world);
  make_step_folder(folder_of(folder, step));
  const auto made = sim::write_columns(file_of(folder, step, world));
  sim::ColumnWriter& file = *made;
  file.attribute("/", "schema_version", schema_version);
  file.attribute("/", "job", job.text);
  file.attribute("/", "scenario", job.scenario);
  file.attribute("/", "step", step);
  file.attribute("/", "rank", world.rank());
  file.attribute("/", "ranks", world.size());
  file.attribute("/", "digest", digest);
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

namespace {

void check_job(const sim::ColumnReader& file, const KeptJob& job) {
  const std::string &path = file.path(), was = file.text_attribute("/", "job");
  if (was != job.text)
    throw InputError(path, "is a checkpoint of another model or plan", "it was: " + was);
  if (file.text_attribute("/", "scenario") != job.scenario)
    throw InputError(path, "is a checkpoint of another scenario, of the same model and plan",
                     "resume with the file and the --set that it was made with");
}

void check_rank(const sim::ColumnReader& file, const Communicator& world) {
  const std::int64_t rank = file.integer_attribute("/", "rank"),
                     ranks = file.integer_attribute("/", "ranks");
  if (rank != world.rank() || ranks != world.size())
    throw InputError(file.path(), fmt::format("is of rank {} of {}, not of {} of {}", rank, ranks,
                                              world.rank(), world.size()));
}

void read_scale(const sim::ColumnReader& file, LossScale& scale) {
  const std::int64_t exponent = file.integer_attribute("/", "loss_scale_log2");
  const std::int64_t good_steps = file.integer_attribute("/", "good_steps");
  if (exponent < -126 || exponent > 127 || good_steps < 0)
    throw InputError(file.path(), "has a scale of the loss that the trainer never has");
  scale.value = std::ldexp(1.0, static_cast<int>(exponent));
  scale.good_steps = good_steps;
}

}  // namespace

std::int64_t load_checkpoint(const std::string& folder, const KeptJob& job, KeptState state,
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
  check_job(file, job);
  check_rank(file, world);
  if (file.integer_attribute("/", "step") != step)
    throw InputError(path, "is of another step than 'latest' names");
  read_column(file, "/weights", state.weights);
  read_column(file, "/first_moments", state.first_moments);
  read_column(file, "/second_moments", state.second_moments);
  if (!std::ranges::all_of(state.second_moments, [](float v) { return v >= 0.0F; }))
    throw InputError(path, "/second_moments, which are means of squares, has negative values");
  if (state.scale != nullptr) read_scale(file, *state.scale);
  if (digest_of_all(state, world) != file.text_attribute("/", "digest"))
    throw InputError(path, "is damaged, or the ranks' files are of several checkpoints");
  world.barrier();
  return step;
}

}  // namespace stepcast::validate
