// gzip, for files that other tools open packed (.json.gz). Knows no format.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// Packs a text part by part into one gzip member.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  /// What is ready by now.
  std::string pack(std::string_view text) { return run(text, false); }
  std::string finish() { return run({}, true); }

 private:
  std::string run(std::string_view text, bool last);
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// The text as one gzip member; the same bytes for the same text.
std::string gzip(std::string_view text);

/// A whole file, unpacked where it is gzip. Throws InputError where it cannot be read or is
/// damaged.
std::string read_packed(const std::string& path);

}  // namespace stepcast::sim
