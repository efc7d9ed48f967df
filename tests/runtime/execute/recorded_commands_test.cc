// Claim: what is recorded for a plan is proved from the commands alone, for random graphs with open
// loops and everything nested; and whatever is left out of them (a wait, a record, a reset, a
// fork's stream, a step) is noticed.
//
// EDDY_RECORDED_GRAPHS=N tries N graphs.
#include "runtime/execute/recorded_commands.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/command_code.h"
#include "runtime/execute/executable.h"
#include "tools/check/generator.h"
#include "tools/check/mixing_ops.h"

namespace eddy {
namespace {

enum class Fault { kNone, kWait, kRecord, kReset, kStream, kLaunch, kTwice };

// Records, but for one command.
class Spoiled : public CommandCode {
 public:
  Spoiled(Fault fault, uint64_t number) : fault_(fault), number_(number) {}

  void launch(WorkFunction run, void* context, bool is_cheap) override {
    const bool is_step = run != ReleaseList::run;
    if (is_step && is_hit(Fault::kLaunch)) return;
    CommandCode::launch(run, context, is_cheap);
    if (is_step && is_hit(Fault::kTwice)) CommandCode::launch(run, context, is_cheap);
  }
  void wait(uint32_t event) override {
    if (!is_hit(Fault::kWait)) CommandCode::wait(event);
  }
  void record(uint32_t event) override {
    if (!is_hit(Fault::kRecord)) CommandCode::record(event);
  }
  void reset(uint32_t event) override {
    if (!is_hit(Fault::kReset)) CommandCode::reset(event);
  }
  void begin_fork(uint32_t stream) override {
    // That of the strand that forks it.
    const uint32_t own = is_hit(Fault::kStream) ? streams_.back() : stream;
    streams_.push_back(own);
    CommandCode::begin_fork(own);
  }
  void end_fork() override {
    streams_.pop_back();
    CommandCode::end_fork();
  }
  void start(RunControl&) override {}
  void run_here(RunControl&) override {}
  StrandState strand_state(uint32_t) const override { return StrandState::kIdle; }

  // How many of its kind there were.
  uint64_t count() const { return count_; }

 private:
  bool is_hit(Fault fault) { return fault == fault_ && count_++ == number_; }

  const Fault fault_;
  const uint64_t number_;
  uint64_t count_ = 0;
  std::vector<uint32_t> streams_ = {0};  // of the strands being recorded
};

struct Verdict {
  Status status;
  uint64_t count = 0;
};

class RecordedCommandsTest : public testing::Test {
 protected:
  RecordedCommandsTest() { EXPECT_TRUE(check::add_mixing_ops(library_).is_ok()); }

  Verdict prove(const Graph& graph, const Plan& plan, Fault fault, uint64_t number) {
    Spoiled* spoiled = nullptr;
    ExecutableOptions options;
    options.make_commands = [&](Recorder*) -> std::unique_ptr<CommandBuffer> {
      auto commands = std::make_unique<Spoiled>(fault, number);
      spoiled = commands.get();
      return commands;
    };
    auto program = Executable::create(graph, plan, device_, library_.cpu_kernels(), options);
    EXPECT_TRUE(program.is_ok()) << program.status().to_string();
    const auto state = (*program)->acquire();
    return {prove_recorded(plan, *state), spoiled->count()};
  }

  Library library_;
  CpuDevice device_{CpuDeviceOptions{1, 0}};
};

Plan plan_of(const Graph& graph, uint64_t seed) {
  PlanOptions options;
  options.is_auto = false;
  options.policy = seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
  Plan plan = plan_graph(graph, options);
  EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  return plan;
}

TEST_F(RecordedCommandsTest, WhatIsRecordedIsProvedAndWhatIsLeftOutIsNoticed) {
  const char* const wanted = std::getenv("EDDY_RECORDED_GRAPHS");
  const uint64_t num_graphs = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 60;
  constexpr uint64_t kTries = 6;  // of each fault, a graph
  std::map<Fault, uint64_t> tried;
  uint64_t num_open = 0;
  for (uint64_t seed = 1; seed <= num_graphs && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    auto made = check::generate(seed, library_, {.has_host_functions = false});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const Graph& graph = made->graph;
    const Plan plan = plan_of(graph, seed);
    for (const Program::Loop& loop : plan.program.loops) num_open += loop.is_pipelined;
    const Verdict whole = prove(graph, plan, Fault::kNone, 0);
    ASSERT_TRUE(whole.status.is_ok()) << whole.status.to_string();
    Random random(seed);
    for (const Fault fault : {Fault::kWait, Fault::kRecord, Fault::kReset, Fault::kStream,
                              Fault::kLaunch, Fault::kTwice}) {
      const uint64_t count = prove(graph, plan, fault, UINT64_MAX).count;
      for (uint64_t t = 0; t < std::min(count, kTries); ++t) {
        const uint64_t number = count <= kTries ? t : random.below(count);
        const Verdict spoiled = prove(graph, plan, fault, number);
        EXPECT_EQ(spoiled.status.code(), StatusCode::kInternal)
            << "fault " << static_cast<int>(fault) << " of command " << number;
        ++tried[fault];
      }
    }
  }
  if (wanted != nullptr) return;
  EXPECT_GT(num_open, 5u) << "of open loops";
  for (const auto& [fault, count] : tried) {
    EXPECT_GT(count, 30u) << "fault " << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace eddy
