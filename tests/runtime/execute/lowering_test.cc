// Claim: what runs is what was planned: strands run on the machine's streams that the plan gave
// their regions, with the plan's events, which exclusive branches share; a trace shows it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/session.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/command_code.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

const ValueType kFloat = tensor_type(ElementType::kFloat, {});

// Records, and tells what it recorded.
class Recorded : public CommandCode {
 public:
  using CommandCode::num_events;
  using CommandCode::strand_streams;
  void start(RunControl&) override {}
  void run_here(RunControl&) override {}
  StrandState strand_state(uint32_t) const override { return StrandState::kIdle; }
};

// Two chains that meet.
Value two_chains(GraphBuilder& b, Value x, const std::string& name) {
  const auto chain = [&](const char* op, const char* side) {
    const Value first = b.op(op, {x}, {}, {.name = name + side + "1"});
    return b.op(op, {first}, {}, {.name = name + side + "2"});
  };
  const Value left = chain("Neg", "_left");
  const Value right = chain("Tanh", "_right");
  return b.op("Add", {left, right}, {}, {.name = name + "_sum"});
}

// A chain beside a loop whose body branches into `num_branches` regions of two chains each.
Graph make_graph(const Library& library, int num_branches) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", kFloat);
  const Value s = b.input("s", tensor_type(ElementType::kInt64, {}));
  std::vector<CaseBody> bodies;
  for (int i = 0; i < num_branches; ++i) {
    bodies.push_back(
        [&b, x, i] { return std::vector<Value>{two_chains(b, x, "branch" + std::to_string(i))}; });
  }
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b.int64s({3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        const Value picked = b.case_of({.name = "pick", .selector = s}, bodies)[0];
        return std::vector<Value>{b.op("Add", {picked, two_chains(b, f[0], "body")})};
      });
  b.output("y", b.op("Add", {out[0], two_chains(b, x, "beside")}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

struct Lowered {
  uint32_t num_events = 0;
  std::vector<uint32_t> streams;  // of its strands
};

Lowered lower_graph(const Library& library, const Graph& graph, const Plan& plan) {
  CpuDevice device(CpuDeviceOptions{2, 0});
  Recorded* recorded = nullptr;
  ExecutableOptions options;
  options.make_commands = [&recorded](Recorder*) -> std::unique_ptr<CommandBuffer> {
    auto commands = std::make_unique<Recorded>();
    recorded = commands.get();
    return commands;
  };
  auto program = Executable::create(graph, plan, device, library.cpu_kernels(), options);
  EXPECT_TRUE(program.is_ok()) << program.status().to_string();
  const auto state = (*program)->acquire();
  return {recorded->num_events(), recorded->strand_streams()};
}

Plan make_plan(const Graph& graph) {
  PlanOptions options;
  options.is_auto = false;
  Plan plan = plan_graph(graph, options);
  EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  return plan;
}

TEST(LoweringTest, StrandsRunOnThePlansStreamsWithThePlansEvents) {
  const Library library;
  std::set<uint32_t> event_counts;
  for (int num_branches : {1, 2, 6}) {
    const Graph graph = make_graph(library, num_branches);
    const Plan plan = make_plan(graph);
    ASSERT_GT(plan.num_streams, 2u);
    const Lowered lowered = lower_graph(library, graph, plan);
    EXPECT_LE(lowered.num_events, plan.num_events);
    event_counts.insert(lowered.num_events);
    for (const uint32_t stream : lowered.streams) EXPECT_LT(stream, plan.num_streams);
    // More strands than streams: those of exclusive branches take turns.
    EXPECT_GE(lowered.streams.size(), plan.num_streams);
  }
  EXPECT_EQ(event_counts.size(), 1u) << "six branches need no more events than one";
}

TEST(LoweringTest, ATraceShowsEachNodeInTheLaneOfItsStream) {
  Library library;
  SessionOptions options;
  options.assignment = Assignment::kRank;
  options.num_threads = 2;
  options.simplify = false;
  auto session = Session::create(library, make_graph(library, 2), options);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const Graph& graph = (*session)->graph();
  const Plan& plan = (*session)->plan();
  std::map<std::string, std::string> lane_of_node;
  for (const Program::Block& block : plan.program.blocks) {
    for (const Program::Step& step : block.steps) {
      if (!is_node(step.op)) continue;
      const std::string& name = graph.node(node_of(plan.program, step)).name;
      if (name.starts_with("Add")) continue;  // names are unique within a region only
      lane_of_node[name] = "stream " + std::to_string(step.stream);
    }
  }
  TraceRecorder trace;
  RunOptions run_options;
  run_options.trace_or_null = &trace;
  const auto outputs = (*session)->run(
      {{"x", Tensor::scalar(0.5f)}, {"s", Tensor::scalar(int64_t{1})}}, run_options);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  const std::string path = testing::TempDir() + "/lanes.json";
  ASSERT_TRUE(trace.write_json(path).is_ok());
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::map<int, std::string> lanes;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      lanes[event["tid"]] = event["args"]["name"];
    }
  }
  EXPECT_EQ(lanes.size(), plan.num_streams);
  int num_seen = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto node = lane_of_node.find(event["name"]);
    if (node == lane_of_node.end()) continue;  // an iteration or a branch
    EXPECT_EQ(lanes[event["tid"]], node->second) << node->first;
    ++num_seen;
  }
  EXPECT_GT(num_seen, 30);
}

}  // namespace
}  // namespace eddy
