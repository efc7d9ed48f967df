// Claim: the watchers notice every kind of defect that was planted between a session and its
// device, in a plan, or in what a step sees; and notice nothing where nothing was planted.
//
// Each switch is planted at its first places in random graphs until a watcher reports it. The test
// prints which one did. EDDY_CHECK_FIRST=N starts with another graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "graph/base/sanitizers.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/execute/run_state.h"
#include "tests/tools/check/command_edits.h"
#include "tests/tools/check/mutants.h"
#include "tools/check/generator.h"
#include "tools/check/hash_ops.h"
#include "tools/check/trial.h"

namespace eddy::check {
namespace {

constexpr uint64_t kGraphs = 400;
constexpr size_t kPlaces = 6;  // of one graph

uint64_t first_seed() {
  const char* const text = std::getenv("EDDY_CHECK_FIRST");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

const char* watcher_of(const std::string& what) {
  const auto has = [&](const char* text) { return what.find(text) != std::string::npos; };
  if (has("race: ") || has("which nothing has made yet")) return "race checker";
  if (has("deadlock") || has("recorded twice")) {
    return "the device's books";
  }
  if (has("the run hangs")) return "hang";
  if (has("still in use") || has("still waits")) return "baseline";
  for (const char* text : {"tested twice", "did not run", "another value", "should not have"}) {
    if (has(text)) return "digests";
  }
  if (has("the run was cancelled")) return "step limit";
  return has(": ok") || has("failed") || has("lost") ? "status" : "oracle";
}

class PlantedTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }

  struct Planted {
    Mutation mutation = {};
    Loops loops = Loops::kDevice;
    SchedulePolicy policy = SchedulePolicy::kUniform;
    StepObserver* observer_or_null = nullptr;
    std::vector<Fault> faults = {};
    const char* honest = "";  // a run's message about the faults without a planted defect
  };
  // The watchers' findings on three orders; `is_planted` is false if there was no place.
  std::string try_planted(uint64_t seed, const Planted& planted, bool& is_planted) {
    FaultPlan plan;
    TrialOptions options;
    options.order.seed = seed;
    options.order.policy = planted.policy;
    options.loops = planted.loops;
    options.observer_or_null = planted.observer_or_null;
    options.patience = std::chrono::seconds(2);
    options.faults_or_null = &plan;
    MutantDevice* mutant = nullptr;
    options.wrap = [&](std::shared_ptr<VirtualDevice> device) -> std::shared_ptr<Device> {
      auto made = std::make_shared<MutantDevice>(std::move(device), planted.mutation);
      mutant = made.get();
      return made;
    };
    Session* session = nullptr;
    options.on_tick = [&](uint64_t tick) {
      if (tick == 100'000 && session != nullptr) session->cancel_all();
    };
    GenerateOptions generate;
    generate.has_host_functions = false;
    generate.max_repeats = 20;
    Subject subject(library_, make_recipe(seed, generate));
    auto trial = Trial::make(subject, options);
    if (!trial.is_ok()) return trial.status().to_string();
    session = &(*trial)->session();
    std::string text;
    for (uint64_t variant : {0, 1, 0}) {
      if (!text.empty()) break;
      plan.arm(planted.faults);
      text = (*trial)->run(variant);
    }
    is_planted = mutant->is_planted();
    if (text.empty()) text = (*trial)->close();
    if (planted.mutation.leak_to_or_null != nullptr) planted.mutation.leak_to_or_null->clear();
    return text;
  }

  void expect_caught(const char* name, Planted planted) {
    size_t num_planted = 0;
    for (uint64_t seed = first_seed(); seed < first_seed() + kGraphs; ++seed) {
      for (planted.mutation.n = 0; planted.mutation.n < kPlaces; ++planted.mutation.n) {
        bool is_planted = false;
        std::string what = try_planted(seed, planted, is_planted);
        if (*planted.honest != 0 && what.find(planted.honest) != std::string::npos) what.clear();
        num_planted += is_planted ? 1 : 0;
        if (!what.empty()) {
          std::printf("%-40s caught by %s after %zu: %s\n", name, watcher_of(what), num_planted,
                      what.substr(0, 110).c_str());
          return;
        }
        if (!is_planted) break;
      }
    }
    ADD_FAILURE() << name << ": planted " << num_planted << " times and never noticed";
  }

  // Some defects read memory that has gone back, which AddressSanitizer ends the process for: there
  // each is tried in a process of its own, and that counts as caught.
  void expect_caught_or_ended(const char* name, const Planted& planted) {
#if EDDY_HAS_ASAN
    const auto try_alone = [&] {
      expect_caught(name, planted);
      std::fflush(stdout);
      std::fputs(HasFailure() ? "never noticed\n" : "a watcher caught it\n", stderr);
      std::_Exit(0);
    };
    EXPECT_EXIT(
        try_alone(), [](int) { return true; }, "a watcher caught it|AddressSanitizer")
        << name;
#else
    expect_caught(name, planted);
#endif
  }

  Library library_;
};

TEST_F(PlantedTest, NothingIsNoticedWhereNothingIsPlanted) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    bool is_planted = false;
    Planted planted;
    planted.loops = seed % 3 == 0 ? Loops::kHost : Loops::kDevice;
    EXPECT_EQ(try_planted(seed, planted, is_planted), "") << "seed " << seed;
    EXPECT_FALSE(is_planted);
  }
}

