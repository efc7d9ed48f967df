// Claim: fingerprints of different things differ, those of the same thing are the same, in every
// process and every version.
#include "graph/base/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "graph/base/random.h"

namespace eddy {
namespace {

std::string of(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.add(text);
  return fingerprint.text();
}

TEST(Fingerprint, IsTheSameForEver) {
  EXPECT_EQ(Fingerprint().text(), Fingerprint().text());
  EXPECT_EQ(of("eddy"), of(std::string("ed") + "dy"));
  EXPECT_EQ(of("eddy"), "e5938eec1e574de5ca263ee3da217cbe");
}

TEST(Fingerprint, WhereOnePartEndsMatters) {
  Fingerprint a, b;
  a.add("ab"), a.add("c");
  b.add("a"), b.add("bc");
  EXPECT_NE(a.text(), b.text());
  EXPECT_NE(of(""), Fingerprint().text());
  EXPECT_NE(of(std::string_view("\0", 1)), of(""));
}

TEST(Fingerprint, EveryBitOfALongTextMatters) {
  Random random(1);
  std::string bytes;
  for (int i = 0; i < 3 * 64 + 3; ++i) bytes += static_cast<char>(random.below(256));
  std::set<std::string> seen = {of(bytes)};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(of(changed)).second) << "seed 1, bit " << bit;
  }
}

TEST(Fingerprint, BlocksAndWordsInAnotherOrderDiffer) {
  Random random(2);
  std::vector<uint64_t> words(64);
  for (uint64_t& word : words) word = random.below(1000);
  const auto text_of = [](const std::vector<uint64_t>& data) {
    return of({reinterpret_cast<const char*>(data.data()), data.size() * sizeof(uint64_t)});
  };
  std::set<std::string> seen = {text_of(words)};
  std::set<std::vector<uint64_t>> given = {words};
  for (size_t a = 0; a < words.size(); ++a) {
    for (size_t b = a + 1; b < words.size(); ++b) {
      std::vector<uint64_t> swapped = words;
      std::swap(swapped[a], swapped[b]);
      if (!given.insert(swapped).second) continue;
      EXPECT_TRUE(seen.insert(text_of(swapped)).second) << "seed 2, words " << a << ", " << b;
    }
  }
}

TEST(Fingerprint, LongRunsOfZerosDifferByTheirLength) {
  std::set<std::string> seen;
  for (size_t size = 0; size < 1000; ++size) {
    EXPECT_TRUE(seen.insert(of(std::string(size, '\0'))).second) << size;
  }
}

TEST(Fingerprint, NumbersInAnotherOrderDiffer) {
  std::set<std::string> seen;
  std::vector<uint64_t> words = {0, 0, 1, 2, ~uint64_t{0}};
  do {
    Fingerprint fingerprint;
    for (const uint64_t word : words) fingerprint.add(word);
    EXPECT_TRUE(seen.insert(fingerprint.text()).second);
  } while (std::next_permutation(words.begin(), words.end()));
}

// The halves of 64 bits would collide among so many only with odds of one in 10^8.
TEST(Fingerprint, ManyNumbersHaveManyHalves) {
  std::set<std::string> left, right;
  for (uint64_t i = 0; i < 100'000; ++i) {
    Fingerprint fingerprint;
    fingerprint.add(i << 40);
    const std::string text = fingerprint.text();
    left.insert(text.substr(0, 16));
    right.insert(text.substr(16));
  }
  EXPECT_EQ(left.size(), 100'000u);
  EXPECT_EQ(right.size(), 100'000u);
}

}  // namespace
}  // namespace eddy
