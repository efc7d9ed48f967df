// Claim: while ranks compute, the threads that look for what others say may be late; they may not
// while an operation or an agreement is under way, nor between runs, and need not look at all
// where there is no session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "tools/check/rank_runner.h"

namespace eddy {
namespace {

using check::RankRunner;
using namespace std::chrono_literals;

// y = the sum of all ranks' x, once the host function "look" has answered on each.
Result<Graph> look_then_sum(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value looked = b.op("HostPredicate", {x}, {{"name", std::string("look")}},
                            {.name = "looked", .domain = "eddy"});
  const Value own = b.op("Where", {looked, x, b.scalar(0.0f)});
  b.output("y", b.op("AllReduce", {own}, {}, {.name = "sum", .domain = "eddy"}));
  return b.finish();
}

// Six in a row between which nothing has come: then they would begin again.
std::vector<std::optional<std::chrono::nanoseconds>> busy_slacks(World& world) {
  std::vector<std::optional<std::chrono::nanoseconds>> seen;
  for (int tries = 0; tries < 100; ++tries) {
    seen.clear();
    for (int i = 0; i < 6; ++i) seen.push_back(world.slack(true));
    if (std::ranges::is_sorted(seen) && seen.back() == 8ms) break;
  }
  return seen;
}

TEST(SlackTest, RanksThatComputeMayBeLate) {
  RankRunner ranks({.num_ranks = 2, .seed = 1});
  using Slack = std::optional<std::chrono::nanoseconds>;
  std::atomic<int> num_looking{0};
  std::vector<Slack> seen(2);
  std::vector<std::vector<Slack>> seen_busy(2);
  const Status added = ranks.library().add_host_function(
      "look", [&](std::span<const TensorView> inputs) -> Result<int64_t> {
        const auto rank = static_cast<uint32_t>(*inputs[0].as<float>());
        ++num_looking;
        while (num_looking < 2) std::this_thread::yield();  // so that both have begun
        seen[rank] = ranks.world(rank).slack(false);
        seen_busy[rank] = busy_slacks(ranks.world(rank));
        return 1;
      });
  ASSERT_TRUE(added.is_ok());
  EXPECT_EQ(ranks.world(0).slack(false), std::nullopt);
  ASSERT_EQ(ranks.make([](const Library& library, uint32_t) { return look_then_sum(library); }),
            "");
  for (uint32_t rank : {0, 1}) EXPECT_EQ(ranks.world(rank).slack(false), 0ns);
  for (int run = 0; run < 20; ++run) {
    num_looking = 0;
    const auto results = ranks.run([](uint32_t rank) {
      return NamedTensors{{"x", Tensor::scalar(static_cast<float>(rank))}};
    });
    for (uint32_t rank : {0, 1}) {
      ASSERT_TRUE(results[rank].is_ok()) << results[rank].status().to_string();
      EXPECT_EQ((*results[rank])[0].second.values<float>()[0], 1);
      EXPECT_EQ(seen[rank], 1ms);
      // The scheduler may have asked before.
      EXPECT_GE(seen_busy[rank].front(), 1ms);
      EXPECT_TRUE(std::ranges::is_sorted(seen_busy[rank]));
      EXPECT_EQ(seen_busy[rank].back(), 8ms);
      EXPECT_EQ(ranks.world(rank).slack(false), 0ns);
    }
  }
  ranks.drop();
  EXPECT_EQ(ranks.world(0).slack(false), std::nullopt);
}

// The ranks count to `turns` together, one step behind the other.
Result<Graph> count(const Library& library, int64_t turns) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kInt64, {}));
  const auto results = b.while_loop(
      {.name = "turns", .initial = {b.scalar(int64_t{0})}},
      [&](Value, ValueSpan c) {
        return WhileTest{b.op("Less", {c[0], b.scalar(turns)}), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value most =
            b.op("AllReduce", {f[0]}, {{"reduction", std::string("max")}}, {.domain = "eddy"});
        return std::vector<Value>{b.op("Add", {most, b.scalar(int64_t{1})})};
      });
  b.output("y", b.op("Add", {results[0], x}));
  return b.finish();
}

TEST(SlackTest, AnOperationThatItsOwnThreadAwaitsWakesNobody) {
  constexpr int kTurns = 400;
  // So long, and of so many workers, that few leave.
  RankRunner ranks({.num_ranks = 2, .seed = 1, .num_threads = 4, .world = {.spin = 60s}});
  ASSERT_EQ(ranks.make([](const Library& library, uint32_t) { return count(library, kTurns); }),
            "");
  std::atomic<int> num_wakes{0};
  for (uint32_t rank : {0, 1}) ranks.world(rank).add_waker(&num_wakes, [&] { ++num_wakes; });
  const auto results = ranks.run([](uint32_t) {
    return NamedTensors{{"x", Tensor::scalar(int64_t{0})}};
  });
  for (uint32_t rank : {0, 1}) {
    EXPECT_TRUE(results[rank].is_ok()) << results[rank].status().to_string();
    ranks.world(rank).remove_waker(&num_wakes);
  }
  // A busy machine lets some leave; without the watch each operation wakes somebody.
  EXPECT_LT(num_wakes, kTurns) << "of " << 2 * kTurns << " operations";
}

TEST(SlackTest, AnOperationMayBeLateWhereEveryWorkerComputes) {
  RankRunner ranks({.num_ranks = 2, .seed = 1});
  ASSERT_EQ(ranks.make([](const Library& library, uint32_t) { return count(library, 1); }), "");
  World& world = ranks.world(0);
  const auto change = [&world](int by) { World::Turn(world).expect(by); };
  EXPECT_EQ(world.slack(true), 0ns) << "another rank may begin a run";
  change(1);
  EXPECT_EQ(world.slack(false), 0ns);
  EXPECT_EQ(world.slack(true), World::kBusySlack);
  {
    World::Watch watch(world);
    EXPECT_EQ(world.slack(true), 1ms) << "the watching thread polls";
  }
  change(-1);
}

}  // namespace
}  // namespace eddy
