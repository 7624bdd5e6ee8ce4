#include "sim/output/crash_note.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

constexpr std::string_view crash_begin = "{\"crashed\":";
constexpr std::string_view note_begin = "{\"id\":\"",
                           note_middle = "\",\"result\":{\"crashed\":", note_end = "}}\n";
constexpr std::size_t longest_id = 64;

/// Of this thread: what a handler may touch.
struct Running {
  int file = -1;
  std::size_t length = 0;
  std::array<char, longest_id> id{};
};
thread_local Running running;

/// Nothing but copies and one write: all else is forbidden here.
extern "C" void on_crash(int signal) {
  if (running.file >= 0) {
    std::array<char, 128> line{};
    char* at = std::ranges::copy(note_begin, line.data()).out;
    at = std::copy_n(running.id.data(), running.length, at);
    at = std::ranges::copy(note_middle, at).out;
    if (signal >= 10) *at++ = static_cast<char>('0' + signal / 10 % 10);
    *at++ = static_cast<char>('0' + signal % 10);
    at = std::ranges::copy(note_end, at).out;
    [[maybe_unused]] const ssize_t written =
        write(running.file, line.data(), static_cast<std::size_t>(at - line.data()));
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void install_once() {
  static const bool installed = [] {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL})
      std::signal(signal, on_crash);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

CrashNote::CrashNote(const RowFile& file, const PointId& id) {
  expects(id.size() <= longest_id, "an id is short");
  install_once();
  std::ranges::copy(id, running.id.data());
  running.length = id.size();
  running.file = file.descriptor();
}

CrashNote::~CrashNote() { running.file = -1; }

bool is_crash(std::string_view row) { return row.starts_with(crash_begin); }

}  // namespace stepcast::sim
