#include "sim/files/protobuf.hpp"

#include <bit>

namespace stepcast::sim {

using Wire = ProtoField::Wire;

void ProtoWriter::raw(std::uint64_t value) {
  while (value >= 0x80) {
    out_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out_ += static_cast<char>(value);
}

void ProtoWriter::varint(std::uint32_t field, std::uint64_t value) {
  raw(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(Wire::varint));
  raw(value);
}

void ProtoWriter::fixed64(std::uint32_t field, std::uint64_t value) {
  raw(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(Wire::fixed64));
  for (int byte = 0; byte < 8; ++byte, value >>= 8) out_ += static_cast<char>(value & 0xff);
}

void ProtoWriter::real(std::uint32_t field, double value) {
  fixed64(field, std::bit_cast<std::uint64_t>(value));
}

void ProtoWriter::bytes(std::uint32_t field, std::string_view value) {
  raw(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(Wire::bytes));
  delimited(value);
}

void ProtoWriter::delimited(std::string_view message) {
  raw(message.size());
  out_ += message;
}

std::optional<std::uint64_t> ProtoReader::raw() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (left_.empty()) break;
    const auto byte = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  broken_ = true;
  return std::nullopt;
}

std::optional<std::string_view> ProtoReader::take(std::uint64_t count) {
  if (count > left_.size()) {
    broken_ = true;
    return std::nullopt;
  }
  const std::string_view out = left_.substr(0, count);
  left_.remove_prefix(count);
  return out;
}

std::optional<std::uint64_t> ProtoReader::fixed(std::size_t count) {
  const auto bytes = take(count);
  if (!bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>((*bytes)[i]);
  return value;
}

std::optional<std::string_view> ProtoReader::delimited() {
  if (left_.empty() || broken_) return std::nullopt;
  const auto length = raw();
  return length ? take(*length) : std::nullopt;
}

std::optional<ProtoField> ProtoReader::next() {
  if (left_.empty() || broken_) return std::nullopt;
  const auto tag = raw();
  if (!tag) return std::nullopt;
  ProtoField field{static_cast<std::uint32_t>(*tag >> 3), static_cast<Wire>(*tag & 7)};
  std::optional<std::uint64_t> value = 0;
  switch (field.wire) {
    case Wire::varint:
      value = raw();
      break;
    case Wire::fixed64:
      value = fixed(8);
      break;
    case Wire::fixed32:
      value = fixed(4);
      break;
    case Wire::bytes: {
      const auto text = delimited();
      broken_ = broken_ || !text;
      field.text = text.value_or("");
      break;
    }
    default:
      broken_ = true;
  }
  if (!value || broken_ || field.number == 0) {
    broken_ = true;
    return std::nullopt;
  }
  field.value = *value;
  return field;
}

}  // namespace stepcast::sim