TEST_F(PlantedTest, EveryDefectOfRecordedCommandsIsNoticed) {
  for (const auto& [name, edit] : command_edits()) {
    expect_caught_or_ended(name, {.mutation = {.edit = edit}});
  }
}

constexpr std::pair<const char*, StreamBug> kStreamBugs[] = {
    {"a stream loses a wait", StreamBug::kLostWait},
    {"a stream loses a record", StreamBug::kLostRecord},
    {"a stream loses a launch", StreamBug::kLostLaunch},
    {"a stream runs work twice", StreamBug::kLaunchedTwice},
    {"a stream runs work where it is issued", StreamBug::kRunsEarly},
    {"a stream changes the order of work", StreamBug::kSwapped},
    {"a stream says idle too early", StreamBug::kIdleTooEarly},
    {"a stream forgets to say that it is idle", StreamBug::kNeverIdle},
    {"an event happens too early", StreamBug::kEarlyRecord}};

// What orders two steps does not depend on which of them came first this time: so where a lost wait
// is a race under one policy, no other policy's run goes by unnoticed.
TEST_F(PlantedTest, ALostWaitIsNoticedInWhicheverOrderStepsCome) {
#if EDDY_HAS_ASAN
  GTEST_SKIP() << "it may read memory that has gone back: AddressSanitizer ends the process";
#endif
  const auto edits = command_edits();
  const auto lost = std::ranges::find_if(
      edits, [](const auto& edit) { return std::string_view(edit.first) == "a wait is lost"; });
  ASSERT_NE(lost, edits.end());
  constexpr SchedulePolicy kPolicies[] = {SchedulePolicy::kUniform, SchedulePolicy::kPct,
                                          SchedulePolicy::kStarve, SchedulePolicy::kLate,
                                          SchedulePolicy::kEarly};
  size_t num_races = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    bool is_planted = true;
    for (size_t n = 0; n < kPlaces && is_planted; ++n) {
      std::vector<std::string> said;
      for (const SchedulePolicy policy : kPolicies) {
        Planted planted{.mutation = {.edit = lost->second}, .policy = policy};
        planted.mutation.n = n;
        said.push_back(try_planted(seed, planted, is_planted));
      }
      const auto race = std::ranges::find_if(
          said, [](const std::string& what) { return what.find("race: ") != std::string::npos; });
      if (race == said.end()) continue;
      ++num_races;
      EXPECT_EQ(std::ranges::count(said, ""), 0)
          << "seed " << seed << ", wait " << n << ": " << *race;
    }
  }
  EXPECT_GT(num_races, 40u);
}

TEST_F(PlantedTest, EveryBrokenPromiseOfAStreamIsNoticed) {
  for (const auto& [name, bug] : kStreamBugs) {
    expect_caught(name, {.mutation = {.stream = bug}, .loops = Loops::kHost});
  }
}

constexpr std::pair<const char*, MemoryBug> kMemoryBugs[] = {
    {"one block is handed out twice", MemoryBug::kSameBlockTwice},
    {"a block is freed early", MemoryBug::kFreedEarly}};

TEST_F(PlantedTest, EveryDefectOfMemoryIsNoticed) {
  for (const auto& [name, bug] : kMemoryBugs) {
    expect_caught(name, {.mutation = {.memory = bug}});
  }
  std::vector<BufferRef> leaked;
  expect_caught("a block is never freed", {.mutation = {.leak_to_or_null = &leaked}});
}

TEST_F(PlantedTest, ALaunchThatNeverCompletesIsNoticed) {
  expect_caught("a wake-up is missed", {.mutation = {.launch = LaunchBug::kNeverCompletes}});
}

