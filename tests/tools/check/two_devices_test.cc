// Claim: beside another device, too, the next iteration of a loop begins while the tail of the last
// one still runs on the other device, and in every order results are the oracle's, without a race;
// with two devices beside the CPU, too, whose nodes are where their names or kernels say.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "graph/ir/builder.h"
#include "runtime/execute/run_state.h"
#include "tools/check/generator.h"
#include "tools/check/hash_ops.h"
#include "tools/check/oracle.h"
#include "tools/check/trial.h"
#include "tools/check/virtual_accelerator.h"

namespace eddy::check {
namespace {

constexpr int kTailNodes = 4;
constexpr int64_t kTrips = 6;

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint32_t count_open(const Plan& plan) {
  uint32_t count = 0;
  for (const Program::Loop& loop : plan.program.loops) count += loop.is_pipelined ? 1 : 0;
  return count;
}

// c' = c + 1 in two steps; row = c' - 4 in as many steps on the CPU.
Graph make_graph(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4}));
  const Value half = b.constant(Tensor::of<float>({4}, {0.5f, 0.5f, 0.5f, 0.5f}).view());
  const Value one = b.constant(Tensor::of<float>({4}, {1, 1, 1, 1}).view());
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b.scalar(kTrips), .num_scan_outputs = 1},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value middle = b.op("Add", {f[0], half}, {}, {.name = "carried1"});
        const Value next = b.op("Add", {middle, half}, {}, {.name = "carried2"});
        Value row = next;
        for (int t = 0; t < kTailNodes; ++t) {
          row = b.op("Sub", {row, one}, {}, {.name = "tail" + std::to_string(t)});
        }
        return std::vector<Value>{next, row};
      });
  b.output("y", out[0]);
  b.output("rows", out[1]);
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

// How many steps had begun before each node's runs, in turn.
class Order : public StepObserver {
 public:
  Status before(RunState& state, const ::eddy::Step& step) override {
    if (step.kind != StepKind::kExec) return Status::ok();
    begun_[state.graph().node(step.node).name].push_back(time_++);
    return Status::ok();
  }
  void after(RunState&, const ::eddy::Step&, int32_t) override {}
  const std::vector<int>& of(const std::string& name) const { return begun_.at(name); }

 private:
  int time_ = 0;
  std::map<std::string, std::vector<int>> begun_;
};

// In some of many orders an iteration begins before the last one's tail has ended.
TEST(TwoDevicesTest, TheNextIterationBeginsBeforeTheTailOnTheOtherDeviceHasEnded) {
  const Library library;
  uint32_t num_overlapping = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Order order;
    auto device =
        std::make_shared<VirtualDevice>(VirtualDeviceOptions{.engine = {.order = {.seed = seed}}});
    SessionOptions options;
    options.assignment = Assignment::kRank;
    options.simplify = false;
    options.observer_or_null = &order;
    options.make_device = [&] { return std::shared_ptr<Device>(device); };
    options.make_devices = {[&]() -> Result<ExecutionDevice> {
      return make_virtual_accelerator(
          device, library, [](std::string_view name) { return !name.starts_with("tail"); });
    }};
    auto session = Session::create(library, make_graph(library), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    ASSERT_EQ(count_open((*session)->plan()), 1u);
    const auto outputs = (*session)->run({{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    for (int64_t i = 0; i < kTrips; ++i) {
      const float row = (*outputs)[1].second.values<float>()[static_cast<size_t>(i) * 4];
      EXPECT_EQ(row, 1.0f + static_cast<float>(i + 1) - kTailNodes);
    }
    const std::vector<int>& next = order.of("carried1");
    const std::vector<int>& tail = order.of("tail" + std::to_string(kTailNodes - 1));
    for (size_t i = 0; i + 1 < next.size(); ++i) num_overlapping += next[i + 1] < tail[i] ? 1 : 0;
  }
  std::cout << num_overlapping << " of " << 20 * (kTrips - 1) << " iterations began early\n";
  EXPECT_GT(num_overlapping, 20u);
}

// c' = (c + 1) * 2 while the sum of c is small: sums on the first device, products on the second,
// and behind the loop a difference on the CPU, of what both have made.
Graph make_pinned_graph(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {4}));
  const Value one = b.constant(Tensor::of<float>({4}, {1, 1, 1, 1}).view());
  const Value two = b.constant(Tensor::of<float>({4}, {2, 2, 2, 2}).view());
  const auto on = [](const char* name, const char* device) {
    return OpOptions{.name = name, .device = device};
  };
  const Value twice = b.op("Mul", {x, two}, {}, on("twice", "virtual:1"));
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x}},
      [&](Value, ValueSpan c) {
        const Value sum =
            b.op("ReduceSum", {c[0]}, {{"keepdims", int64_t{0}}}, on("sum", "virtual"));
        return WhileTest{b.op("Less", {sum, b.scalar(1000.0f)}, {}, on("less", "virtual")), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value more = b.op("Add", {f[0], one}, {}, on("more", "virtual"));
        return std::vector<Value>{b.op("Mul", {more, two}, {}, on("double", "virtual:1"))};
      });
  const Value first = b.op("Add", {out[0], twice}, {}, on("first", "virtual"));
  const Value second = b.op("Mul", {out[0], twice}, {}, on("second", "virtual:1"));
  b.output("y", b.op("Sub", {first, second}, {}, on("on_cpu", "")));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

