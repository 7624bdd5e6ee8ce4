#include "sim/files/gzip.hpp"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/budget.hpp"
#include "sim/files/input_file.hpp"

namespace stepcast::sim {

struct Gzip::Stream {
  z_stream z{};
};

Gzip::Gzip() : stream_(std::make_unique<Stream>()) {
  constexpr int with_gzip_header = 15 + 16, memory_level = 8;
  const int begun = deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header,
                                 memory_level, Z_DEFAULT_STRATEGY);
  expects(begun == Z_OK, "memory to pack a file");
}

Gzip::~Gzip() { deflateEnd(&stream_->z); }

std::string Gzip::run(std::string_view text, bool last) {
  z_stream& z = stream_->z;
  std::string out;
  std::array<char, 1 << 16> buffer{};
  int state = Z_OK;
  do {
    if (z.avail_in == 0) {
      const auto part = std::min<std::size_t>(text.size(), std::numeric_limits<int>::max());
      // zlib reads only, but its C type has no const.
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
      z.avail_in = static_cast<uInt>(part);
      text.remove_prefix(part);
    }
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = static_cast<uInt>(buffer.size());
    state = deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - z.avail_out);
  } while (last ? state != Z_STREAM_END : z.avail_in > 0 || !text.empty() || z.avail_out == 0);
  return out;
}

std::string gzip(std::string_view text) {
  Gzip packer;
  std::string out = packer.pack(text);
  return out + packer.finish();
}

std::string read_packed(const std::string& path) {
  const int opened = open_input(path);
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzdopen(opened, "rb"), gzclose);
  if (!file) {
    close(opened);
    throw InputError(path, "cannot be read: no memory");
  }
  std::string out;
  std::array<char, 1 << 16> buffer{};
  int got = 0;
  while ((got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    if (std::ssize(out) + got > budget.bytes)
      throw InputError(path, "is larger than " + to_text(Bytes(budget.bytes)) + ", unpacked",
                       "cut it: fewer steps or ranks");
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
    throw InputError(path, "the gzip data is damaged or ends too early", "copy the file again");
  return out;
}

}  // namespace stepcast::sim
