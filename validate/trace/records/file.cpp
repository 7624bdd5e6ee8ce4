#include "validate/trace/records/file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/check.hpp"
#include "sim/files/budget.hpp"
#include "sim/files/input_file.hpp"

namespace stepcast::validate {
namespace {

/// However small the file is: as much as takes no time. Traces of profilers are packed 10 to 50
/// fold.
constexpr std::int64_t always_read = 64 << 20;

}  // namespace

TraceFile::TraceFile(const std::string& path) : path_(path) {
  if (std::filesystem::is_directory(path))
    throw InputError(path, "is a directory", "name the files, one per rank");
  const int opened = sim::open_input(path);
  file_.reset(gzdopen(opened, "rb"));
  if (!file_) {
    close(opened);
    throw InputError(path, "cannot be read: no memory");
  }
  gzbuffer(file_.get(), 1 << 18);
  std::error_code error;
  most_ =
      std::max(always_read, sim::budget.inflation *
                                static_cast<std::int64_t>(std::filesystem::file_size(path, error)));
}

TraceFile::int_type TraceFile::underflow() {
  if (gptr() == egptr()) {
    before_ += egptr() - eback();
    const int got = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      const std::string what = code == Z_ERRNO ? std::strerror(errno) : message;
      throw InputError(path_ + ":byte " + std::to_string(before_) + " unpacked",
                       code == Z_BUF_ERROR ? "the gzip data ends too early" : "damaged: " + what,
                       "copy the file again");
    }
    if (before_ + got > most_ && packed())
      throw InputError(path_,
                       fmt::format("unpacks to more than {} times its size, as no profiler's "
                                   "trace does",
                                   sim::budget.inflation),
                       "if it is one: gunzip " + path_);
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  }
  return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

std::string_view TraceFile::ahead() {
  underflow();
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

std::string_view TraceFile::take() {
  const std::string_view out = ahead();
  gbump(static_cast<int>(out.size()));
  return out;
}

}  // namespace stepcast::validate
