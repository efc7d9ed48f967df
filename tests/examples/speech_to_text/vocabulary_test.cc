// Claim: tokens become the text that their pieces and bytes spell, always valid UTF-8, and neither
// a wrong file nor a wrong token gives more than an error.
#include "examples/speech_to_text/vocabulary.h"

#include <gtest/gtest.h>

#include "graph/base/random.h"

namespace eddy::speech {
namespace {

// Tokens 3 to 258 are the bytes; then words.
constexpr int64_t kFirstByte = 3;
constexpr int64_t kFirstWord = kFirstByte + 256;

Vocabulary vocabulary(const std::string& words) {
  std::string lines = "<unk>\n<s>\n</s>\n";
  for (int byte = 0; byte < 256; ++byte) {
    char token[8];
    std::snprintf(token, sizeof token, "<0x%02X>\n", byte);
    lines += token;
  }
  auto made = Vocabulary::parse(lines + words);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return std::move(*made);
}

std::string text(const Vocabulary& vocabulary, const std::vector<int64_t>& tokens) {
  const auto result = vocabulary.text(tokens);
  EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  return result.is_ok() ? *result : "";
}

TEST(Vocabulary, WordsAreJoinedWithTheirSpaces) {
  const Vocabulary v = vocabulary("\u2581Front\n,\n\u2581center\n.\na\u2581\u2581b");
  const int64_t w = kFirstWord;
  EXPECT_EQ(text(v, {w, w + 1, w + 2, w + 3, 2}), "Front, center.");
  EXPECT_EQ(text(v, {1, w + 2, w}), "center Front");
  EXPECT_EQ(text(v, {w + 4}), "a  b");
  EXPECT_EQ(text(v, {}), "");
  EXPECT_EQ(text(v, {0, 1, 2}), "");
}

TEST(Vocabulary, BytesAreJoinedToCharacters) {
  const Vocabulary v = vocabulary("\u2581x");
  const auto bytes = [&](std::initializer_list<int> values) {
    std::vector<int64_t> tokens;
    for (int value : values) tokens.push_back(kFirstByte + value);
    return text(v, tokens);
  };
  EXPECT_EQ(bytes({'h', 'i', '\n'}), "hi\n");
  EXPECT_EQ(bytes({0xe6, 0x94, 0xb6}), "\u6536");
  EXPECT_EQ(bytes({0xf0, 0x9f, 0x98, 0x80}), "\U0001F600");
  EXPECT_EQ(bytes({0xe6, 0x94}), "\uFFFD\uFFFD");
  EXPECT_EQ(bytes({0xff, 'a'}), "\uFFFDa");
  EXPECT_EQ(bytes({0xc0, 0xaf}), "\uFFFD\uFFFD") << "longer than needed";
  EXPECT_EQ(bytes({0xed, 0xa0, 0x80}), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
}

TEST(Vocabulary, WhatOnlyLooksLikeAByteIsText) {
  EXPECT_EQ(text(vocabulary("<0xZZ>"), {kFirstWord}), "<0xZZ>");
  EXPECT_EQ(text(vocabulary("<0x4>"), {kFirstWord}), "<0x4>");
}

TEST(Vocabulary, WrongFilesAndTokensAreNamed) {
  const auto message = [](const std::string& lines) {
    return Vocabulary::parse(lines).status().message();
  };
  EXPECT_NE(message("").find("line 1 is not '<unk>'"), std::string::npos) << message("");
  EXPECT_NE(message("<unk>\n<s>").find("fewer than three"), std::string::npos);
  EXPECT_NE(message("<unk>\nx\n</s>").find("line 2 is not '<s>'"), std::string::npos);
  const Vocabulary v = vocabulary("x");
  for (const int64_t token : {int64_t{-1}, kFirstWord + 1, INT64_MAX, INT64_MIN}) {
    const auto result = v.text(std::vector<int64_t>{1, token});
    ASSERT_FALSE(result.is_ok()) << token;
    EXPECT_NE(result.status().message().find("no token " + std::to_string(token)),
              std::string::npos);
  }
  const auto missing = Vocabulary::read("no/such/tokens.txt");
  ASSERT_FALSE(missing.is_ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("no/such/tokens.txt"), std::string::npos);
}

TEST(Vocabulary, AnyBytesOfAFileGiveAVocabularyOrAnError) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    std::string lines = "<unk>\n<s>\n</s>\n<0x41>\n\u2581word\nend";
    for (uint64_t i = 0; i <= random.below(4); ++i) {
      lines[random.below(lines.size())] = static_cast<char>(random.below(256));
    }
    const auto made = Vocabulary::parse(lines);
    if (!made.is_ok()) {
      EXPECT_FALSE(made.status().message().empty()) << "seed " << seed;
      continue;
    }
    for (int64_t token = 0; token < 8; ++token) {
      (void)made->text(std::vector<int64_t>{token});  // text or an error, never more
    }
  }
}

}  // namespace
}  // namespace eddy::speech
