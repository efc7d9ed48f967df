// Claim: programs of whiles and cases in nests, with collectives inside, give on each rank what all
// ranks in step give (tools/check/rank_program.h), bit for bit, on 2 to 6 ranks, whatever
// order the carrier takes, driven by workers or the host; decisions that are uniform send nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tools/check/rank_graph_maker.h"
#include "tools/check/rank_runner.h"

namespace eddy {
namespace {

using check::RankGraphMaker;
using check::RankOracle;
using check::RankProgram;
using check::RankProgramMaker;
using check::RankRunner;
using check::RankValue;

std::vector<std::vector<RankValue>> random_inputs(const RankProgram& program, Random& random) {
  std::vector<std::vector<RankValue>> inputs(program.num_ranks);
  for (auto& of_rank : inputs) {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      of_rank.push_back(
          {static_cast<int64_t>(random.below(50)), static_cast<int64_t>(random.below(50))});
    }
  }
  return inputs;
}

NamedTensors tensors(const std::vector<RankValue>& values) {
  NamedTensors result;
  for (size_t i = 0; i < values.size(); ++i) {
    result.emplace_back("x" + std::to_string(i),
                        Tensor::of<int64_t>({2}, std::span<const int64_t>(values[i])));
  }
  return result;
}

void check_program(uint64_t seed, bool has_subsets, uint64_t* num_collectives) {
  Random random(seed);
  const auto num_ranks = static_cast<uint32_t>(2 + random.below(5));
  const RankProgram program = RankProgramMaker(seed, num_ranks, has_subsets).make();
  RankRunner ranks({.num_ranks = num_ranks,
                    .seed = seed,
                    .loops = random.below(2) == 0 ? Loops::kHost : Loops::kAuto,
                    .world = {.spin = std::chrono::microseconds(random.below(3) * 10)}});
  const std::string made =
      ranks.make([&](const Library& library,
                     uint32_t rank) { return RankGraphMaker(program, library.ops(), rank).make(); },
                 [&](SessionOptions& options, uint32_t) {
                   check::add_agreements(program.root, options.ranks.agree);
                   options.ranks.is_one_graph = !has_subsets;
                 });
  ASSERT_EQ(made, "") << "seed " << seed;
  for (int turn = 0; turn < 3; ++turn) {
    const auto inputs = random_inputs(program, random);
    const RankOracle oracle(program, inputs);
    *num_collectives += oracle.num_collectives();
    const auto results = ranks.run([&](uint32_t r) { return tensors(inputs[r]); });
    for (uint32_t r = 0; r < num_ranks; ++r) {
      ASSERT_TRUE(results[r].is_ok()) << "seed " << seed << ": " << results[r].status().to_string();
      for (size_t i = 0; i < program.root.results.size(); ++i) {
        const auto values = (*results[r])[i].second.values<int64_t>();
        const RankValue expected = oracle.result(r, i);
        ASSERT_THAT(values, ::testing::ElementsAreArray(expected))
            << "seed " << seed << ", rank " << r << " of " << num_ranks << ", output " << i;
      }
    }
    ASSERT_THAT(ranks.net().violations(), ::testing::IsEmpty()) << "seed " << seed;
    ASSERT_EQ(ranks.net().num_under_way(), 0u) << "seed " << seed;
  }
}

TEST(NestsTest, RanksGiveWhatRanksInStepGive) {
  constexpr uint64_t kSeeds = 24;
  std::cout << "seeds 0 to " << kSeeds - 1 << "\n";
  uint64_t num_collectives = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_NO_FATAL_FAILURE(check_program(seed, false, &num_collectives));
  }
  std::cout << num_collectives << " collectives\n";
  EXPECT_GT(num_collectives, 1000u);
}

TEST(NestsTest, GraphsThatDifferByRankDoSo) {
  constexpr uint64_t kFirst = 5000, kSeeds = 16;
  std::cout << "seeds " << kFirst << " to " << kFirst + kSeeds - 1 << "\n";
  uint64_t num_collectives = 0;
  for (uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
    ASSERT_NO_FATAL_FAILURE(check_program(seed, true, &num_collectives));
  }
  EXPECT_GT(num_collectives, 300u);
}

// x halved until the sum over all ranks is small: the sum decides, and is equal everywhere.
TEST(NestsTest, AUniformDecisionSendsNothing) {
  for (const bool is_uniform : {true, false}) {
    RankRunner ranks({.num_ranks = 3, .seed = 2});
    const std::string made = ranks.make(
        [&](const Library& library, uint32_t) {
          GraphBuilder b(library.ops());
          const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
          b.output(
              "y",
              b.while_loop(
                  {.name = "halve", .initial = {x}},
                  [&](Value, ValueSpan c) {
                    const Value sum = b.op("AllReduce", {c[0]}, {}, {.domain = "eddy"});
                    const Value big = b.op("Greater", {is_uniform ? sum : c[0], b.scalar(1.0f)});
                    return WhileTest{big, {c[0]}};
                  },
                  [&](Value, ValueSpan f) {
                    return std::vector<Value>{b.op("Mul", {f[0], b.scalar(0.5f)})};
                  })[0]);
          return b.finish();
        },
        [&](SessionOptions& options, uint32_t) {
          options.ranks.agree["halve"] = {.decision = RankSkeleton::Decision::kAgreeAny};
        });
    ASSERT_EQ(made, "");
    const uint64_t before = ranks.net().num_transfers();
    const auto results = ranks.run([](uint32_t r) {
      return NamedTensors{{"x", Tensor::scalar(static_cast<float>(r + 1))}};
    });
    for (uint32_t r = 0; r < 3; ++r) {
      ASSERT_TRUE(results[r].is_ok()) << results[r].status().to_string();
      // 6, 3, 1.5, 0.75; or rank 2's 3, 1.5, 0.75.
      const float expected = static_cast<float>(r + 1) * (is_uniform ? 0.125f : 0.25f);
      EXPECT_EQ((*results[r])[0].second.values<float>()[0], expected);
    }
    EXPECT_EQ(ranks.net().num_transfers() - before, 3 * (is_uniform ? 4u : 2 * 3u));
  }
}

TEST(NestsTest, ADecisionThatMayDifferIsRefusedOnAllRanks) {
  RankRunner ranks({.num_ranks = 2, .seed = 2});
  const auto statuses = ranks.try_make([&](const Library& library, uint32_t) {
    GraphBuilder b(library.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
    b.output("y", b.while_loop(
                      {.name = "halve", .initial = {x}},
                      [&](Value, ValueSpan c) {
                        return WhileTest{b.op("Greater", {c[0], b.scalar(1.0f)}), {c[0]}};
                      },
                      [&](Value, ValueSpan f) {
                        const Value half = b.op("Mul", {f[0], b.scalar(0.5f)});
                        return std::vector<Value>{
                            b.op("AllReduce", {half}, {}, {.name = "sum", .domain = "eddy"})};
                      })[0]);
    return b.finish();
  });
  for (const Status& status : statuses) {
    EXPECT_THAT(status.to_string(), ::testing::HasSubstr("may decide differently: x may differ"));
  }
  EXPECT_EQ(ranks.net().num_transfers(), 0u);
}

}  // namespace
}  // namespace eddy
