// Claim: the joint tasks of several ranks end when each rank's steps and operations do, by hand and
// as a plain loop over ranks reckons it for random programs; streams go on beside operations; loops
// and branches are as typical as their decisions; what operations take is the links' to say; ranks
// that come to a lane unequally often are named.
#include "graph/simulate/rank_tasks.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/simulate/full_simulation.h"
#include "tests/graph/simulate/fluid_sketch.h"

namespace eddy {
namespace {

using Op = Program::Op;
using ::testing::HasSubstr;
using Operations = std::vector<std::optional<RankOperation>>;

// Operations take as long as they have bytes.
RankLinks by_bytes() {
  RankLinks links;
  for (const char* const kind : {"AllReduce", "Send"}) links.measured[kind] = {{0, 0}, {1, 1}};
  return links;
}

RankOperation sum_of(std::vector<uint32_t> ranks, double ns, const std::string& lane = "0") {
  return {.lane = lane, .ranks = std::move(ranks), .kind = "AllReduce", .bytes = ns};
}

struct Rank {
  FluidSketch sketch;
  Operations operations;  // by launch
};

class Joined {
 public:
  explicit Joined(const std::vector<Rank>& ranks, const RankTaskOptions& options = {}) {
    std::vector<PricedProgram> priced;
    for (const Rank& rank : ranks) priced.push_back(sketched(rank.sketch));
    std::vector<RankProgram> programs;
    for (size_t r = 0; r < ranks.size(); ++r) {
      Operations operations = ranks[r].operations;
      operations.resize(priced[r].program.launches.size());
      programs.push_back({priced[r].program, priced[r].costs, std::move(operations)});
    }
    auto tasks = join_rank_tasks(programs, by_bytes(), options);
    status = tasks.is_ok() ? Status::ok() : tasks.status();
    if (!tasks.is_ok()) return;
    EXPECT_TRUE(simulate_full(tasks->graph, timeline).is_done());
    made = std::move(*tasks);
  }

  // When a rank's last task or operation ends.
  double end_of(uint32_t rank) const {
    double end = 0;
    for (uint32_t slot = 0; slot < made.tasks.size(); ++slot) {
      const RankTasks::Task& task = made.tasks[slot];
      const bool is_own = task.what != RankTasks::What::kOperation && task.rank == rank;
      if (is_own) end = std::max(end, timeline.tasks[slot].end);
    }
    for (const RankTasks::Operation& operation : made.operations) {
      if (std::ranges::count(operation.ranks, rank) == 0) continue;
      end = std::max(end, timeline.tasks[operation.task].end);
    }
    return end;
  }

