// Claim: in the tsan config, random graphs run on the virtual device without a data race between
// its lanes, and a wait that is lost behind the planner's back is one.
//
// This watcher shares nothing with the plan's proof and the race checker but the device's word on
// what was recorded and waited for: the accesses are those that the machine code makes.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/api/session.h"
#include "runtime/virtual/virtual_device.h"
#include "tests/runtime/virtual/tsan_lanes.h"
#include "tests/tools/check/command_edits.h"
#include "tests/tools/check/mutants.h"
#include "tools/check/generator.h"
#include "tools/check/mixing_ops.h"
#include "tools/check/race_checker.h"
#include "tools/check/subject.h"

namespace {

int num_reports = 0;

}  // namespace

// ThreadSanitizer's hooks. Reports with equal stacks count, too: each planted defect has its own.
// (Called with a report in hand: it must not make another.)
extern "C" __attribute__((no_sanitize("thread"))) void __tsan_on_report(void*) { ++num_reports; }
extern "C" const char* __tsan_default_options() {
  return "suppress_equal_stacks=0:suppress_equal_addresses=0";
}

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A step that is not ordered behind its inputs may find none; it fails, and does not follow a null
// pointer. No lock: that would order lanes.
class Guard : public StepObserver {
 public:
  Status before(RunState& state, const ::eddy::Step& step) override {
    return RaceChecker::check_made(state, step);
  }
  void after(RunState&, const ::eddy::Step&, int32_t) override {}
};

class TsanCampaign : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    lanes_ = TsanLanes::make_or_null();
    if (lanes_ == nullptr) GTEST_SKIP() << "needs the tsan config";
    ASSERT_TRUE(add_mixing_ops(library_).is_ok());
    first_seed_ = number("EDDY_CHECK_FIRST", 0);
  }

  // Three runs of a graph, the second in memory that is all there; empty, or what went wrong.
  // `is_planted`: whether the mutation found a place.
  std::string run(uint64_t seed, const Mutation& mutation, bool& is_planted) {
    // Host functions run on threads of their own, and would order what they are called from.
    const GenerateOptions generate = {.min_steps = 12,
                                      .max_steps = 40,
                                      .max_repeats = 20,
                                      .has_lists = false,
                                      .has_optionals = false,
                                      .has_host_functions = false};
    Subject subject(library_, make_recipe(seed, generate));
    for (uint64_t variant : {0, 1}) (void)subject.expected(variant);
    auto graph = subject.take_graph();
    if (!graph.is_ok()) return graph.status().to_string();
    const auto device = std::make_shared<VirtualDevice>(
        VirtualDeviceOptions{.engine = {.order = {.seed = seed},
                                        .watcher_or_null = lanes_.get(),
                                        .runner_or_null = lanes_.get()}});
    const auto mutant = std::make_shared<MutantDevice>(device, mutation);
    SessionOptions options;
    options.assignment = seed % 2 == 0 ? Assignment::kRank : Assignment::kMatching;
    options.loops = Loops::kDevice;
    options.simplify = false;
    options.observer_or_null = &guard_;
    options.make_device = [&]() -> Result<std::shared_ptr<Device>> {
      return std::shared_ptr<Device>(mutant);
    };
    auto session = Session::create(library_, std::move(*graph), options);
    if (!session.is_ok()) return session.status().to_string();
    std::string text;
    for (uint64_t variant : {0, 0, 1}) {
      const Subject::Expected& expected = subject.expected(variant);
      const auto outputs = (*session)->run(expected.inputs);
      if (text.empty() && !outputs.is_ok()) text = outputs.status().to_string();
      if (text.empty()) text = difference(expected.result.outputs, *outputs);
    }
    is_planted = mutant->is_planted();
    return text;
  }

  // One lost wait in each of so many graphs that have one; ends the process with 0 when a third of
  // them is reported. Others stand in branches that are not taken, or are hidden by locks of the
  // allocator and counts of references, which order lanes, too.
  [[noreturn]] void lose_waits() {
    const CommandEdit lose = command_edits()[0].second;
    int num_planted = 0;
    int num_noticed = 0;
    for (uint64_t seed = first_seed_; num_planted < 40; ++seed) {
      Mutation mutation;
      mutation.edit = lose;
      mutation.n = seed % 3;
      const int before = num_reports;
      bool is_planted = false;
      (void)run(seed, mutation, is_planted);
      num_planted += is_planted;
      num_noticed += is_planted && num_reports > before;
    }
    std::fprintf(stderr, "%d of %d lost waits are data races\n", num_noticed, num_planted);
    std::fflush(stderr);
    std::_Exit(num_noticed * 3 >= num_planted ? 0 : 1);
  }

  std::unique_ptr<TsanLanes> lanes_;
  Library library_;
  Guard guard_;
  uint64_t first_seed_ = 0;
};

TEST_F(TsanCampaign, RandomGraphsAreSilent) {
  const uint64_t num_seeds = number("EDDY_CHECK_SEEDS", 500);
  for (uint64_t seed = first_seed_; seed < first_seed_ + num_seeds; ++seed) {
    bool is_planted = false;
    EXPECT_EQ(run(seed, {}, is_planted), "") << "EDDY_CHECK_FIRST=" << seed;
    ASSERT_EQ(num_reports, 0) << "EDDY_CHECK_FIRST=" << seed;
  }
}

TEST_F(TsanCampaign, ALostWaitIsADataRace) {
  EXPECT_EXIT(lose_waits(), testing::ExitedWithCode(0), "lost waits are data races");
}

}  // namespace
}  // namespace eddy::check
