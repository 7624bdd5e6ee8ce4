// The bytes of a trace or log, unpacked where the file is gzip. Knows no format.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace stepcast::validate {

/// Read through std::istream, so files larger than the memory pass. A file that cannot be read, or
/// whose gzip data is damaged or cut off, is an InputError; so is one that unpacks to far more than
/// a trace would, made to fill the memory.
class TraceFile : public std::streambuf {
 public:
  explicit TraceFile(const std::string& path);

  /// The unpacked bytes that come next, as many as are at hand; empty at the end.
  std::string_view ahead();
  /// What `ahead` gives, and consumes them.
  std::string_view take();
  /// Whether the file is gzip.
  bool packed() const { return gzdirect(file_.get()) == 0; }

 protected:
  int_type underflow() override;

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::array<char, 1 << 16> buffer_{};
  std::int64_t before_ = 0;  // bytes before the buffer
  std::int64_t most_ = 0;    // bytes that a packed file may have
};

}  // namespace stepcast::validate