TEST_F(PlantedTest, AFailureThatIsNotReportedIsNoticed) {
  const std::pair<const char*, Planted> kPlanted[] = {
      {"the stop is not looked at",
       {.mutation = {.launch = LaunchBug::kStopIgnored}, .faults = {{FaultKind::kRecord, 1}}}},
      {"the device hides that it is lost",
       {.mutation = {.hides_loss = true},
        .loops = Loops::kHost,
        .faults = {{FaultKind::kLoseDevice, 5}}}},
      {"a refusal is ignored",
       {.mutation = {.stream = StreamBug::kIgnoresRefusal, .hides_loss = true},
        .loops = Loops::kHost,
        .faults = {{FaultKind::kEnqueue, 2}}}}};
  for (auto [name, planted] : kPlanted) {
    planted.honest = "device lost: ";
    expect_caught(name, planted);
    planted.mutation = {};
    for (uint64_t seed = first_seed(); seed < first_seed() + 20; ++seed) {
      bool is_planted = false;
      const std::string what = try_planted(seed, planted, is_planted);
      EXPECT_TRUE(what.empty() || what.find(planted.honest) != std::string::npos) << name << what;
    }
  }
}

// Spoils what a step reads or has made, once, at the n-th step.
class Spoiler : public StepObserver {
 public:
  enum class What { kByte, kShape, kSwappedInputs, kCounter };
  Spoiler(What what, size_t n) : what_(what), left_(n) {}
  Status before(RunState& state, const ::eddy::Step& step) override {
    if (step.kind != StepKind::kExec || has_spoilt_) return Status::ok();
    const Node& node = state.graph().node(step.node);
    if (node.inputs.empty() || node.inputs[0].is_none()) return Status::ok();
    const ValueInfo& info = state.graph().value(node.inputs[0]);
    Slot& slot = state.slot(node.inputs[0]);
    if (info.origin != ValueOrigin::kNodeOutput || slot.kind != ValueKind::kTensor ||
        slot.is_volatile || slot.view.size_bytes() == 0 || left_-- > 0) {
      return Status::ok();
    }
    spoil(state, node, slot);
    return Status::ok();
  }
  void after(RunState&, const ::eddy::Step&, int32_t) override {}

 private:
  void spoil(RunState& state, const Node& node, Slot& slot) {
    switch (what_) {
      case What::kByte:
        static_cast<char*>(slot.view.data)[0] ^= 1;
        break;
      case What::kShape: {
        if (slot.view.rank != 1 || slot.view.dims[0] < 2) return;
        const int64_t shorter = slot.view.dims[0] - 1;
        slot.set_tensor(slot.view.element, {&shorter, 1});
        break;
      }
      case What::kSwappedInputs: {
        if (node.inputs.size() < 2 || node.inputs[1].is_none()) return;
        Slot& other = state.slot(node.inputs[1]);
        const bool is_same = other.kind == ValueKind::kTensor && !other.is_volatile &&
                             &other != &slot && other.view.element == slot.view.element &&
                             state.graph().value(node.inputs[1]).origin == ValueOrigin::kNodeOutput;
        if (!is_same) return;
        slot.swap(other);
        break;
      }
      case What::kCounter: {
        const NodeId owner = state.graph().region(node.region).owner;
        if (owner.is_none() || state.graph().node(owner).kind != NodeKind::kWhile) return;
        auto& counter =
            const_cast<int64_t&>(*state.loop(owner).iteration_slot().view.as<int64_t>());
        ++counter;
        break;
      }
    }
    has_spoilt_ = true;
  }
  const What what_;
  size_t left_;
  bool has_spoilt_ = false;
};

constexpr std::pair<const char*, Spoiler::What> kSpoilt[] = {
    {"a value changes after it was made", Spoiler::What::kByte},
    {"a shape is that of another iteration", Spoiler::What::kShape},
    {"two values change places", Spoiler::What::kSwappedInputs},
    {"an iteration is counted twice", Spoiler::What::kCounter}};

TEST_F(PlantedTest, ValuesThatAreSpoiltBetweenStepsAreNoticed) {
  for (const auto& [name, what] : kSpoilt) {
    std::string found;
    for (uint64_t seed = first_seed(); found.empty() && seed < first_seed() + kGraphs; ++seed) {
      for (size_t n = 0; found.empty() && n < kPlaces; ++n) {
        Spoiler spoiler(what, n);
        bool is_planted = false;
        found = try_planted(seed, {.observer_or_null = &spoiler}, is_planted);
      }
    }
    EXPECT_NE(found, "") << name;
    std::printf("%-40s caught by %s: %s\n", name, watcher_of(found), found.substr(0, 110).c_str());
  }
}

using PlanEdit = std::function<bool(Program::Block& plan, size_t at)>;

