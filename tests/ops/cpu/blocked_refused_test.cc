// Claim: calls on blocked images that no kernel can serve are refused with a message that says what
// is wrong, and windows that lie mostly in the padding agree with the reference without holding it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "ops/cpu/cpu_kernels.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

// What a file may ask for: each would lead a kernel out of bounds.
class RefusedTest : public ::testing::Test {
 protected:
  TestTensor tensor(const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random_, -1, 1);
  }
  OpCall conv(Attributes attributes, std::vector<TestValue> inputs) {
    OpCall call;
    call.op = "BlockedConv";
    call.domain = "eddy";
    call.attributes = std::move(attributes);
    call.inputs = std::move(inputs);
    return call;
  }
  static std::string message(const OpCall& call) {
    const auto types = infer_op(call);
    EXPECT_FALSE(types.is_ok());
    return types.is_ok() ? std::string() : types.status().to_string();
  }

  Random random_{1};
};

TEST_F(RefusedTest, ConvolutionsOfImagesAndWeightsThatDoNotFit) {
  const Attributes four{{"block", int64_t{4}}};
  EXPECT_THAT(message(conv(four, {tensor({1, 2, 5, 5}), tensor({4, 8, 3, 3})})),
              HasSubstr("5 dimensions"));
  EXPECT_THAT(message(conv(four, {tensor({1, 3, 5, 5, 4}), tensor({4, 8, 3, 3})})),
              HasSubstr("takes 8 channels"));
  EXPECT_THAT(message(conv({{"block", int64_t{4}}, {"group", int64_t{3}}},
                           {tensor({1, 2, 5, 5, 4}), tensor({4, 8, 3, 3})})),
              HasSubstr("3 groups"));
  EXPECT_THAT(message(conv({{"block", int64_t{4}}, {"group", int64_t{1} << 62}},
                           {tensor({1, 2, 5, 5, 4}), tensor({0, 8, 3, 3})})),
              HasSubstr("group is too large"));
  for (const int64_t block : {int64_t{0}, int64_t{-4}, int64_t{65}}) {
    EXPECT_THAT(message(conv({{"block", block}}, {tensor({1, 1, 5, 5, 4}), tensor({4, 4, 1, 1})})),
                HasSubstr("block must be from 1 to 64"));
    EXPECT_THAT(message(conv({{"block", int64_t{4}}, {"x_block", block}},
                             {tensor({1, 1, 5, 5, 0}), tensor({4, 4, 1, 1})})),
                HasSubstr("x_block must be from 1 to 64"));
  }
}

TEST_F(RefusedTest, BiasesAddendsAndBoundsThatAreTooFewAndNoActivation) {
  const Attributes four{{"block", int64_t{4}}};
  const TestTensor x = tensor({1, 2, 5, 5, 4}), w = tensor({7, 8, 1, 1});
  EXPECT_THAT(message(conv(four, {x, w, tensor({3})})), HasSubstr("B of shape [3] must be [7]"));
  EXPECT_THAT(message(conv(four, {x, w, TestValue::omitted(), tensor({1, 2, 5, 4, 4})})),
              HasSubstr("the addend must have the shape of the result"));
  EXPECT_THAT(message(conv(four, {x, w, TestValue::omitted(), tensor({4})})),
              HasSubstr("the addend must have the shape of the result"));
  EXPECT_THAT(message(conv({{"block", int64_t{4}}, {"clamp", std::vector<float>{1}}}, {x, w})),
              HasSubstr("not 1 values"));
  EXPECT_THAT(
      message(conv({{"block", int64_t{4}}, {"activation", std::string("Softmax")}}, {x, w})),
      HasSubstr("activation must be an operator of one float, not 'Softmax'"));
}

TEST_F(RefusedTest, PoolsWithoutAWindowAndChannelsThatAreNotThere) {
  OpCall pool;
  pool.op = "BlockedPool";
  pool.domain = "eddy";
  pool.attributes = {{"block", int64_t{4}}, {"kind", std::string("max")}};
  pool.inputs = {tensor({1, 1, 2, 2, 4})};
  EXPECT_THAT(message(pool), HasSubstr("kernel_shape is missing"));
  pool.attributes.set("kernel_shape", Ints{1, 1});
  pool.attributes.set("pads", Ints{1, 1, 1, 1});
  EXPECT_THAT(message(pool), HasSubstr("must be smaller than the window"));
  pool.attributes.set("kind", std::string("sum"));
  EXPECT_THAT(message(pool), HasSubstr("not 'sum'"));

  OpCall back;
  back.op = "UnblockChannels";
  back.domain = "eddy";
  for (const auto& [channels, dims] :
       {std::pair{int64_t{9}, Dims{1, 2, 3, 3, 4}}, std::pair{int64_t{8}, Dims{1, 2, 3, 3, 0}},
        std::pair{INT64_MAX, Dims{1, 2, 3, 3, 4}}, std::pair{int64_t{0}, Dims{1, 0, 3, 3, 4}},
        std::pair{int64_t{8}, Dims{1, 8, 3, 3}}}) {
    back.attributes = {{"channels", channels}};
    back.inputs = {tensor(dims)};
    EXPECT_THAT(message(back), HasSubstr("are not in the blocks of"));
  }
}

// The process gets at most this much more memory while the object lives. Sanitizers have address
// space of their own to map, and no limit.
class MemoryLimit {
 public:
  explicit MemoryLimit([[maybe_unused]] uint64_t more_bytes) {
#ifndef EDDY_SANITIZER
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    EXPECT_GT(pages, 0u);
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<uint64_t>(getpagesize()) + more_bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
#endif
  }
  ~MemoryLimit() {
#ifndef EDDY_SANITIZER
    EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0);
#endif
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  [[maybe_unused]] rlimit before_{};
};

// Windows of 3,600,120,001 taps over four elements: 14 GB, were the padding held.
TEST_F(RefusedTest, WindowsOfPaddingAgreeWithoutMemoryForIt) {
  const MemoryLimit limit(64 << 20);
  for (const int64_t block : {channels_in_block(), int64_t{3}}) {
    OpCall pool;
    pool.op = "BlockedPool";
    pool.domain = "eddy";
    pool.attributes = {{"block", block},
                       {"kind", std::string("average")},
                       {"count_include_pad", int64_t{1}},
                       {"kernel_shape", Ints{60001, 60001}},
                       {"pads", Ints{30000, 30000, 30000, 30000}}};
    pool.inputs = {tensor({1, 1, 2, 2, block})};
    compare_with_reference(pool, 1e-5, 1e-12);
  }
}

}  // namespace
}  // namespace eddy::testing
