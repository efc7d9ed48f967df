// Claim: in the tsan config, random graphs run on the virtual device without a data race between
// its lanes; and where a wait is lost behind the planner's back and the race checker sees two steps
// that nothing orders, ThreadSanitizer sees two accesses of the machine code that nothing orders.
//
// This watcher shares nothing with the plan's proof and the race checker but the device's word on
// what was recorded and waited for.
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
#include "tools/check/hash_ops.h"
#include "tools/check/race_checker.h"
#include "tools/check/subject.h"
#include "tools/check/trial.h"

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
    ASSERT_TRUE(add_hash_ops(library_).is_ok());
    first_seed_ = number("EDDY_CHECK_FIRST", 0);
  }

  // Host functions run on threads of their own, and would order what they are called from.
  static GenerateOptions graphs() {
    return {.min_steps = 12,
            .max_steps = 40,
            .max_repeats = 20,
            .has_lists = false,
            .has_optionals = false,
            .has_host_functions = false};
  }
  static ChooserOptions order_of(uint64_t seed, uint64_t order) {
    constexpr SchedulePolicy kPolicies[] = {SchedulePolicy::kUniform, SchedulePolicy::kStarve,
                                            SchedulePolicy::kLate, SchedulePolicy::kEarly,
                                            SchedulePolicy::kPct};
    return {.policy = kPolicies[order % std::size(kPolicies)], .seed = seed + order};
  }

  // Three runs of a graph, the second in memory that is all there; empty, or what went wrong.
  // `is_planted`: whether the mutation found a place.
  std::string run(uint64_t seed, Mutation mutation, bool& is_planted, uint64_t order = 0) {
    Subject subject(library_, make_recipe(seed, graphs()));
    for (uint64_t variant : {0, 1}) (void)subject.expected(variant);
    auto graph = subject.copy_graph();
    if (!graph.is_ok()) return graph.status().to_string();
    const auto device = std::make_shared<VirtualDevice>(
        VirtualDeviceOptions{.engine = {.order = order_of(seed, order),
                                        .watcher_or_null = lanes_.get(),
                                        .runner_or_null = lanes_.get()}});
    const auto allocator = lanes_->watched_allocator(device->allocator());
    mutation.allocator_or_null = allocator.get();
    const auto mutant = std::make_shared<MutantDevice>(device, mutation);
    SessionOptions options;
    options.assignment = assignment_of(seed);
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

  static Assignment assignment_of(uint64_t seed) {
    return seed % 2 == 0 ? Assignment::kRank : Assignment::kMatching;
  }

  // The race checker's findings on the same graph, mutation and order; empty: none. A finding may
  // come from an order that ThreadSanitizer does not: a step that finds no input ends the run.
  std::string checked(uint64_t seed, const Mutation& mutation, uint64_t order) {
    Subject subject(library_, make_recipe(seed, graphs()));
    TrialOptions options;
    options.order = order_of(seed, order);
    options.assignment = assignment_of(seed);
    options.wrap = [&](std::shared_ptr<VirtualDevice> device) -> std::shared_ptr<Device> {
      return std::make_shared<MutantDevice>(std::move(device), mutation);
    };
    auto trial = Trial::make(subject, options);
    if (!trial.is_ok()) return {};
    for (uint64_t variant : {0, 0, 1}) {
      const std::string text = (*trial)->run(variant);
      if (text.find("race: ") != std::string::npos) return text;
      const std::string found = (*trial)->findings();
      if (found.find("race: ") != std::string::npos) return found;
    }
    return {};
  }

  // How often the runs of checked() reach the wait, with nothing planted.
  uint64_t times_reached(uint64_t seed, size_t n) {
    uint64_t count = 0;
    Mutation mutation;
    mutation.edit = count_wait(count);
    mutation.n = n;
    (void)checked(seed, mutation, 0);
    return count;
  }

  // One lost wait in each of so many graphs that have one, in several orders; ends the process with
  // 0 when each that the race checker notices is reported. The others are never reached, in
  // branches that are not taken and loops that make no round; or order steps that in these runs
  // touch nothing in common, as the proof cannot know: the end of a region behind a step without
  // readers, a value that an untaken branch would have read.
  [[noreturn]] void lose_waits() {
    const CommandEdit lose = command_edits()[0].second;
    constexpr uint64_t kOrders = 6;
    int num_planted = 0;
    int num_checked = 0;
    int num_reported = 0;
    int num_missed = 0;
    for (uint64_t seed = first_seed_; num_planted < 40; ++seed) {
      Mutation mutation;
      mutation.edit = lose;
      mutation.n = seed % 3;
      const int before = num_reports;
      bool is_planted = false;
      (void)run(seed, mutation, is_planted);
      if (!is_planted) continue;
      ++num_planted;
      std::string race;
      for (uint64_t order = 0; order < kOrders; ++order) {
        if (num_reports == before) (void)run(seed, mutation, is_planted, order);
        if (race.empty()) race = checked(seed, mutation, order);
      }
      const bool is_reported = num_reports > before;
      num_checked += race.empty() ? 0 : 1;
      num_reported += is_reported ? 1 : 0;
      num_missed += !race.empty() && !is_reported ? 1 : 0;
      const uint64_t reached = times_reached(seed, mutation.n);
      std::printf("seed %llu, wait %zu, reached %llu times: %s, %s\n",
                  static_cast<unsigned long long>(seed), mutation.n,
                  static_cast<unsigned long long>(reached), is_reported ? "a data race" : "silent",
                  race.empty() ? "no steps without order" : race.c_str());
    }
    std::fflush(stdout);  // the table; what follows goes to the death test
    std::fprintf(stderr, "%d lost waits: %d unordered steps, %d data races, %d missed\n",
                 num_planted, num_checked, num_reported, num_missed);
    std::fflush(stderr);
    std::_Exit(num_missed == 0 && num_reported > 0 ? 0 : 1);
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
  EXPECT_EXIT(lose_waits(), testing::ExitedWithCode(0), "lost waits: .* 0 missed");
}

}  // namespace
}  // namespace eddy::check