bool is_kind(const Program::Block& plan, size_t at, Program::Op op) {
  return plan.steps[at].op == op;
}

uint32_t other_stream(const Program::Block& plan, uint32_t stream) {
  return plan.streams[(local_stream(plan, stream) + 1) % plan.streams.size()];
}

// long: a table of edits
std::vector<std::pair<const char*, PlanEdit>> plan_edits() {
  using Op = Program::Op;
  const auto erase = [](Op op) {
    return [op](Program::Block& plan, size_t at) {
      if (!is_kind(plan, at, op)) return false;
      plan.steps.erase(plan.steps.begin() + static_cast<ptrdiff_t>(at));
      return true;
    };
  };
  const auto repeat = [](Op op) {
    return [op](Program::Block& plan, size_t at) {
      if (!is_kind(plan, at, op)) return false;
      const Program::Step again = plan.steps[at];
      plan.steps.insert(plan.steps.end() - 1, again);
      return true;
    };
  };
  return {
      {"plan: a wait is missing", erase(Op::kWait)},
      {"plan: a record is missing", erase(Op::kRecord)},
      {"plan: a node is missing", erase(Op::kLaunch)},
      {"plan: a node is launched twice", repeat(Op::kLaunch)},
      {"plan: an event is recorded twice", repeat(Op::kRecord)},
      {"plan: a wait comes before its record",
       [](Program::Block& plan, size_t at) {
         if (!is_kind(plan, at, Op::kWait)) return false;
         std::rotate(plan.steps.begin(), plan.steps.begin() + static_cast<ptrdiff_t>(at),
                     plan.steps.begin() + static_cast<ptrdiff_t>(at) + 1);
         return true;
       }},
      {"plan: a wait is on another stream",
       [](Program::Block& plan, size_t at) {
         if (!is_kind(plan, at, Op::kWait)) return false;
         plan.steps[at].stream = other_stream(plan, plan.steps[at].stream);
         return true;
       }},
      {"plan: a record is on another stream",
       [](Program::Block& plan, size_t at) {
         if (!is_kind(plan, at, Op::kRecord)) return false;
         plan.steps[at].stream = other_stream(plan, plan.steps[at].stream);
         return true;
       }},
      {"plan: a wait names an event out of range",
       [](Program::Block& plan, size_t at) {
         if (!is_kind(plan, at, Op::kWait)) return false;
         plan.steps[at].operand = plan.num_events + 7;
         return true;
       }},
      {"plan: a node moves to the other stream",
       [](Program::Block& plan, size_t at) {
         if (!is_kind(plan, at, Op::kWait) || at + 1 >= plan.steps.size()) return false;
         if (!is_kind(plan, at + 1, Op::kLaunch)) return false;
         plan.steps[at + 1].stream = other_stream(plan, plan.steps[at + 1].stream);
         return true;
       }},
  };
}

TEST_F(PlantedTest, EveryDefectOfAPlanIsNoticedByItsProof) {
  for (const auto& [name, edit] : plan_edits()) {
    size_t num_caught = 0;
    std::string what;
    for (uint64_t seed = first_seed(); num_caught == 0 && seed < first_seed() + kGraphs; ++seed) {
      auto made = generate(seed, library_);
      ASSERT_TRUE(made.is_ok());
      PlanOptions options;
      options.is_auto = false;
      Plan plan = plan_graph(made->graph, options);
      for (Program::Block& region : plan.program.blocks) {
        if (region.streams.size() < 2) continue;
        const std::vector<Program::Step> commands = region.steps;
        for (size_t at = 0; at < commands.size(); ++at) {
          region.steps = commands;
          if (!edit(region, at)) continue;
          const Status status = prove_plan(made->graph, plan);
          num_caught += status.is_ok() ? 0 : 1;
          if (!status.is_ok()) what = status.message();
        }
        region.steps = commands;
      }
    }
    EXPECT_GT(num_caught, 0u) << name;
    std::printf("%-40s caught by proof: %s\n", name, what.substr(0, 110).c_str());
  }
}

// Each of them fails its test above when no watcher notices it.
TEST_F(PlantedTest, AtLeastFortyDefectsArePlanted) {
  constexpr size_t kApart = 5;  // a leak, a missed wake-up, three failures that are never reported
  const size_t count = command_edits().size() + std::size(kStreamBugs) + std::size(kMemoryBugs) +
                       std::size(kSpoilt) + plan_edits().size() + kApart;
  std::printf("%zu defects are planted\n", count);
  EXPECT_GE(count, 40u);
}

}  // namespace
}  // namespace eddy::check