  Status status;
  RankTasks made;
  Timeline<double> timeline;
};

// Kernels and operations one after another.
Rank sequence(const std::vector<std::pair<double, std::optional<RankOperation>>>& steps) {
  Rank rank;
  rank.sketch.blocks.resize(1);
  for (uint32_t i = 0; i < steps.size(); ++i) {
    rank.sketch.kernels.push_back({.solo_ns = steps[i].first});
    rank.sketch.blocks[0].steps.push_back({Op::kLaunch, 0, i});
    rank.operations.push_back(steps[i].second);
  }
  return rank;
}

TEST(RankTasks, AnOperationBeginsWithTheLastRankAndEndsForAll) {
  const Joined joined({sequence({{10, {}}, {0, sum_of({0, 1}, 5)}, {1, {}}}),
                       sequence({{30, {}}, {0, sum_of({0, 1}, 5)}, {7, {}}})});
  ASSERT_TRUE(joined.status.is_ok()) << joined.status.to_string();
  EXPECT_DOUBLE_EQ(joined.end_of(0), 30 + 5 + 1);
  EXPECT_DOUBLE_EQ(joined.end_of(1), 30 + 5 + 7);
  ASSERT_EQ(joined.made.operations.size(), 1u);
  EXPECT_EQ(joined.made.operations[0].ranks, (std::vector<uint32_t>{0, 1}));
}

TEST(RankTasks, AnotherStreamGoesOnBesideAnOperation) {
  Rank rank;
  rank.sketch.kernels = {{.solo_ns = 0}, {.solo_ns = 20}, {.solo_ns = 3}};
  rank.sketch.blocks.resize(1);
  FluidSketch::Block& root = rank.sketch.blocks[0];
  root.num_streams = 2;
  root.num_events = 1;
  root.steps = {{Op::kLaunch, 1, 0},
                {Op::kRecord, 1, 0},
                {Op::kLaunch, 0, 1},
                {Op::kWait, 0, 0},
                {Op::kLaunch, 0, 2}};
  rank.operations = {sum_of({0, 1}, 15), {}, {}};
  const Joined joined({rank, rank});
  ASSERT_TRUE(joined.status.is_ok()) << joined.status.to_string();
  EXPECT_DOUBLE_EQ(joined.end_of(0), 20 + 3);
}

TEST(RankTasks, LoopsGoRoundAsTheirDecisionsSay) {
  const auto looping = [](double ns, std::vector<int64_t> trace) {
    Rank rank;
    rank.sketch = sketch_loop({.solo_ns = ns}, {.trace = std::move(trace)});
    rank.sketch.kernels.push_back({.solo_ns = 0});
    rank.sketch.blocks[2].steps.push_back({Op::kLaunch, 0, 1});
    rank.operations = {{}, sum_of({0, 1}, 4)};
    return rank;
  };
  const Joined joined({looping(10, {3}), looping(2, {3})});
  ASSERT_TRUE(joined.status.is_ok()) << joined.status.to_string();
  EXPECT_EQ(joined.made.operations.size(), 3u);
  EXPECT_DOUBLE_EQ(joined.end_of(1), 3 * (10 + 4));
  // Rounds that stand for several take as long as these.
  const Joined shortened({looping(10, {300}), looping(2, {300})}, {.max_rounds = 3});
  EXPECT_EQ(shortened.made.operations.size(), 3u);
  EXPECT_DOUBLE_EQ(shortened.end_of(1), 300 * (10 + 4));
  const Joined unequal({looping(10, {3}), looping(2, {2})});
  EXPECT_EQ(unequal.status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unequal.status.message(), HasSubstr("rank 1 comes to 2 of 3 operations on 0"));
  const Joined full({looping(10, {3}), looping(2, {3})}, {.max_tasks = 5});
  EXPECT_EQ(full.status.code(), StatusCode::kResourceExhausted);
}

TEST(RankTasks, TheLikeliestBranchIsTaken) {
  Rank rank;
  rank.sketch.kernels = {{.solo_ns = 10}, {.solo_ns = 40}};
  rank.sketch.blocks.resize(3);
  rank.sketch.blocks[0].steps = {{Op::kCase, 0, 0}};
  rank.sketch.blocks[1].steps = {{Op::kLaunch, 0, 0}};
  rank.sketch.blocks[2].steps = {{Op::kLaunch, 0, 1}};
  Decision decision;
  decision.distribution = {{0, 0.3}, {1, 0.7}};
  rank.sketch.cases.push_back({{.name = "c", .decision = decision}, {1, 2}});
  EXPECT_DOUBLE_EQ(Joined({rank}).end_of(0), 40);
}

// Several groups at once, each with a lane of its own.
TEST(RankTasks, RandomProgramsEndAsAPlainLoopReckons) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto num_ranks = static_cast<uint32_t>(1 + random.below(5));
    std::vector<std::vector<std::pair<double, std::optional<RankOperation>>>> steps(num_ranks);
    std::vector<double> now(num_ranks, 0);
    for (int i = 0; i < 40; ++i) {
      const auto ns = static_cast<double>(random.below(100));
      if (random.below(2) == 0) {
        const auto rank = static_cast<uint32_t>(random.below(num_ranks));
        steps[rank].push_back({ns, {}});
        now[rank] += ns;
        continue;
      }
      std::vector<uint32_t> group;
      for (uint32_t r = 0; r < num_ranks; ++r) {
        if (random.below(2) == 0) group.push_back(r);
      }
      if (group.empty()) continue;
      std::string lane;
      double begin = 0;
      for (const uint32_t r : group) {
        lane += std::to_string(r) + " ";
        begin = std::max(begin, now[r]);
      }
      // One rank alone waits for nobody, and nothing.
      const double end = group.size() == 1 ? begin : begin + ns;
      for (const uint32_t r : group) {
        now[r] = end;
        steps[r].push_back({0, sum_of(group, ns, lane)});
      }
    }
    std::vector<Rank> ranks;
    for (const auto& of_rank : steps) ranks.push_back(sequence(of_rank));
    const Joined joined(ranks);
    ASSERT_TRUE(joined.status.is_ok()) << joined.status.to_string();
    for (uint32_t r = 0; r < num_ranks; ++r) EXPECT_NEAR(joined.end_of(r), now[r], 1e-6) << r;
  }
}

TEST(RankLinks, OperationsTakeWhatTheirAlgorithmsDo) {
  const auto read = parse_rank_links(R"({"latency_ns": 100, "bytes_per_ns": 2})");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  const RankLinks& links = *read;
  EXPECT_DOUBLE_EQ(links.operation_ns("AllReduce", 4, 800), 2 * (2 * 100 + 0.75 * 400));
  EXPECT_DOUBLE_EQ(links.operation_ns("AllGather", 4, 800), 2 * 100 + 3 * 400);
  EXPECT_DOUBLE_EQ(links.operation_ns("ReduceScatter", 4, 800), 2 * 100 + 0.75 * 400);
  EXPECT_DOUBLE_EQ(links.operation_ns("Broadcast", 5, 800), 3 * (100 + 400));
  EXPECT_DOUBLE_EQ(links.operation_ns("AllToAll", 4, 800), 3 * 100 + 0.75 * 400);
  EXPECT_DOUBLE_EQ(links.operation_ns("Barrier", 4, 0), 200);
  EXPECT_DOUBLE_EQ(links.operation_ns("Send", 2, 800), 500);
  EXPECT_DOUBLE_EQ(links.operation_ns("AllReduce", 1, 800), 0) << "with nobody else";
}

TEST(RankLinks, MeasuredOnesAreReadOffTheirLines) {
  const auto read =
      parse_rank_links(R"({"operations": {"AllReduce": [[4, 500], [104, 700], [1000, 2000]]}})");
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  EXPECT_DOUBLE_EQ(read->operation_ns("AllReduce", 2, 1), 500);
  EXPECT_DOUBLE_EQ(read->operation_ns("AllReduce", 2, 54), 600);
  EXPECT_DOUBLE_EQ(read->operation_ns("AllReduce", 2, 104), 700);
  EXPECT_DOUBLE_EQ(read->operation_ns("AllReduce", 2, 4000), 8000);
}

TEST(RankLinks, WhatIsNoneIsRefused) {
  for (const char* const json :
       {"", "[]", R"({"latency_ns": -1})", R"({"bytes_per_ns": 0})", R"({"operations": []})",
        R"({"operations": {"AllReduce": []}})", R"({"operations": {"AllReduce": [[4]]}})",
        R"({"operations": {"AllReduce": [[4, 5], [4, 6]]}})",
        R"({"operations": {"AllReduce": [[4, -5]]}})"}) {
    const auto read = parse_rank_links(json);
    ASSERT_FALSE(read.is_ok()) << json;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << json;
  }
}

}  // namespace
}  // namespace eddy
