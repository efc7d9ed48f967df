// Claim: text is clean UTF-8 exactly where a decoder of one letter at a time says so, on printed
// seeds, wherever in a word of eight bytes the letter that decides stands.
#include "graph/io/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "graph/base/random.h"

namespace eddy {
namespace {

// As the Unicode standard has it, by code points.
bool is_clean_slowly(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length == 0 || lead >= 0xf8 || i + length > text.size()) return false;
    uint32_t point = length == 1 ? lead : lead & (0xffu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 0x3f);
    }
    const uint32_t least = length == 1 ? 0x20 : length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
    if (point < least || point == 0x7f || point > 0x10ffff) return false;
    if (point >= 0xd800 && point < 0xe000) return false;
    i += length;
  }
  return true;
}

TEST(TextTest, EveryByteInEveryPlaceOfAWord) {
  for (size_t size = 1; size < 20; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, '~');
        text[at] = static_cast<char>(byte);
        ASSERT_EQ(is_clean_utf8(text), is_clean_slowly(text)) << byte << " at " << at;
      }
    }
  }
}

TEST(TextTest, WhatIsNotCleanIsReplacedByteByByte) {
  EXPECT_EQ(as_clean_utf8(""), "");
  EXPECT_EQ(as_clean_utf8("a\u20ac/b"), "a\u20ac/b");
  EXPECT_EQ(as_clean_utf8("a\xff"
                          "b\n"),
            "a\ufffd"
            "b\ufffd");
  EXPECT_EQ(as_clean_utf8("\xe2\x82"), "\ufffd\ufffd") << "cut off";
  EXPECT_EQ(as_clean_utf8("\xc0\xaf"), "\ufffd\ufffd") << "too long a form";
  EXPECT_EQ(as_clean_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd") << "half a pair";
}

TEST(TextTest, AsTheSlowDecoder) {
  size_t num_clean = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random(seed);
    std::string text;
    const size_t count = random.below(12);
    for (size_t i = 0; i < count; ++i) {
      static const char* const kPieces[] = {"a", "/layer.0", "\u00e9", "\u20ac", "\U0001f600"};
      text += kPieces[random.below(5)];
      if (random.below(12) == 0) text += static_cast<char>(random.below(256));
    }
    ASSERT_EQ(is_clean_utf8(text), is_clean_slowly(text)) << "seed " << seed;
    const std::string clean = as_clean_utf8(text);
    ASSERT_TRUE(is_clean_utf8(clean)) << "seed " << seed;
    ASSERT_EQ(clean == text, is_clean_utf8(text)) << "seed " << seed;
    num_clean += is_clean_utf8(text) ? 1 : 0;
  }
  EXPECT_GT(num_clean, 5'000u);
}

}  // namespace
}  // namespace eddy
