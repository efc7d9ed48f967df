// Claim: a stop on one rank (a node that fails, a cancel, a deadline, an input that is missing)
// ends the run on all ranks with one status that names the rank, wherever each of them is; nothing
// stays under way, and the next run is right. Runs in flight at once keep their transfers apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

#include "graph/base/random.h"
#include "tools/check/rank_runner.h"

namespace eddy {
namespace {

using check::RankRunner;
using ::testing::HasSubstr;

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

// Each rank has an element; the first wants all, the others their own. Operations of another
// channel.
Attributes all_for_the_first(uint32_t num_ranks) {
  std::vector<int64_t> from, to = {0, num_ranks};
  for (uint32_t r = 0; r < num_ranks; ++r) from.insert(from.end(), {r, 1});
  to.insert(to.end(), from.begin() + 2, from.end());
  return {{"from", from}, {"to", to}, {"channel", int64_t{2}}};
}

// Notes the longest message that a rank sends.
class MeasuringTransport final : public Transport {
 public:
  MeasuringTransport(std::unique_ptr<Transport> inner, std::atomic<size_t>& longest)
      : inner_(std::move(inner)), longest_(longest) {}
  uint32_t rank() const override { return inner_->rank(); }
  uint32_t num_ranks() const override { return inner_->num_ranks(); }
  std::string describe() const override { return inner_->describe(); }
  bool can_reduce(ElementType element, RankReduction reduction, size_t num_places) const override {
    return inner_->can_reduce(element, reduction, num_places);
  }
  Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) override {
    return inner_->open(group, number);
  }
  void close(uint32_t communicator) override { inner_->close(communicator); }
  Status start(const Transfer& transfer) override { return inner_->start(transfer); }
  Status send_message(uint32_t to, std::span<const std::byte> bytes) override {
    longest_ = std::max(longest_.load(), bytes.size());
    return inner_->send_message(to, bytes);
  }
  bool poll(Progress& progress) override { return inner_->poll(progress); }
  void abort(int exit_code) override { inner_->abort(exit_code); }

 private:
  const std::unique_ptr<Transport> inner_;
  std::atomic<size_t>& longest_;  // of all ranks
};

// y = x after `trips` turns of y = the sum of all ranks' y, asking the host function "ask" in each
// turn on a stream beside.
Result<Graph> summing(const Library& library, uint32_t num_ranks) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kFloat);
  const Value trips = b.input("trips", tensor_type(ElementType::kInt64, {}));
  const auto made = b.while_loop(
      {.name = "turns", .initial = {x}, .trip_limit = trips},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value iteration, ValueSpan f) {
        const Value root =
            b.op("Broadcast", {f[0]}, {{"channel", int64_t{1}}, {"root", int64_t{1}}},
                 {.name = "root", .domain = "eddy"});
        const Value sum = b.op("AllReduce", {f[0]}, {}, {.name = "sum", .domain = "eddy"});
        const Value shared =
            b.op("Exchange", {b.op("Reshape", {f[0], b.int64s({1})})}, all_for_the_first(num_ranks),
                 {.name = "share", .domain = "eddy"});
        const Value all = b.op("ReduceSum", {shared}, {{"keepdims", int64_t{0}}});
        const Value asked = b.op("HostPredicate", {x, iteration}, {{"name", std::string("ask")}},
                                 {.name = "asked", .domain = "eddy"});
        const Value kept = b.op("Where", {asked, sum, sum});
        return std::vector<Value>{
            b.op("Add", {b.op("Mul", {kept, b.scalar(0.25f)}),
                         b.op("Mul", {b.op("Add", {root, all}), b.scalar(0.0f)})})};
      });
  b.output("y", made[0]);
  return b.finish();
}

class StopsTest : public ::testing::Test {
 protected:
  // The host function fails on the rank whose x is this, in this turn.
  std::atomic<float> fails_at_x_{-1.0f};
  std::atomic<int64_t> fails_in_turn_{0};

