#include "sim/files/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "engine/check.hpp"

namespace stepcast::sim {

std::string gzip(std::string_view text) {
  constexpr int with_gzip_header = 15 + 16, memory_level = 8;
  z_stream stream{};
  const int begun = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header,
                                 memory_level, Z_DEFAULT_STRATEGY);
  expects(begun == Z_OK, "memory to pack a file");
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> guard(&stream, deflateEnd);
  std::string out;
  std::array<char, 1 << 16> buffer{};
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const auto part = std::min<std::size_t>(text.size(), std::numeric_limits<int>::max());
      // zlib reads only, but its C type has no const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      stream.avail_in = static_cast<uInt>(part);
      text.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  return out;
}

std::string read_packed(const std::string& path) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw InputError(path, "cannot be read");
  std::string out;
  std::array<char, 1 << 16> buffer{};
  int got = 0;
  while ((got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0)
    out.append(buffer.data(), static_cast<std::size_t>(got));
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
    throw InputError(path, "the gzip data is damaged or ends too early", "copy the file again");
  return out;
}

}  // namespace stepcast::sim