TEST(TwoDevicesTest, NodesPinnedToTwoDevicesBesideTheCpuRunThere) {
  const Library library;
  const NamedTensors inputs = {{"x", Tensor::of<float>({4}, {1, 2, 3, 4})}};
  auto cpu = std::move(*Session::create(library, make_pinned_graph(library), {}));
  const NamedTensors expected = *cpu->run(inputs);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Order order;
    auto device =
        std::make_shared<VirtualDevice>(VirtualDeviceOptions{.engine = {.order = {.seed = seed}}});
    SessionOptions options;
    options.simplify = seed % 2 == 0;
    options.use_arenas = seed % 3 != 0;
    options.observer_or_null = &order;
    options.make_device = [&] { return std::shared_ptr<Device>(device); };
    const auto all = [](std::string_view name) { return name != "on_cpu"; };
    const auto make = [&]() -> Result<ExecutionDevice> {
      return make_virtual_accelerator(device, library, all);
    };
    options.make_devices = {make, make};
    auto session = Session::create(library, make_pinned_graph(library), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    EXPECT_TRUE((*session)->placement_text().starts_with(
        "4 nodes on virtual, 3 nodes on virtual:1, 1 on the CPU, "))
        << (*session)->placement_text();
    const Graph& graph = (*session)->graph();
    const Plan& plan = (*session)->plan();
    EXPECT_EQ(plan.devices, (std::vector<std::string>{"cpu", "virtual", "virtual:1"}));
    for (const Program::Block& block : plan.program.blocks) {
      for (const Program::Step& step : block.steps) {
        if (step.op != Program::Op::kLaunch) continue;
        const Node& node = graph.node(node_of(plan.program, step));
        EXPECT_EQ(plan.devices[plan.stream_devices[step.stream]], node.device) << node.name;
      }
    }
    for (int run = 0; run < 3; ++run) {
      const auto outputs = (*session)->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      EXPECT_EQ(difference(expected, *outputs), "");
    }
    EXPECT_EQ(order.of("double").size(),
              3 * static_cast<size_t>(cpu->loop_reports()[0].iterations));
    session->reset();
    EXPECT_EQ(device->allocator().statistics().used_bytes, 0u);
  }
}

TEST(TwoDevicesTest, RandomGraphsGiveWhatTheOracleSaysInEveryOrder) {
  Library library;
  ASSERT_TRUE(add_hash_ops(library).is_ok());
  const uint64_t first = number("EDDY_CHECK_FIRST", 0);
  const uint64_t end = first + number("EDDY_CHECK_SEEDS", 250);
  uint32_t num_open = 0, num_plans = 0;
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    GenerateOptions generate{.may_have_floats = true};
    if (seed % 4 == 0) generate.max_steps = 60;
    Subject subject(library, make_recipe(seed, generate));
    TrialOptions options;
    options.order = {.policy = static_cast<SchedulePolicy>(seed % 5), .seed = seed};
    options.assignment = seed % 2 == 0 ? Assignment::kRank : Assignment::kMatching;
    options.loops = Loops::kHost;
    options.num_accelerators = 1 + seed / 3 % 2;
    options.accelerator_cpu_share = static_cast<double>(seed % 3) * 0.35;
    if (options.num_accelerators == 2) options.accelerator_cpu_share += 0.2;
    auto trial = Trial::make(subject, options);
    ASSERT_TRUE(trial.is_ok()) << "seed " << seed << ": " << trial.status().to_string();
    const uint32_t count = count_open((*trial)->session().plan());
    num_open += count;
    num_plans += count > 0 ? 1 : 0;
    for (const uint64_t variant : {0, 1, 0}) {
      EXPECT_EQ((*trial)->run(variant), "") << "seed " << seed;
    }
    EXPECT_EQ((*trial)->close(), "") << "seed " << seed;
  }
  std::cout << "seeds " << first << " to " << end - 1 << ": " << num_plans << " plans with "
            << num_open << " pipelined loops\n";
  EXPECT_GT(num_open, (end - first) / 25);
}

}  // namespace
}  // namespace eddy::check
