// What WASI's C library and libc++ 19 lack of POSIX and C++17. The preset wasm includes it before
// all else; it is no part of the native programs. There is no other process: whoever asks for one
// hears that it is not there.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>

inline constexpr unsigned RENAME_EXCHANGE = 2;

struct winsize {  // of a terminal: there is none, ioctl() refuses to say
  unsigned short ws_row, ws_col;
};
inline constexpr int TIOCGWINSZ = 0x5413;

inline int kill(pid_t /*process*/, int /*signal*/) {
  errno = ESRCH;
  return -1;
}

inline int renameat2(int /*folder*/, const char* /*one*/, int /*folder*/, const char* /*other*/,
                     unsigned /*how*/) {
  errno = ENOSYS;
  return -1;
}

namespace std {  // NOLINT(cert-dcl58-cpp): the overload that the standard has there

/// By strtod(), which knows more spellings: a sign +, space and hexadecimal digits are no number
/// here.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const std::string_view text(first, static_cast<std::size_t>(last - first));
  const std::string_view unsigned_text = text.substr(text.starts_with('-') ? 1 : 0);
  const bool begins_well =
      !unsigned_text.empty() &&
      std::string_view("+- \t\n\v\f\r").find(unsigned_text.front()) == std::string_view::npos;
  if (!begins_well) return {first, errc::invalid_argument};
  const std::size_t hexadecimal = unsigned_text.find_first_of("xX");
  const std::size_t sign = text.size() - unsigned_text.size();
  const std::string word(text.substr(0, hexadecimal == 1 ? sign + 1 : std::string_view::npos));
  char* end = nullptr;
  const double number = ::strtod(word.c_str(), &end);
  if (end == word.c_str()) return {first, errc::invalid_argument};
  const char* const stop = first + (end - word.c_str());
  const bool says_infinity = unsigned_text.front() == 'i' || unsigned_text.front() == 'I';
  const bool has_digits = std::string_view(word)
                              .substr(0, std::string_view(word).find_first_of("eE"))
                              .find_first_of("123456789") != std::string_view::npos;
  if ((std::isinf(number) && !says_infinity) || (number == 0 && has_digits))
    return {stop, errc::result_out_of_range};
  value = number;
  return {stop, errc{}};
}

}  // namespace std