  void make(RankRunner& ranks) {
    const Status added = ranks.library().add_host_function(
        "ask", [this](std::span<const TensorView> inputs) -> Result<int64_t> {
          const bool fails =
              *inputs[0].as<float>() == fails_at_x_ && *inputs[1].as<int64_t>() == fails_in_turn_;
          if (fails) return run_failed("it has no answer");
          return 1;
        });
    ASSERT_TRUE(added.is_ok());
    ASSERT_EQ(
        ranks.make(
            [&](const Library& library, uint32_t) { return summing(library, ranks.num_ranks()); },
            [](SessionOptions& options, uint32_t) { options.ranks.replicated = {"trips"}; }),
        "");
  }
  static NamedTensors inputs(uint32_t rank, int64_t trips) {
    return {{"x", Tensor::scalar(static_cast<float>(rank + 1))}, {"trips", Tensor::scalar(trips)}};
  }
  static void expect_right(RankRunner& ranks, int64_t trips) {
    float expected = 0;
    const auto n = static_cast<float>(ranks.num_ranks());
    for (uint32_t r = 0; r < ranks.num_ranks(); ++r) expected += static_cast<float>(r + 1);
    expected *= 0.25f;
    for (int64_t i = 1; i < trips; ++i) expected *= n * 0.25f;
    const auto results = ranks.run([&](uint32_t r) { return inputs(r, trips); });
    for (const auto& result : results) {
      ASSERT_TRUE(result.is_ok()) << result.status().to_string();
      EXPECT_FLOAT_EQ((*result)[0].second.values<float>()[0], expected);
    }
    EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty());
    EXPECT_EQ(ranks.net().num_under_way(), 0u);
  }
  static Status common_status(const std::vector<Result<NamedTensors>>& results) {
    for (const auto& result : results) {
      EXPECT_EQ(result.is_ok(), results[0].is_ok());
      EXPECT_EQ(result.is_ok() ? "" : result.status().to_string(),
                results[0].is_ok() ? "" : results[0].status().to_string());
    }
    return results[0].is_ok() ? Status::ok() : results[0].status();
  }
};

TEST_F(StopsTest, ANodeThatFailsEndsTheRunOnAllRanks) {
  for (uint32_t n = 2; n <= 4; ++n) {
    for (const Loops loops : {Loops::kAuto, Loops::kHost}) {
      RankRunner ranks({.num_ranks = n, .seed = n, .loops = loops});
      ASSERT_NO_FATAL_FAILURE(make(ranks));
      for (uint32_t failing = 0; failing < n; ++failing) {
        fails_at_x_ = static_cast<float>(failing + 1);
        fails_in_turn_ = failing % 3;
        const auto results = ranks.run([&](uint32_t r) { return inputs(r, 5); });
        const Status status = common_status(results);
        const std::string rank = "rank " + std::to_string(failing);
        EXPECT_THAT(status.to_string(), HasSubstr(rank + ": "));
        EXPECT_THAT(status.to_string(), HasSubstr("it has no answer"));
        EXPECT_THAT(status.to_string(),
                    HasSubstr("turns[" + std::to_string(failing % 3) + "]/asked"));
        fails_at_x_ = -1;
        ASSERT_NO_FATAL_FAILURE(expect_right(ranks, 3));
      }
    }
  }
}

// What ranks tell each other in a stop is what the others may lack, however long the run was:
// transfers that wait for a few ranks only are confirmed by all now and then.
TEST_F(StopsTest, WhatIsSaidInAStopDoesNotGrowWithTheRun) {
  std::atomic<size_t> longest{0};
  RankRunner ranks({.num_ranks = 3, .seed = 8, .wrap = [&](auto inner, uint32_t) {
                      return std::make_unique<MeasuringTransport>(std::move(inner), longest);
                    }});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  fails_at_x_ = 2;
  for (const int64_t turn : {3, 3000}) {
    fails_in_turn_ = turn;
    longest = 0;
    const auto results = ranks.run([](uint32_t r) { return inputs(r, 3500); });
    EXPECT_THAT(common_status(results).to_string(), HasSubstr("it has no answer"));
    EXPECT_GT(longest, 0u);
    EXPECT_LT(longest, 20'000u) << "after " << turn << " turns";
  }
  fails_at_x_ = -1;
  ASSERT_NO_FATAL_FAILURE(expect_right(ranks, 600));
}

// Wherever all ranks are then: they end alike, cancelled or not.
TEST_F(StopsTest, ACancelOnOneRankEndsTheRunOnAllRanks) {
  constexpr uint64_t kSeed = 99;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  int num_cancelled = 0;
  RankRunner ranks({.num_ranks = 3, .seed = kSeed});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  for (int i = 0; i < 60; ++i) {
    std::vector<Result<NamedTensors>> results;
    auto handles = ranks.submit([&](uint32_t r) { return inputs(r, 40); }, results);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(4000)));
    handles[random.below(3)].cancel();
    if (random.below(3) == 0) handles[random.below(3)].cancel();
    for (RunHandle& handle : handles) (void)handle.wait();
    const Status status = common_status(results);
    num_cancelled += !status.is_ok();
    if (!status.is_ok()) {
      EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.to_string();
      EXPECT_THAT(status.to_string(), HasSubstr("rank "));
    }
    if (i % 4 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(expect_right(ranks, 3));
  }
  std::cout << num_cancelled << " cancelled\n";
  EXPECT_GT(num_cancelled, 5);
}

