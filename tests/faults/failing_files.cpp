// Preloaded into a program (LD_PRELOAD), makes the disk under one folder fail on demand:
//   STEPCAST_FAIL="bytes 28 1000"  writes fail with errno 28 from the 1000th byte on, of all files
//   STEPCAST_FAIL="short 0 1"      every write takes half of what it is given, from the first on
//   STEPCAST_FAIL="rename 5 2"     the second rename fails with errno 5; so do open and close (of
//                                  what is written), sync, mkdir, truncate
//   STEPCAST_FAIL="signal 15 1"    the first open of a file to read it comes with that signal
//   STEPCAST_FAIL="ends 9 1000"    the 1000th byte comes with that signal: those before it are
//                                  written; where the signal ends nothing, what follows as well
// STEPCAST_FAIL_UNDER is that folder, STEPCAST_FAIL_SAID a file that gets a byte for each failure.
// Counts are of a process. What a rename or an open that fails would have done is not done; a close
// that fails closes, as Linux does.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

struct Plan {
  std::string under, said, call;
  int error = 0;
  long at = 0;
};

Plan read_plan() {
  Plan plan;
  const char* under = std::getenv("STEPCAST_FAIL_UNDER");
  const char* what = std::getenv("STEPCAST_FAIL");
  const char* said = std::getenv("STEPCAST_FAIL_SAID");
  char call[16] = {};
  if (under != nullptr && what != nullptr &&
      std::sscanf(what, "%15s %d %ld", call, &plan.error, &plan.at) == 3) {
    plan.under = std::string(under) + "/";
    plan.call = call;
    plan.said = said == nullptr ? "" : said;
  }
  return plan;
}

const Plan& plan() {
  static const Plan read = read_plan();
  return read;
}

std::atomic<long> counted = 0;  // bytes written, or calls

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) real(&name, #name)

bool is_under(std::string_view path) {
  return !plan().call.empty() && (std::string(path) + "/").starts_with(plan().under);
}

bool is_under(int file) {
  if (plan().call.empty()) return false;
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path, sizeof path);
  return size > 0 && is_under(std::string_view(path, static_cast<std::size_t>(size)));
}

/// Of what may not be there yet.
bool is_under_folder_of(const char* path) {
  const std::string text(path);
  const std::size_t slash = text.rfind('/');
  char whole[PATH_MAX];
  const std::string folder = slash == std::string::npos ? "." : text.substr(0, slash + 1);
  return realpath(folder.c_str(), whole) != nullptr && is_under(whole);
}

void say() {
  if (plan().said.empty()) return;
  static const auto open_really =
      reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(RTLD_NEXT, "open"));
  const int file =
      open_really(plan().said.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = REAL(write)(file, "x", 1);
  REAL(close)(file);
}

/// Whether this call is the one that fails; errno is set then.
bool fails(const char* call) {
  if (plan().call != call || ++counted != plan().at) return false;
  say();
  errno = plan().error;
  return true;
}

void before_reading(const char* path) {
  if (plan().call != "signal" || !is_under_folder_of(path) || ++counted != plan().at) return;
  say();
  raise(plan().error);
}

/// The rest of a write that is short comes again.
ssize_t room_before_signal(std::size_t size) {
  const auto wanted = static_cast<long>(size);
  const long left = plan().at - 1 - counted;
  if (left < 0 || wanted <= left) return counted += wanted, wanted;
  if (left > 0) return counted += left, left;
  counted += wanted;
  say();
  raise(plan().error);
  return wanted;
}

/// How many of `size` bytes may be written now; -1 with errno where none may.
ssize_t room_for(std::size_t size) {
  if (plan().call == "short") {
    if (size < 2) return static_cast<ssize_t>(size);
    say();
    return static_cast<ssize_t>(size / 2);
  }
  if (plan().call == "ends") return room_before_signal(size);
  if (plan().call != "bytes") return static_cast<ssize_t>(size);
  const long before = counted.fetch_add(static_cast<long>(size));
  if (before + static_cast<long>(size) < plan().at || size == 0) return static_cast<ssize_t>(size);
  say();
  counted = plan().at;  // it stays full
  if (before + 1 < plan().at) return plan().at - 1 - before;
  errno = plan().error;
  return -1;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, std::size_t size) {
  const ssize_t room = is_under(file) ? room_for(size) : static_cast<ssize_t>(size);
  return room < 0 ? -1 : REAL(write)(file, data, static_cast<std::size_t>(room));
}

