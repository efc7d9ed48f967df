// Claim: a step that writes memory which another value's reader still needs is in a race with that
// reader, whichever comes first, though their slots are apart; what orders them ends it.
//
// A node's result is shown to the checker as lying in memory that is not only its own.
#include "tools/check/race_checker.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "runtime/execute/run_state.h"

namespace eddy::check {
namespace {

constexpr uint64_t kSeeds = 40;

// What "late" makes lies, for the checker, where "first" has made something.
class SharedMemory : public StepObserver {
 public:
  explicit SharedMemory(bool is_planted) : is_planted_(is_planted) {}

  Status before(RunState& state, const ::eddy::Step& step) override {
    return checker.before(state, step);
  }
  void after(RunState& state, const ::eddy::Step& step, int32_t decision) override {
    const Node& node = state.graph().node(step.node);
    Slot& made = state.slot(node.outputs[0]);
    if (node.name == "first") {
      held_ = made.buffer;
      data_ = made.view.data;
    }
    if (node.name != "late" || !is_planted_) return checker.after(state, step, decision);
    BufferRef buffer = std::exchange(made.buffer, held_);
    void* const data = std::exchange(made.view.data, data_);
    checker.after(state, step, decision);
    made.buffer = std::move(buffer);
    made.view.data = data;
  }
  void let_go() { held_ = {}; }

  RaceChecker checker;

 private:
  const bool is_planted_;
  BufferRef held_;  // so that it is never one reference alone
  void* data_ = nullptr;
};

// "late" reads what "reader" has made, or what "reader" reads: then nothing orders the two.
Graph make_graph(const Library& library, bool is_ordered) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {64}));
  const Value first = b.op("Add", {x, x}, {}, {.name = "first"});
  const Value reader = b.op("Add", {first, x}, {}, {.name = "reader"});
  b.output("read", reader);
  b.output("made", b.op("Mul", {is_ordered ? reader : first, x}, {}, {.name = "late"}));
  auto graph = b.finish();
  EDDY_CHECK(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::vector<std::string> races(uint64_t seed, bool is_ordered, bool is_planted) {
  Library library;
  SharedMemory memory(is_planted);
  SessionOptions options;
  options.assignment = Assignment::kRank;
  options.loops = Loops::kDevice;
  options.simplify = false;
  options.observer_or_null = &memory;
  options.make_device = [&]() -> Result<std::shared_ptr<Device>> {
    VirtualDeviceOptions made;
    made.engine.order.seed = seed;
    made.engine.watcher_or_null = &memory.checker;
    auto device = std::make_shared<VirtualDevice>(made);
    memory.checker.reset(device.get());
    return std::shared_ptr<Device>(std::move(device));
  };
  auto session = Session::create(library, make_graph(library, is_ordered), options);
  EXPECT_TRUE(session.is_ok()) << session.status().to_string();
  const Tensor x = Tensor::zeros(ElementType::kFloat, {64});
  EXPECT_TRUE((*session)->run({{"x", x}}).is_ok());
  memory.let_go();
  return memory.checker.races();
}

TEST(RaceCheckerTest, MemoryThatAnotherStillReadsIsARaceInEitherOrder) {
  size_t num_written_late = 0;
  size_t num_read_late = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<std::string> found = races(seed, false, true);
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    num_written_late += found[0].starts_with("late ") ? 1 : 0;
    num_read_late += found[0].starts_with("reader ") ? 1 : 0;
  }
  EXPECT_GT(num_written_late, 0u);
  EXPECT_GT(num_read_late, 0u);
  EXPECT_EQ(num_written_late + num_read_late, kSeeds);
}

TEST(RaceCheckerTest, MemoryThatIsWrittenBehindItsReaderIsNoRace) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(races(seed, true, true), std::vector<std::string>()) << "seed " << seed;
  }
}

TEST(RaceCheckerTest, MemoryOfItsOwnIsNoRace) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(races(seed, false, false), std::vector<std::string>()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace eddy::check
