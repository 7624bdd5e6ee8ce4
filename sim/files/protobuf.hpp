// The wire format of protocol buffers: what Perfetto's and Chakra's files are made of, without
// protoc and its versions. Fields are written and read by their numbers; a schema is the caller's.
// Source of the encoding: protobuf.dev/programming-guides/encoding (recalled, 2026).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::sim {

/// Fields appended one after the other: the bytes of a message.
class ProtoWriter {
 public:
  void varint(std::uint32_t field, std::uint64_t value);
  /// int32, int64, enums and bools: negative ones as 64 bits.
  void number(std::uint32_t field, std::int64_t value) {
    varint(field, static_cast<std::uint64_t>(value));
  }
  void fixed64(std::uint32_t field, std::uint64_t value);
  void real(std::uint32_t field, double value);
  /// A string, or a message that is already written.
  void bytes(std::uint32_t field, std::string_view value);
  void message(std::uint32_t field, const ProtoWriter& value) { bytes(field, value.text()); }
  /// The length and the bytes of a message in a stream of them.
  void delimited(std::string_view message);

  const std::string& text() const { return out_; }
  void clear() { out_.clear(); }

 private:
  void raw(std::uint64_t value);
  std::string out_;
};

/// One field as it stands there: a number, or bytes that lie in the text that was read.
struct ProtoField {
  std::uint32_t number = 0;
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 } wire{};
  std::uint64_t value = 0;  // of a number
  std::string_view text{};  // of bytes
  std::int64_t whole() const { return static_cast<std::int64_t>(value); }
};

/// Goes through a message field by field. `broken()` after the last one: the bytes are no message,
/// or end too early.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view text) : left_(text) {}
  std::optional<ProtoField> next();
  /// The next message of a stream of them.
  std::optional<std::string_view> delimited();
  /// The next number alone, of a packed list.
  std::optional<std::uint64_t> raw();
  bool broken() const { return broken_; }
  std::size_t bytes_left() const { return left_.size(); }

 private:
  std::optional<std::string_view> take(std::uint64_t count);
  std::optional<std::uint64_t> fixed(std::size_t count);
  std::string_view left_;
  bool broken_ = false;
};

}  // namespace stepcast::sim
