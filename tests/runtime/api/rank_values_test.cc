// Claim: values of every kind come over from rank 0 to all ranks, and from all ranks to rank 0, as
// they were; a rank that fails is named on all of them, and the next exchange works; bytes that are
// no values are refused.
#include "runtime/api/rank_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "graph/base/random.h"
#include "runtime/net/virtual_net.h"

namespace eddy {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const Tensor& value) { return write_values({{"", value}}); }

NamedTensors all_kinds(float first) {
  std::vector<std::string> texts = {"", "a\0b", "drei"};
  const int64_t three[] = {3};
  return {{"x", Tensor::of<float>({2, 2}, {first, 2, 3, 4})},
          {"empty", Tensor::zeros(ElementType::kInt64, Dims{0, 5})},
          {"scalar", Tensor::scalar<int64_t>(-7)},
          {"half", Tensor::zeros(ElementType::kBfloat16, Dims{3})},
          {"texts", Tensor::copy_of({texts.data(), three, 1, ElementType::kString})},
          {"none", Tensor()},
          {"list", Tensor::sequence(ElementType::kFloat, {Tensor::of<float>({1}, {first}),
                                                          Tensor::of<float>({2}, {5, 6})})},
          {"no list", Tensor::sequence(ElementType::kFloat, {})}};
}

void expect_equal(const NamedTensors& found, const NamedTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_EQ(found[i].second.kind(), expected[i].second.kind()) << expected[i].first;
    EXPECT_EQ(bytes_of(found[i].second), bytes_of(expected[i].second)) << expected[i].first;
  }
}

// Each rank on a thread of its own.
void on_ranks(uint32_t num_ranks, const std::function<void(World&)>& work) {
  const auto net = VirtualNet::create({.num_ranks = num_ranks, .seed = 5});
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < num_ranks; ++r) {
    threads.emplace_back([&, r] { work(*World::open(net->transport(r))); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RankValues, OfRankZeroComeToAll) {
  on_ranks(3, [](World& world) {
    const auto own = static_cast<float>(world.rank());
    const auto found = spread_values(world, all_kinds(own));
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    expect_equal(*found, all_kinds(0));
  });
}

TEST(RankValues, OfAllRanksComeToRankZero) {
  on_ranks(3, [](World& world) {
    const auto found = gather_values(world, all_kinds(static_cast<float>(world.rank())));
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), world.rank() == 0 ? 3u : 0u);
    for (size_t r = 0; r < found->size(); ++r) {
      expect_equal((*found)[r], all_kinds(static_cast<float>(r)));
    }
  });
}

TEST(RankValues, ARankThatFailsIsNamedOnAll) {
  for (const uint32_t failing : {0u, 2u}) {
    on_ranks(3, [failing](World& world) {
      Result<NamedTensors> own = NamedTensors();
      if (world.rank() == failing) own = not_found("there is no x.npy");
      for (int i = 0; i < 2; ++i) {
        const Status status =
            i == 0 ? spread_values(world, own).status() : gather_values(world, own).status();
        EXPECT_EQ(status.code(), StatusCode::kNotFound);
        EXPECT_EQ(status.message(), "rank " + std::to_string(failing) + ": there is no x.npy");
      }
      EXPECT_TRUE(spread_values(world, NamedTensors()).is_ok());
    });
  }
}

TEST(RankValues, BytesThatAreNoneAreRefused) {
  const std::string whole = write_values(all_kinds(1));
  ASSERT_TRUE(read_values(whole).is_ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(read_values(whole.substr(0, length)).is_ok()) << length;
  }
  EXPECT_FALSE(read_values(whole + "x").is_ok());
  // Any byte may be another: read or refused, nothing else.
  Random random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string spoilt = whole;
    spoilt[random.below(spoilt.size())] = static_cast<char>(random.below(256));
    const auto read = read_values(spoilt);
    if (!read.is_ok()) {
      EXPECT_EQ(read.status().code(), StatusCode::kInternal);
    }
  }
}

}  // namespace
}  // namespace eddy