TEST_F(StopsTest, ADeadlineOnOneRankEndsAnEndlessRun) {
  RankRunner ranks({.num_ranks = 3, .seed = 4});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  std::vector<Result<NamedTensors>> results;
  auto handles = ranks.submit([&](uint32_t r) { return inputs(r, int64_t{1} << 40); }, results,
                              [](uint32_t rank) {
                                RunOptions options;
                                if (rank == 2) options.timeout = std::chrono::milliseconds(30);
                                return options;
                              });
  for (RunHandle& handle : handles) (void)handle.wait();
  const Status status = common_status(results);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_THAT(status.to_string(), HasSubstr("rank 2: "));
  expect_right(ranks, 4);
}

TEST_F(StopsTest, ARunThatOneRankRefusesIsOneOfNone) {
  RankRunner ranks({.num_ranks = 3, .seed = 4});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  const uint64_t before = ranks.net().num_transfers();
  auto results = ranks.run([&](uint32_t r) {
    NamedTensors given = inputs(r, 3);
    if (r == 1) given.pop_back();
    return given;
  });
  for (uint32_t r = 0; r < 3; ++r) {
    ASSERT_FALSE(results[r].is_ok());
    EXPECT_THAT(results[r].status().to_string(), HasSubstr("trips"));
    const std::string who = r == 1 ? "" : "rank 1: ";
    EXPECT_THAT(results[r].status().to_string(), HasSubstr(who));
  }
  results = ranks.run([&](uint32_t r) { return inputs(r, r == 2 ? 4 : 3); });
  EXPECT_THAT(common_status(results).to_string(),
              HasSubstr("input 'trips' is declared equal on all ranks, but rank 2"));
  EXPECT_EQ(ranks.net().num_transfers(), before);
  expect_right(ranks, 3);
}

// Whether the others' run has begun, waits for a slot, or is yet to come, when they are told.
TEST_F(StopsTest, ARefusedRunEndsWhereverTheOthersAre) {
  RankRunner ranks({.num_ranks = 2, .seed = 4});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  for (const bool has_slot : {true, false}) {
    for (const bool comes_last : {true, false}) {  // the one that is refused
      std::vector<std::vector<Result<NamedTensors>>> busy(2);
      std::vector<RunHandle> endless;
      for (size_t i = 0; !has_slot && i < 2; ++i) {
        const auto own =
            ranks.submit([](uint32_t r) { return inputs(r, int64_t{1} << 40); }, busy[i]);
        endless.insert(endless.end(), own.begin(), own.end());
      }
      Result<NamedTensors> refused = internal_error("no callback"), told = refused.status();
      const auto run = [&](uint32_t rank, Result<NamedTensors>& result) {
        NamedTensors given = inputs(rank, 3);
        if (rank == 0) given.pop_back();
        return ranks.session(rank).run_async(
            given, [&result](Result<NamedTensors> made) { result = std::move(made); });
      };
      std::vector<RunHandle> handles = {comes_last ? run(1, told) : run(0, refused)};
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      handles.push_back(comes_last ? run(0, refused) : run(1, told));
      for (RunHandle& handle : handles) {
        EXPECT_TRUE(handle.wait_for(std::chrono::seconds(10))) << has_slot << comes_last;
      }
      for (RunHandle& handle : endless) handle.cancel();
      for (RunHandle& handle : endless) (void)handle.wait();
      for (RunHandle& handle : handles) (void)handle.wait();
      EXPECT_THAT(refused.status().to_string(), HasSubstr("'trips'"));
      EXPECT_THAT(told.status().to_string(), HasSubstr("rank 0: input 'trips'"));
    }
  }
  expect_right(ranks, 3);
}

TEST_F(StopsTest, RunsInFlightKeepTheirTransfersApart) {
  RankRunner ranks({.num_ranks = 3, .seed = 8});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  constexpr size_t kRuns = 7;
  std::vector<std::vector<Result<NamedTensors>>> results(kRuns);
  std::vector<RunHandle> handles;
  for (size_t i = 0; i < kRuns; ++i) {
    auto own = ranks.submit([&](uint32_t r) { return inputs(r, static_cast<int64_t>(1 + i)); },
                            results[i]);
    handles.insert(handles.end(), own.begin(), own.end());
  }
  for (RunHandle& handle : handles) (void)handle.wait();
  for (size_t i = 0; i < kRuns; ++i) {
    float expected = 6 * 0.25f;
    for (size_t k = 0; k < i; ++k) expected *= 0.75f;
    for (const auto& result : results[i]) {
      ASSERT_TRUE(result.is_ok()) << result.status().to_string();
      EXPECT_FLOAT_EQ((*result)[0].second.values<float>()[0], expected);
    }
  }
  EXPECT_THAT(ranks.net().violations(), ::testing::IsEmpty());
}

