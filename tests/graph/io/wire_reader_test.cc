// Claim: WireReader reads every wire type that WireWriter writes, and no byte string makes it
// read outside its span or go on after an error.
#include "graph/io/wire_reader.h"

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/io/wire_writer.h"
#include "tests/graph/io/model_writer.h"

namespace eddy {
namespace {

using test::as_bytes;

TEST(WireReader, ReadsBackWhatTheWriterWrote) {
  WireWriter writer;
  writer.integer(1, -1);
  writer.float32(2, 1.5f);
  writer.bytes(3000, "text");
  WireReader reader(as_bytes(writer.data()), 100);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.type(), WireType::kVarint);
  EXPECT_EQ(static_cast<int64_t>(reader.number()), -1);
  EXPECT_EQ(reader.offset(), 100u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.type(), WireType::kFixed32);
  EXPECT_EQ(reader.number(), 0x3fc00000u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 3000u);
  EXPECT_EQ(reader.bytes().size(), 4u);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_ok());
}

void expect_error(std::string_view bytes, std::string_view part) {
  WireReader reader(as_bytes(bytes));
  while (reader.next()) {
  }
  ASSERT_FALSE(reader.is_ok());
  EXPECT_NE(std::string_view(reader.error()).find(part), std::string_view::npos) << reader.error();
  EXPECT_FALSE(reader.next());
}

TEST(WireReader, AVarintOfElevenBytesIsRefused) {
  expect_error(std::string("\x08") + std::string(10, '\xff') + '\x01', "64 bits");
}

TEST(WireReader, AVarintThatOverflowsInItsTenthByteIsRefused) {
  expect_error(std::string("\x08") + std::string(9, '\xff') + '\x02', "64 bits");
}

TEST(WireReader, ACutVarintIsRefused) { expect_error("\x08\xff", "ends inside"); }

TEST(WireReader, ACutFixedNumberIsRefused) { expect_error("\x0d\x01\x02", "ends inside"); }

TEST(WireReader, ALengthBeyondTheEndIsRefused) {
  expect_error(
      "\x0a\x05"
      "abc",
      "longer than");
}

TEST(WireReader, AHugeLengthIsRefused) {
  expect_error(std::string("\x0a") + std::string(9, '\xff') + '\x01', "longer than");
}

TEST(WireReader, GroupsAndFieldZeroAreRefused) {
  expect_error("\x0b", "not a field tag");
  expect_error(std::string_view("\x00\x00", 2), "not a field tag");
}

TEST(WireReader, RandomBytesEndOrFail) {
  constexpr uint64_t kSeed = 1;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random.below(40), '\0');
    for (char& c : bytes) c = static_cast<char>(random.below(256));
    WireReader reader(as_bytes(bytes));
    size_t fields = 0;
    while (reader.next()) ++fields;
    EXPECT_LE(fields, bytes.size());
  }
}

TEST(PackedReader, ReadsNumbersAndRefusesACutOne) {
  PackedReader whole(as_bytes(std::string_view("\x01\xac\x02", 3)));
  uint64_t value = 0;
  ASSERT_TRUE(whole.next(&value));
  EXPECT_EQ(value, 1u);
  ASSERT_TRUE(whole.next(&value));
  EXPECT_EQ(value, 300u);
  EXPECT_FALSE(whole.next(&value));
  EXPECT_TRUE(whole.is_ok());
  PackedReader cut(as_bytes("\xac"));
  EXPECT_FALSE(cut.next(&value));
  EXPECT_FALSE(cut.is_ok());
}

}  // namespace
}  // namespace eddy
