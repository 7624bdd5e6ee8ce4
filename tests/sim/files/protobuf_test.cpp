#include "sim/files/protobuf.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <limits>

namespace stepcast::sim {

TEST_CASE("numbers and texts are encoded as the documents of protocol buffers show them") {
  // protobuf.dev/programming-guides/encoding: field 1 = 150 is 08 96 01, field 2 = "testing" is
  // 12 07 and the text, an int32 of -2 takes ten bytes.
  ProtoWriter number;
  number.varint(1, 150);
  CHECK(number.text() == "\x08\x96\x01");
  ProtoWriter text;
  text.bytes(2, "testing");
  CHECK(text.text() == "\x12\x07testing");
  ProtoWriter negative;
  negative.number(1, -2);
  CHECK(negative.text() == "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("fields read back as they were written") {
  ProtoWriter inner, out;
  inner.real(3, 0.1);
  out.number(1, std::numeric_limits<std::int64_t>::min());
  out.varint(536870911, std::numeric_limits<std::uint64_t>::max());
  out.fixed64(4, 0x0102030405060708);
  out.message(5, inner);
  ProtoReader reader(out.text());
  CHECK(reader.next()->whole() == std::numeric_limits<std::int64_t>::min());
  const auto large = reader.next();
  CHECK(large->number == 536870911);
  CHECK(large->value == std::numeric_limits<std::uint64_t>::max());
  CHECK(reader.next()->value == 0x0102030405060708);
  const auto message = reader.next();
  REQUIRE(message->number == 5);
  ProtoReader within(message->text);
  CHECK(within.next()->value == std::bit_cast<std::uint64_t>(0.1));
  CHECK(!reader.next());
  CHECK(!reader.broken());
}

TEST_CASE("a message that ends early is broken, wherever it is cut") {
  ProtoWriter out;
  out.bytes(1, "some text");
  out.fixed64(2, 7);
  out.varint(3, 300);
  const std::string whole = out.text();
  const std::size_t ends[] = {11, 20, whole.size()};  // of fields
  for (std::size_t cut = 1; cut <= whole.size(); ++cut) {
    ProtoReader reader(std::string_view(whole).substr(0, cut));
    while (reader.next()) continue;
    INFO(cut);
    CHECK(reader.broken() == (std::count(std::begin(ends), std::end(ends), cut) == 0));
  }
}

}  // namespace stepcast::sim