// The caller's thread waits, on each rank.
TEST_F(StopsTest, SynchronousRunsAndCallsDoTheSame) {
  RankRunner ranks({.num_ranks = 2, .seed = 8});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  for (const float fails_at : {-1.0f, 2.0f}) {
    fails_at_x_ = fails_at;
    std::vector<std::thread> threads;
    std::array<Status, 2> statuses, of_calls;
    for (uint32_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        const auto result = ranks.session(r).run(inputs(r, 3));
        statuses[r] = result.is_ok() ? Status::ok() : result.status();
        auto call = *ranks.session(r).prepare();
        const NamedTensors given = inputs(r, 3);
        ASSERT_TRUE(call->bind_input(0, given[0].second).is_ok());
        ASSERT_TRUE(call->bind_input(1, given[1].second).is_ok());
        of_calls[r] = call->run();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& both : {statuses, of_calls}) {
      EXPECT_EQ(both[0].to_string(), both[1].to_string());
      EXPECT_EQ(both[0].is_ok(), fails_at < 0) << both[0].to_string();
    }
  }
}

TEST_F(StopsTest, ARankThatIsCutOffSaysSo) {
  RankRunner ranks({.num_ranks = 2, .seed = 8});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  std::vector<Result<NamedTensors>> results;
  auto handles = ranks.submit([&](uint32_t r) { return inputs(r, int64_t{1} << 40); }, results);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (uint32_t r = 0; r < 2; ++r) ranks.net().lose(r);
  for (RunHandle& handle : handles) (void)handle.wait();
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(results[r].status().code(), StatusCode::kDeviceLost)
        << results[r].status().to_string();
    const auto next = ranks.session(r).run(inputs(r, 1));
    EXPECT_EQ(next.status().code(), StatusCode::kDeviceLost);
  }
}

TEST_F(StopsTest, ARankThatDoesNotAnswerIsNamedByAllOthers) {
  RankRunner ranks(
      {.num_ranks = 3,
       .seed = 8,
       .world = {.ask = std::chrono::milliseconds(20), .stall = std::chrono::milliseconds(100)}});
  ASSERT_NO_FATAL_FAILURE(make(ranks));
  expect_right(ranks, 3);
  std::vector<Result<NamedTensors>> results;
  auto handles = ranks.submit([&](uint32_t r) { return inputs(r, int64_t{1} << 40); }, results);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ranks.net().freeze(1);
  for (uint32_t r = 0; r < 3; r += 2) {
    (void)handles[r].wait();
    EXPECT_EQ(results[r].status().code(), StatusCode::kDeviceLost);
    EXPECT_THAT(results[r].status().to_string(), HasSubstr("rank 1 has not answered for 1"));
    EXPECT_THAT(
        results[r].status().to_string(),
        ::testing::ContainsRegex("this rank waited in .*turns\\[[0-9]+\\]/(root|sum|share)"));
  }
  ranks.net().lose(1);
  (void)handles[1].wait();
  EXPECT_EQ(results[1].status().code(), StatusCode::kDeviceLost);
}

// All have runs under way that take longer than anybody may be silent.
TEST_F(StopsTest, ABusyRankAnswers) {
  RankRunner ranks(
      {.num_ranks = 2,
       .seed = 8,
       .world = {.ask = std::chrono::milliseconds(5), .stall = std::chrono::milliseconds(200)}});
  const Status added = ranks.library().add_host_function(
      "work", [](std::span<const TensorView> inputs) -> Result<int64_t> {
        const bool is_long = *inputs[0].as<float>() > 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(is_long ? 600 : 0));
        return 1;
      });
  ASSERT_TRUE(added.is_ok());
  ASSERT_EQ(ranks.make([](const Library& library, uint32_t) {
    GraphBuilder b(library.ops());
    const Value x = b.input("x", kFloat);
    const Value done =
        b.op("HostPredicate", {x}, {{"name", std::string("work")}}, {.domain = "eddy"});
    b.output("y", b.op("AllReduce", {b.cast(done, ElementType::kFloat)}, {}, {.domain = "eddy"}));
    return b.finish();
  }),
            "");
  const auto results = ranks.run([](uint32_t r) {
    return NamedTensors{{"x", Tensor::scalar(static_cast<float>(r + 1))}};
  });
  for (const auto& result : results) EXPECT_TRUE(result.is_ok()) << result.status().to_string();
}

}  // namespace
}  // namespace eddy
