// Claim: the operators on text give what a hand counts: words joined, cut, matched, left out and
// put in one case, grams of words counted and weighed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

TestTensor words(Dims dims, const Words& values) { return TestTensor::of_strings(dims, values); }

void expect_words(const OpCall& call, const Dims& dims, const Words& expected) {
  const TestTensor y = run_one(call, KernelSet::kReference);
  EXPECT_EQ(y.dims(), dims);
  EXPECT_EQ(y.strings(), expected);
}

TEST(StringConcatTest, WordsAreJoinedWithBroadcast) {
  expect_words(make("StringConcat", 20, {words({2, 1}, {"a", ""}), words({2}, {"x", "yz"})}),
               {2, 2}, {"ax", "ayz", "x", "yz"});
}

void expect_parts(const Words& x, Attributes attributes, const Dims& dims, const Words& parts,
                  const Ints& counts) {
  OpCall call = make("StringSplit", 20, {words({static_cast<int64_t>(x.size())}, x)}, attributes);
  call.num_outputs = 2;
  const auto found = run_op(call, KernelSet::kReference);
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  EXPECT_EQ((*found)[0].tensors[0].dims(), dims);
  EXPECT_EQ((*found)[0].tensors[0].strings(), parts);
  EXPECT_EQ((*found)[1].tensors[0].values<int64_t>(), counts);
}

TEST(StringSplitTest, TextsAreCutAtADelimiterOrAtBlanks) {
  expect_parts({"a.com", "c.d.e"}, {{"delimiter", "."}}, {2, 3}, {"a", "com", "", "c", "d", "e"},
               {2, 3});
  expect_parts({"o-n-n--x-", "a"}, {{"delimiter", "-"}, {"maxsplit", 3}}, {2, 4},
               {"o", "n", "n", "-x-", "a", "", "", ""}, {4, 1});
  expect_parts({" two \t words ", "", "  "}, {}, {3, 2}, {"two", "words", "", "", "", ""},
               {2, 0, 0});
  expect_parts({" a b  c "}, {{"maxsplit", 1}}, {1, 2}, {"a", "b  c "}, {2});
  expect_parts({"", "ab"}, {{"delimiter", "ab"}}, {2, 2}, {"", "", "", ""}, {1, 2});
  expect_parts({}, {}, {0, 0}, {}, {});
  const OpCall bad = make("StringSplit", 20, {words({1}, {"a"})}, {{"maxsplit", -1}});
  EXPECT_NE(run_op(bad, KernelSet::kReference).status().to_string().find("'maxsplit' is -1"),
            std::string::npos);
}

TEST(RegexFullMatchTest, TheWholeTextMatches) {
  const auto matches = [](const std::string& pattern, const Words& x) {
    const TestTensor texts = words({static_cast<int64_t>(x.size())}, x);
    return run_op(make("RegexFullMatch", 20, {texts}, {{"pattern", pattern}}), KernelSet::kCpu);
  };
  const auto found = matches("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)",
                             {"account@gmail.com", "account@hotmail.com", "an account@gmail.com"});
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  const auto* y = (*found)[0].tensors[0].view().as<bool>();
  EXPECT_EQ(std::vector<bool>(y, y + 3), (std::vector<bool>{true, false, false}));
  const Status bad = matches("(", {"x"}).status();
  EXPECT_NE(bad.to_string().find("'pattern' is no regular expression of RE2: missing )"),
            std::string::npos)
      << bad.to_string();
}

TEST(StringNormalizerTest, StopwordsAreLeftOutAndLettersChanged) {
  const TestTensor line = words({4}, {"Monday", "tuesday", "MONDAY", "caf\xC3\xA9"});
  Attributes upper = {{"case_change_action", "UPPER"}, {"stopwords", Words{"monday"}}};
  expect_words(make("StringNormalizer", 10, {line}, upper), {2}, {"TUESDAY", "CAF\xC3\x89"});
  upper.set("is_case_sensitive", int64_t{1});
  expect_words(make("StringNormalizer", 10, {line}, upper), {4},
               {"MONDAY", "TUESDAY", "MONDAY", "CAF\xC3\x89"});
  // Of other alphabets, too; one letter for one, and bytes that are no UTF-8 stay.
  expect_words(
      make("StringNormalizer", 10, {words({3}, {"\u0416\u03A9\u00DF", "a\xFF\xC3", "\u00E9T"})},
           {{"case_change_action", "LOWER"}, {"stopwords", Words{"\u00C9t"}}}),
      {2}, {"\u0436\u03C9\u00DF", "a\xFF\xC3"});
  const Attributes none_left = {{"stopwords", Words{"a"}}};
  expect_words(make("StringNormalizer", 10, {words({1, 2}, {"a", "A"})}, none_left), {1, 1}, {""});
}

// Pool: the words 2, 3, 5, 4, then the pairs 5 6, 7 8, 6 7.
Attributes grams(const char* mode, int64_t least, int64_t most, int64_t skips) {
  return {{"mode", mode},
          {"min_gram_length", least},
          {"max_gram_length", most},
          {"max_skip_count", skips},
          {"ngram_counts", Ints{0, 4}},
          {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}},
          {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
}

TEST(TfIdfVectorizerTest, GramsAreCounted) {
  const TestTensor x =
      TestTensor::of<int32_t>({2, 6}, std::vector<int32_t>{1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  const auto expect = [&](const Attributes& attributes, const Floats& expected) {
    const TestTensor y =
        run_one(make("TfIdfVectorizer", 9, {x}, attributes), KernelSet::kReference);
    EXPECT_EQ(y.dims(), (Dims{2, 7}));
    EXPECT_EQ(y.values<float>(), expected);
  };
  expect(grams("TF", 2, 2, 0), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1});
  // With up to three words left out between: 7 . . 8 is found.
  expect(grams("TF", 1, 2, 3), {0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1});
  Attributes weighed = grams("TFIDF", 1, 2, 0);
  weighed.set("weights", Floats{1, 0.5f, 1, 1, 2, 1, 4});
  expect(weighed, {0, 1.5f, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 4});
  weighed.set("mode", "IDF");
  expect(weighed, {0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 4});
}

TEST(TfIdfVectorizerTest, WordsAreText) {
  Attributes attributes = {{"mode", "TF"},
                           {"min_gram_length", int64_t{1}},
                           {"max_gram_length", int64_t{2}},
                           {"max_skip_count", int64_t{0}},
                           {"ngram_counts", Ints{0, 1}},
                           {"ngram_indexes", Ints{1, 0}},
                           {"pool_strings", Words{"b", "a", "b"}}};
  const OpCall call = make("TfIdfVectorizer", 9, {words({3}, {"a", "b", "b"})}, attributes);
  EXPECT_EQ(run_one(call, KernelSet::kReference).values<float>(), (Floats{1, 2}));
  attributes.set("ngram_indexes", Ints{1});
  EXPECT_FALSE(run_op(make("TfIdfVectorizer", 9, {words({3}, {"a", "b", "b"})}, attributes),
                      KernelSet::kReference)
                   .is_ok());
}

}  // namespace
}  // namespace eddy::testing
