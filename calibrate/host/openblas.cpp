#include "calibrate/host/openblas.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

/// Of address space: what each of OpenBLAS's threads asks for (0.3.21: 128 MiB, and a stack).
constexpr std::size_t room_of_thread = std::size_t{136} << 20;

std::size_t address_space_used() {
  char text[32] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const bool told = file >= 0 && read(file, text, sizeof text - 1) > 0;
  if (file >= 0) close(file);
  return told ? std::strtoul(text, nullptr, 10) * static_cast<std::size_t>(getpagesize()) : 0;
}

/// Under a limit that is too low OpenBLAS asks again and again for what it will not get, already
/// while it is loaded.
void refuse_little_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto threads = static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)) + 1;
  const std::size_t wanted = address_space_used() + threads * room_of_thread;
  if (limit.rlim_cur >= wanted) return;
  throw InputError("OpenBLAS",
                   "wants an address space of " + std::to_string(wanted >> 20U) +
                       " MiB, the limit is " + std::to_string(limit.rlim_cur >> 20U) + " MiB",
                   "raise it (ulimit -v)");
}

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

std::optional<OpenBlas> load() {
  refuse_little_room();
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  OpenBlas out;
  void (*use_threads)(int) = nullptr;
  if (!find(library, "cblas_sgemm", out.sgemm) || !find(library, "cblas_dgemm", out.dgemm) ||
      !find(library, "openblas_get_config", out.config) ||
      !find(library, "openblas_get_corename", out.core_name) ||
      !find(library, "openblas_set_num_threads", use_threads))
    return {};
  use_threads(1);
  return out;
}

}  // namespace

const OpenBlas* openblas() {
  static const std::optional<OpenBlas> library = load();
  return library ? &*library : nullptr;
}

}  // namespace stepcast::calibrate::host