ssize_t pwrite(int file, const void* data, std::size_t size, off_t at) {
  const ssize_t room = is_under(file) ? room_for(size) : static_cast<ssize_t>(size);
  return room < 0 ? -1 : REAL(pwrite)(file, data, static_cast<std::size_t>(room), at);
}

ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t at) {
  return pwrite(file, data, size, at);
}

/// One part, where it is counted: as short as a write may be.
ssize_t writev(int file, const iovec* parts, int count) {
  if (!is_under(file)) return REAL(writev)(file, parts, count);
  while (count > 1 && parts->iov_len == 0) ++parts, --count;
  return write(file, parts->iov_base, parts->iov_len);
}

/// glibc's own streams call its own write(), which cannot be replaced: a stream of ours does.
std::FILE* fdopen(int file, const char* mode) {
  if (!is_under(file)) return REAL(fdopen)(file, mode);
  const cookie_io_functions_t calls{
      .read = [](void* cookie, char* data, std::size_t size) -> ssize_t {
        return read(static_cast<int>(reinterpret_cast<long>(cookie)), data, size);
      },
      .write = [](void* cookie, const char* data, std::size_t size) -> ssize_t {
        std::size_t done = 0;  // as glibc: until all is written or it fails, which is less than all
        while (done < size) {
          const ssize_t more =
              write(static_cast<int>(reinterpret_cast<long>(cookie)), data + done, size - done);
          if (more < 0) break;
          done += static_cast<std::size_t>(more);
        }
        return static_cast<ssize_t>(done);
      },
      .seek = nullptr,
      .close = [](void* cookie) { return close(static_cast<int>(reinterpret_cast<long>(cookie))); },
  };
  return fopencookie(reinterpret_cast<void*>(static_cast<long>(file)), mode, calls);
}

int fsync(int file) { return is_under(file) && fails("sync") ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return is_under(file) && fails("sync") ? -1 : REAL(fdatasync)(file); }

int close(int file) {
  const int how = fcntl(file, F_GETFL);
  const bool failing =
      how >= 0 && (how & O_ACCMODE) != O_RDONLY && is_under(file) && fails("close");
  const int error = errno;
  const int done = REAL(close)(file);
  if (!failing) return done;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) {
  return is_under_folder_of(to) && fails("rename") ? -1 : REAL(rename)(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned how) {
  return is_under_folder_of(to) && fails("rename")
             ? -1
             : REAL(renameat2)(from_folder, from, to_folder, to, how);
}

int mkdir(const char* path, mode_t mode) {
  return is_under_folder_of(path) && fails("mkdir") ? -1 : REAL(mkdir)(path, mode);
}

int ftruncate(int file, off_t size) {
  return is_under(file) && fails("truncate") ? -1 : REAL(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int open(const char* path, int how, ...) {
  va_list more;
  va_start(more, how);
  const mode_t mode = (how & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((how & O_ACCMODE) == O_RDONLY) before_reading(path);
  if ((how & O_ACCMODE) != O_RDONLY && is_under_folder_of(path) && fails("open")) return -1;
  static const auto open_really =
      reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(RTLD_NEXT, "open"));
  return open_really(path, how, mode);
}

/// Of what std::ifstream opens.
std::FILE* fopen(const char* path, const char* mode) {
  before_reading(path);
  return REAL(fopen)(path, mode);
}
std::FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

int open64(const char* path, int how, ...) {
  va_list more;
  va_start(more, how);
  const mode_t mode = (how & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open(path, how | O_LARGEFILE, mode);
}

}  // extern "C"
